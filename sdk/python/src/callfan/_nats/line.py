"""Pulls of calls from the pool's durable consumer.

nats-py's own fetch gives up what is on its way when it is cancelled, and takes a lost pull for an empty one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from callfan._nats.connection import Connection, NotConnected
from callfan._nats.transit import Transit
from callfan._wire import pulls
from callfan._wire.pulls import Action

#: Longer than a connection lives whose server does not answer; nats-py does not bear an answer that it gave up.
_PONG_WITHIN = 60

#: Takes a message, and the longest that it may have been on its way, in seconds.
Each = Callable[[Msg, float], None]


class Ended(Exception):
    """The pull ended before its time; `action` says what to do."""

    def __init__(self, action: Action, why: str) -> None:
        super().__init__(why)
        self.action = action


class Line:
    """One subscription on which the messages of pulls arrive, one pull after the other."""

    def __init__(self, connection: Connection, request: str, ack_wait: float) -> None:
        self._connection, self._request, self._ack_wait = connection, request, ack_wait
        self._gone = connection.changed()
        self._inbox = connection.new_inbox()
        self._pulls = 0
        self._subscription: Subscription | None = None
        self._each: Each | None = None
        self._left = 0
        self._heard = 0.0
        self._transit = Transit(time.monotonic())
        self._ping: asyncio.Task[None] | None = None
        self._done: asyncio.Future[None] | None = None

    @property
    def usable(self) -> bool:
        """Nothing happened to the connection since the line was opened."""
        return not self._gone.is_set()

    async def pull(self, batch: int, each: Each) -> None:
        """Gives up to so many messages. Ended, PermissionDenied, NotConnected; after any of them the line is to be dropped."""
        loop = asyncio.get_running_loop()
        self._done = loop.create_future()
        self._each, self._left, self._heard = each, batch, time.monotonic()
        self._pulls += 1
        if self._subscription is None:
            self._subscription = await self._connection.subscribe(f"{self._inbox}.*", self._arrived)
        denials = self._connection.denials
        denials.spell(self._request)
        refused = denials.watch(self._request)
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            self._transit.asked(time.monotonic(), 2.5 * pulls.heartbeat(self._ack_wait))
            body = pulls.pull_request(batch, self._connection.max_payload, self._ack_wait)
            await self._connection.publish(self._request, body, reply=f"{self._inbox}.{self._pulls}")
            waiting: list[asyncio.Future[Any]] = [self._done, refused, gone]
            while not self._done.done():
                await asyncio.wait(waiting, timeout=pulls.HEARTBEAT / 2, return_when=asyncio.FIRST_COMPLETED)
                if self._done.done():
                    break
                if refused.done():
                    raise denials.error(self._request)
                if gone.done():
                    raise NotConnected("the connection changed")
                if time.monotonic() - self._heard > pulls.SILENCE:
                    raise Ended("pull_again", f"no heartbeat for {pulls.SILENCE:g}s")
            self._done.result()
        finally:
            denials.forget(self._request, refused)
            gone.cancel()

    async def _arrived(self, msg: Msg) -> None:
        self._heard = time.monotonic()
        transit, ping = self._transit.read(self._heard)
        if ping:
            self._ping = asyncio.create_task(self._pinged())
        if not pulls.is_status(msg.headers, msg.data):
            self._left -= 1
            if self._each is not None:
                self._each(msg, transit)
        elif msg.subject == f"{self._inbox}.{self._pulls}":  # otherwise about an earlier pull
            action, pending = pulls.status(msg.headers or {})
            if action == "ended":
                # A replicated consumer sends this at once, and messages only after they were replicated: those that the
                # server counts as sent are still on their way.
                self._left -= pending
            elif action != "continue":
                headers = msg.headers or {}
                self._finish(Ended(action, f"{headers.get('Status', '')} {headers.get('Description', '')}".strip()))
        if self._left <= 0:
            self._finish(None)

    async def _pinged(self) -> None:
        """Has the server answer: what is behind the answer was sent after it was asked."""
        with contextlib.suppress(Exception):  # a connection that is lost takes the line with it
            await self._connection.client.flush(_PONG_WITHIN)
            if self.usable and self._subscription is not None:
                self._transit.answered(self._subscription.pending_msgs)

    def _finish(self, error: Ended | None) -> None:
        if self._done is None or self._done.done():
            return
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)
            self._done.exception()  # it may be that nobody waits any more

    async def drop(self) -> None:
        """Ends the subscription, after giving what the server had sent before it knew."""
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        if not self.usable:
            # nats-py throws away what had arrived when the connection went. Those calls are ours: left alone, they would
            # come back as calls that may have run.
            arrived = subscription._pending_queue
            while not arrived.empty():
                await self._arrived(arrived.get_nowait())
            return
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                await subscription.drain()  # type: ignore[no-untyped-call]
