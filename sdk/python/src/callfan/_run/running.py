"""One entry into the user's code, a handler or a verify handler."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from callfan import call as calls
from callfan._run import tracing
from callfan._run.hosts import Hosts
from callfan._wire.dispatch import Dispatch
from callfan.call import Call, Reason
from callfan.function import Function

T = TypeVar("T")

#: How long a handler may take to return after its time was over, before its slot is given to another call.
RETURN_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """What the code came to: a value, or an error."""

    value: T | None = None
    error: BaseException | None = None


class Running(Generic[T]):
    """It runs from its making. Everything but the code itself happens on the protocol's loop."""

    def __init__(
        self,
        hosts: Hosts,
        log: logging.Logger,
        f: Function[..., Any],
        d: Dispatch,
        *,
        handler: str,
        sync: Callable[[Call], T] | None = None,
        asynchronous: Callable[[Call], Awaitable[T]] | None = None,
        until: float | None,
        uncertain: bool,
    ) -> None:
        self.f, self.d, self.handler, self.log = f, d, handler, log
        self.loop = asyncio.get_running_loop()
        self.began = time.monotonic()
        timeout = d.timeout_ms / 1000 if d.timeout_ms else f.policy.timeout_seconds()
        self.ends = self.began + timeout
        self.at_deadline = until is not None and until < self.ends
        if until is not None and self.at_deadline:
            self.ends = until
        self.call = Call(
            session_id=d.key.session_id,
            turn_id=d.key.turn_id,
            call_id=d.key.call_id,
            function=d.function,
            arguments=d.arguments,
            attempt=d.attempt,
            idempotency_key=d.idempotency_key,
            deadline=datetime.fromtimestamp(time.time() + self.ends - self.began, UTC),
            uncertain=uncertain,
            traceparent=d.traceparent,
            tracestate=d.tracestate,
            cancelled=threading.Event(),
            _ends=self.ends,
        )
        self.done: asyncio.Future[Returned[T]] = self.loop.create_future()
        self._over: asyncio.Future[None] = self.loop.create_future()
        self._interrupt: Callable[[], None] | None = None
        self._timer = self.loop.call_at(self.loop.time() + self.ends - self.began, self.end, "timeout")
        if asynchronous is not None:
            self._interrupt = hosts.loop.submit(
                self._run_async(asynchronous),
                # One that is cancelled before its first step says nothing itself.
                lambda: self._hand_over(Returned(error=asyncio.CancelledError())),
            )
        elif sync is not None:
            hosts.threads.submit(lambda: self._run_sync(sync))

    def _run_sync(self, code: Callable[[Call], T]) -> None:
        token = calls._current.set(self.call)
        try:
            with tracing.span(self.call, self.handler):
                result = Returned(value=code(self.call))
        except BaseException as err:  # whatever user code raises ends the call, not the executor
            result = Returned(error=err)
        finally:
            calls._current.reset(token)
        self._hand_over(result)

    async def _run_async(self, code: Callable[[Call], Awaitable[T]]) -> None:
        calls._current.set(self.call)
        try:
            with tracing.span(self.call, self.handler):
                result = Returned(value=await code(self.call))
        except BaseException as err:
            result = Returned(error=err)
        self._hand_over(result)

    def _hand_over(self, result: Returned[T]) -> None:
        with contextlib.suppress(RuntimeError):  # the executor has ended
            self.loop.call_soon_threadsafe(self._set, result)

    def _set(self, result: Returned[T]) -> None:
        if not self.done.done():
            self.done.set_result(result)

    def end(self, reason: Reason) -> None:
        """Ends the handler's time, for the first reason that there is."""
        if self._over.done() or self.done.done():
            return
        self.call._cancel(reason)
        self._over.set_result(None)
        if self._interrupt is not None:
            self._interrupt()

    @property
    def reason(self) -> Reason | None:
        return self.call.reason

    async def wait(self) -> Returned[T] | None:
        """What the code comes to. None: it did not return before its time was over, or before the grace of a stop."""
        ends: list[asyncio.Future[Any]] = [self.done, self._over]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not self.done.done() and self.reason == "stopped":
            await asyncio.wait([self.done], timeout=RETURN_GRACE)
        if self.reason in ("timeout", "cancelled"):  # what came after that is ignored
            return None
        return self.done.result() if self.done.done() else None

    async def leave(self) -> bool:
        """Waits a moment for the code to return; whether it was given up."""
        self._timer.cancel()
        if self.done.done():
            return False
        self.end("cancelled")
        await asyncio.wait([self.done], timeout=RETURN_GRACE)
        if self.done.done():
            return False
        extra = {**calls.log_keys(self.call), "handler": self.handler}
        self.log.warning("handler does not return; its slot is given to other calls", extra={**extra, "cause": self.reason})

        def late(_: asyncio.Future[Returned[T]]) -> None:
            seconds = round(time.monotonic() - self.ends, 3)
            self.log.warning("abandoned handler returned; its result is ignored", extra={**extra, "late_by_seconds": seconds})

        self.done.add_done_callback(late)
        return True
