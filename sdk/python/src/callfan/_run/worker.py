"""One run of an executor over a link: it registers, pulls, runs and stops in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Mapping
from typing import Any

from callfan._run.delivery import CRASH_LIMIT, Delivery, dispatch_keys
from callfan._run.hosts import Hosts
from callfan._run.inflight import Inflight
from callfan._run.lease import Leases
from callfan._run.link import Link, PullAgain, Taken
from callfan._run.running import RETURN_GRACE, Running
from callfan._run.slots import Slots
from callfan._wire.dispatch import Key
from callfan.function import Function

_DEFAULT_REFRESH = 30.0
_REBIND_PAUSE = 1.0
_REPORT_GRACE = 5.0
_PULL_RETRY_FIRST, _PULL_RETRY_LAST = 0.1, 5.0


class Worker:
    def __init__(
        self,
        link: Link,
        functions: Mapping[str, Function[..., Any]],
        hosts: Hosts,
        *,
        concurrency: int,
        stop_timeout: float,
        log: logging.Logger,
    ) -> None:
        self.link, self.functions, self.hosts, self.log = link, functions, hosts, log
        self._concurrency, self._stop_timeout = concurrency, stop_timeout
        #: Nothing new is begun.
        self.soft = asyncio.Event()
        #: Handlers are interrupted.
        self.hard = asyncio.Event()
        #: Outcomes are not reported any more.
        self.given_up = asyncio.Event()
        self.serving = asyncio.Event()
        self.leases = Leases(log)
        self.running: set[Running[Any]] = set()
        self.abandoned = 0
        self._inflight = Inflight()
        self._slots = Slots(concurrency)
        self._calls: set[asyncio.Task[None]] = set()
        self._pulls: set[asyncio.Task[None]] = set()
        self._rebind = asyncio.Event()
        self._refresh = _DEFAULT_REFRESH
        self._failures = 0

    async def serve(self) -> None:
        """Runs calls until `soft` is set, then stops in order."""
        if not await self._until_soft(self._register()):
            return  # stopped before anything began
        await self.link.on_cancel(self._cancelled)
        self.log.info("executor serves", extra={"functions": len(self.functions), "concurrency": self._concurrency})
        self.serving.set()
        beats = asyncio.create_task(self.leases.run())
        keeping = [asyncio.create_task(self._keep_registered()), asyncio.create_task(self._pull_loop())]
        try:
            stopping = asyncio.create_task(self.soft.wait())
            done, _ = await asyncio.wait([stopping, beats, *keeping], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                task.result()  # a fault of the SDK: it must not go unseen
            stopping.cancel()
        finally:
            self.soft.set()
            for task in keeping:
                task.cancel()
            await self._stop()
            beats.cancel()  # leases are extended until the last call is settled

    async def _stop(self) -> None:
        """Waits for the calls in hand, interrupts them after the stop timeout, and returns when all are settled."""
        self.log.info("executor stops", extra={"stop_timeout_seconds": self._stop_timeout, "running": len(self.running)})
        for pull in list(self._pulls):
            pull.cancel()
        hard = asyncio.create_task(self.hard.wait())
        settled = asyncio.create_task(self._settled())
        await asyncio.wait([settled, hard], timeout=self._stop_timeout, return_when=asyncio.FIRST_COMPLETED)
        if not settled.done():
            self.log.warning("stop timeout is over; running handlers are interrupted")
            self.hard.set()
            for running in list(self.running):
                running.end("stopped")
            await asyncio.wait([settled], timeout=RETURN_GRACE + _REPORT_GRACE)
            self.given_up.set()
        await settled
        hard.cancel()
        if self.abandoned:
            self.log.warning("handlers did not return; their calls were settled", extra={"handlers": self.abandoned})

    async def _settled(self) -> None:
        while self._pulls or self._calls:
            await asyncio.wait([*self._pulls, *self._calls])

    async def _until_soft(self, registering: Any) -> bool:
        task, stopping = asyncio.ensure_future(registering), asyncio.ensure_future(self.soft.wait())
        try:
            await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                return False
            task.result()
            return True
        finally:
            task.cancel()
            stopping.cancel()

    async def _register(self) -> None:
        bound = await self.link.register()
        self._refresh = bound.refresh if bound.refresh > 0 else _DEFAULT_REFRESH
        self.leases.set_ack_wait(bound.ack_wait)

    async def _keep_registered(self) -> None:
        """Registers again as often as the binding says, and when pulls fail."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._refresh * random.uniform(0.9, 1.1)):
                    await self._rebind.wait()
            self._rebind.clear()
            try:
                await self._register()
            except Exception as err:
                message = "functions could not be registered again; the earlier registration is used on"
                self.log.error(message, extra={"error": str(err)})
            await asyncio.sleep(_REBIND_PAUSE)

    async def _pull_loop(self) -> None:
        """Pulls calls into free slots. Several pulls may be under way; each owns the slots that it asked for."""
        while True:
            count = await self._slots.gather()
            task = asyncio.create_task(self._pull(count))
            self._pulls.add(task)
            task.add_done_callback(self._pulls.discard)

    async def _pull(self, count: int) -> None:
        got, over = 0, False

        def each(taken: Taken) -> None:
            nonlocal got
            got += 1
            # One that comes after the pull's end has no slot any more; its lease is running, so it is taken all the same.
            task = asyncio.create_task(self._handle(taken, owned=got <= count and not over))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

        try:
            await self.link.pull(count, each)
            if self._failures:
                self._failures = 0
                self.log.info("calls are pulled again")
        except asyncio.CancelledError:
            return
        except PullAgain:
            self._rebind.set()
        except Exception as err:
            await self._pull_failed(err)
        finally:
            over = True
            self._slots.release(max(count - got, 0))

    async def _pull_failed(self, err: Exception) -> None:
        """Waits, longer with every failure in a row, and has the functions registered again: the consumer may be gone."""
        self._failures += 1
        if self._failures == 1:
            self.log.warning("calls cannot be pulled; trying on", extra={"error": str(err)})
        self._rebind.set()
        wait = min(_PULL_RETRY_FIRST * 2 ** min(self._failures - 1, 10), _PULL_RETRY_LAST)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self.soft.wait()

    async def _handle(self, taken: Taken, *, owned: bool) -> None:
        try:
            d = taken.dispatch
            if d is None:
                await self._invalid(taken)
                return
            held = self._inflight.add(d)
            if held is None:  # the run in hand extends this delivery's lease as well, and its ack removes it
                extra = {**dispatch_keys(d), "deliveries": taken.deliveries}
                self.log.warning("call delivered again while it runs here", extra=extra)
                return
            try:
                await Delivery(self, taken, d, held).handle()
            finally:
                self._inflight.remove(d)
        except Exception:
            self.log.exception("fault in the executor; the call will be delivered again")
        finally:
            if owned:
                self._slots.release(1)

    async def _invalid(self, taken: Taken) -> None:
        """Leaves a message that is no call to its lease, since a newer executor may understand it, a few times."""
        removed = taken.deliveries > CRASH_LIMIT
        extra = {"error": taken.invalid, "deliveries": taken.deliveries, "removed": removed}
        self.log.error("message is not a call", extra=extra)
        if removed:
            with contextlib.suppress(Exception):  # a message that stays comes back here
                await taken.term(taken.invalid)

    def _cancelled(self, key: Key, reason: str) -> None:
        if self._inflight.cancel(key):
            extra = {"session_id": key.session_id, "turn_id": key.turn_id, "call_id": key.call_id, "reason": reason}
            self.log.info("call cancelled", extra=extra)
