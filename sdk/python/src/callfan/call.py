"""The call as its handler sees it."""

from __future__ import annotations

import logging
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from callfan.errors import Cancelled

__all__ = ["Call", "Reason", "current_call"]

Reason = Literal["timeout", "cancelled", "stopped"]

_current: ContextVar[Call] = ContextVar("callfan_call")
_log = logging.getLogger("callfan.function")


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One attempt of a call. A handler gets it by `current_call()`, or by a parameter annotated with `Call`."""

    session_id: str
    turn_id: str
    call_id: str
    function: str
    #: The very bytes that the model wrote.
    arguments: bytes = field(repr=False)
    #: Counts from 1.
    attempt: int
    #: The same for every attempt of the call. Pass it to downstreams that know such keys.
    idempotency_key: str
    #: When the handler's time ends, in UTC.
    deadline: datetime
    #: An earlier attempt may have run, wholly or in part.
    uncertain: bool = False
    #: The W3C trace context, None without tracing.
    traceparent: str | None = None
    tracestate: str | None = None
    #: Set when the handler's time is over, when nobody waits for the result any more, and when the executor
    #: interrupts it to stop. An async handler is cancelled then; a sync one has to look.
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False)
    _ends: float = field(default=0.0, repr=False)
    _reasons: list[Reason] = field(default_factory=list, repr=False)

    @property
    def reason(self) -> Reason | None:
        """Why `cancelled` is set: `timeout`, `cancelled` or `stopped`; None while it is not."""
        return self._reasons[0] if self._reasons else None

    @property
    def remaining(self) -> float:
        """The seconds that are left, 0 at least."""
        return max(self._ends - time.monotonic(), 0.0)

    def sleep(self, seconds: float) -> None:
        """Sleeps in a sync handler; raises Cancelled as soon as the call is cancelled."""
        self.cancelled.wait(max(seconds, 0.0))
        self.raise_if_cancelled()

    def raise_if_cancelled(self) -> None:
        """Raises Cancelled when `cancelled` is set."""
        if self.cancelled.is_set():
            raise Cancelled(self.reason or "cancelled")

    def progress(self, message: str) -> None:
        """Logs how far the handler is. The protocol carries no progress; the message stays in this process's log."""
        _log.info("progress", extra={**log_keys(self), "progress": message})

    def _cancel(self, reason: Reason) -> None:
        self._reasons.append(reason)
        self.cancelled.set()


def log_keys(call: Call) -> dict[str, object]:
    return {
        "session_id": call.session_id,
        "turn_id": call.turn_id,
        "call_id": call.call_id,
        "function": call.function,
        "attempt": call.attempt,
    }


def current_call() -> Call:
    """The call that is being handled. LookupError outside a handler.

    It follows the handler's context: asyncio tasks and `asyncio.to_thread` see it, threads that a handler starts do not.
    """
    try:
        return _current.get()
    except LookupError:
        raise LookupError("there is no current call: current_call() works in handlers only") from None
