"""One delivered call on its way through the executor: the order of things in docs/protocol.md."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from callfan._run import attempt, texts
from callfan._run.ending import Ending, choice, dropped, failed, left, released, uncertain, unknown, verifiable
from callfan._run.link import NotStored, Taken, TooLarge
from callfan._run.running import Running
from callfan._wire.dispatch import Dispatch
from callfan._wire.outcome import InvalidOutcome, Outcome
from callfan._wire.requests import NoAnswer
from callfan.errors import PermissionDenied
from callfan.function import Function

if TYPE_CHECKING:
    from callfan._run.inflight import Held
    from callfan._run.worker import Worker

T = TypeVar("T")

#: How many deliveries of one hand-over may end without an outcome.
CRASH_LIMIT = 3
_UNSERVED_DELAY = 0.25
_REPORT_FOR = 60.0
_RETRY_FIRST, _RETRY_LAST = 0.1, 5.0


class Delivery:
    def __init__(self, worker: Worker, taken: Taken, d: Dispatch, held: Held) -> None:
        self.w, self.taken, self.d, self.held = worker, taken, d, held
        self.f: Function[..., Any] | None = worker.functions.get(d.function)
        now = time.monotonic()
        if d.deadline_ms is None:
            self.deadline = now + _REPORT_FOR + (d.timeout_ms or 0) / 1000
        else:
            self.deadline = now + d.deadline_ms / 1000 - time.time()
        self.entered: list[Running[Any]] = []
        self.lease = worker.leases.hold(taken, self.deadline)
        self.log_keys = dispatch_keys(d)

    async def handle(self) -> None:
        """Takes the call to its end: run it, or answer it without, report, ack. That order loses no result."""
        try:
            end = await self._decide()
            if end.outcome is not None and not await self._report(end.outcome):
                return
            if not end.keep:
                await self._ack()
        finally:
            self.lease.drop()
            for running in self.entered:
                if await running.leave():
                    self.w.abandoned += 1
                self.w.running.discard(running)

    async def _decide(self) -> Ending:
        """Runs the call, unless there is a reason to end it without."""
        may_have_run = self.taken.deliveries > 1 or self.d.uncertain
        if self.f is None:
            return await self._unserved(may_have_run)
        if may_have_run:
            end = await self._again(self.f)
        elif self.held.noticed:
            end = await self._wanted()
        else:
            end = None
        if end is not None:
            return end
        if self.held.cancelled.is_set():
            return dropped("cancelled")
        if self.w.soft.is_set():
            return released()
        if time.monotonic() >= self.deadline:
            return failed("deadline", texts.EXPIRED)
        if (self.w.leases.doubtful() or self.w.leases.late(self.taken.transit)) and choice(self.f, self.d) != "rerun":
            return self._stale(self.f)
        a = attempt.begin(self.w.hosts, self.w.log, self.f, self.d, self.deadline, may_have_run=may_have_run)
        self._enter(a)
        return await attempt.end_of(a)

    def _enter(self, running: Running[Any]) -> None:
        self.entered.append(running)
        self.w.running.add(running)
        if self.w.hard.is_set():
            running.end("stopped")
        self.held.started(lambda: running.end("cancelled"))

    def _stale(self, f: Function[..., Any]) -> Ending:
        """Ends a call that may be with another executor by now: that one decides, or the next one after this lease."""
        message = "the process or its connection stood still for about a lease; a call that may be with another executor is not started"
        self.w.log.warning(message, extra={**self.log_keys, "transit_seconds": round(self.taken.transit, 3)})
        if choice(f, self.d) in ("verify", "park"):
            return left()
        return failed("unknown_outcome", texts.UNKNOWN_OUTCOME)

    async def _unserved(self, may_have_run: bool) -> Ending:
        """Gives back a call of a function that is not handled here, as after a half-done rollout."""
        self.w.log.warning(
            "call of a function that this executor does not serve; all processes of a pool must serve the same functions",
            extra=self.log_keys,
        )
        await self._first(asyncio.sleep(_UNSERVED_DELAY), self.w.soft)
        return left() if may_have_run else released()  # a release would hide that it may have run

    # Calls that may have run.

    async def _again(self, f: Function[..., Any]) -> Ending | None:
        """Decides about a call that may have run already; None lets it run."""
        standing = await self._look_up()
        if standing == "answered":
            return dropped("answered")
        if standing == "cancelled" or self.held.cancelled.is_set():
            return dropped("cancelled")
        if self.taken.deliveries > CRASH_LIMIT:
            return self._crashed(f)
        if standing is None:
            return self._not_looked_up(f)
        return await self._resolve(f)

    async def _wanted(self) -> Ending | None:
        """Asks about a call that a cancel notice came before."""
        standing = await self._look_up()
        if standing in ("answered", "cancelled"):
            return dropped(standing)
        if standing is None and not self.held.cancelled.is_set() and not self.w.soft.is_set():
            return failed("deadline", texts.EXPIRED)
        return None  # a cancelled call and a stopping executor are seen next

    async def _resolve(self, f: Function[..., Any]) -> Ending | None:
        if choice(f, self.d) == "rerun":
            return None
        if not verifiable(f, self.d):
            return unknown(f, self.d, texts.MAY_HAVE_RUN)
        if not f.verifies:
            return uncertain(texts.NO_VERIFY)
        if self.held.cancelled.is_set():
            return dropped("cancelled")
        if self.w.soft.is_set():  # a release would make the call look fresh
            return left()
        if time.monotonic() >= self.deadline:
            return unknown(f, self.d, texts.NOT_VERIFIED)
        asked = attempt.ask(self.w.hosts, self.w.log, f, self.d, self.deadline)
        self._enter(asked)
        return await attempt.verdict_of(asked)

    def _crashed(self, f: Function[..., Any]) -> Ending:
        """Ends a call whose earlier deliveries all ended without an outcome."""
        if f.policy.effects == "none":
            return failed("crashed", texts.CRASHED)
        if choice(f, self.d) == "park":
            return uncertain(f"it crashed its executor, or its executor was lost, {self.taken.deliveries - 1} times in a row")
        return failed("crashed", f"{texts.CRASHED}; {texts.UNKNOWN_OUTCOME}")

    def _not_looked_up(self, f: Function[..., Any]) -> Ending:
        """No dispatcher answered before the executor stopped or the call's deadline passed."""
        stopped = self.w.soft.is_set()
        if choice(f, self.d) == "rerun":
            return released() if stopped else failed("deadline", texts.EXPIRED)
        if stopped and verifiable(f, self.d):
            return left()
        return unknown(f, self.d, texts.NOT_LOOKED_UP)

    async def _look_up(self) -> str | None:
        """Asks until a dispatcher answers, the call is cancelled, its deadline passes or the executor stops."""
        wait, warned = _RETRY_FIRST, False
        while time.monotonic() < self.deadline and not self.w.soft.is_set() and not self.held.cancelled.is_set():
            try:
                return await self._first(self.w.link.lookup(self.d), self.w.soft, self.held.cancelled)
            except (NoAnswer, PermissionDenied) as err:
                if not warned:
                    warned = True
                    extra = {**self.log_keys, "error": str(err)}
                    self.w.log.warning("no dispatcher says whether a call is still wanted; asking on", extra=extra)
            await self._first(asyncio.sleep(wait), self.w.soft, self.held.cancelled)
            wait = min(2 * wait, _RETRY_LAST)
        return None

    async def _first(self, awaitable: Awaitable[T], *events: asyncio.Event) -> T | None:
        """Awaits it until an event happens or the call's deadline passes."""
        task = asyncio.ensure_future(awaitable)
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            timeout = max(self.deadline - time.monotonic(), 0.0)
            await asyncio.wait([task, *waits], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for pending in (task, *waits):
                pending.cancel()

    # The report.

    async def _report(self, o: Outcome) -> bool:
        """Publishes the outcome, again and again while the server does not store it, with the lease held."""
        until = max(time.monotonic() + _REPORT_FOR, self.deadline)
        self.lease.extend(until)
        wait, warned = _RETRY_FIRST, False
        while True:
            try:
                await self._reporting(self.w.link.report(self.d, o), until)
                return True
            except TooLarge as err:
                if o.cause == "too_large":
                    return self._unreported(err)
                o = Outcome("failure", error=str(err), cause="too_large")
                continue
            except InvalidOutcome as err:
                if o.cause == "invalid_output":
                    return self._unreported(err)
                self.w.log.error("outcome is not valid; the model is told", extra={**self.log_keys, "error": str(err)})
                o = Outcome("failure", error="the function's output is not valid", cause="invalid_output")
                continue
            except PermissionDenied as err:
                return self._unreported(err)
            except (NotStored, TimeoutError) as err:
                if time.monotonic() + wait >= until or self.w.given_up.is_set():
                    return self._unreported(err)
                if not warned:
                    warned = True
                    self.w.log.warning("outcome was not stored; trying on", extra={**self.log_keys, "error": str(err)})
            await self._reporting(asyncio.sleep(wait), until)
            wait = min(2 * wait, _RETRY_LAST)

    async def _reporting(self, awaitable: Awaitable[None], until: float) -> None:
        """Awaits it until then, or until the executor gives up."""
        task = asyncio.ensure_future(awaitable)
        given_up = asyncio.ensure_future(self.w.given_up.wait())
        try:
            timeout = max(until - time.monotonic(), 0.0)
            await asyncio.wait([task, given_up], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise TimeoutError("no confirmation in time")
            task.result()
        finally:
            task.cancel()
            given_up.cancel()

    def _unreported(self, err: Exception) -> bool:
        extra = {**self.log_keys, "error": str(err)}
        self.w.log.error("outcome could not be reported; the call will be delivered again", extra=extra)
        return False

    async def _ack(self) -> None:
        try:
            await self.taken.ack()
        except Exception as err:
            extra = {**self.log_keys, "error": str(err)}
            self.w.log.warning("ack failed; the call will be delivered again and found answered", extra=extra)


def dispatch_keys(d: Dispatch) -> dict[str, object]:
    """What names a hand-over in logs."""
    return {
        "session_id": d.key.session_id,
        "turn_id": d.key.turn_id,
        "call_id": d.key.call_id,
        "function": d.function,
        "attempt": d.attempt,
    }
