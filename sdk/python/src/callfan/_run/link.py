"""The worker's view of the queue, so that it can be tested without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from callfan._wire.dispatch import Dispatch, Key
from callfan._wire.outcome import Outcome


class PullAgain(Exception):
    """The connection, the server or the consumer's leader changed. The link paces itself."""


class TooLarge(Exception):
    """The outcome is larger than the server takes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"result too large ({size} bytes, limit {limit})")


class NotStored(Exception):
    """The outcome was not confirmed; the same one may be reported again."""


class Taken(Protocol):
    """A delivered message. `dispatch` is None when it is no call; `invalid` says why."""

    @property
    def dispatch(self) -> Dispatch | None: ...
    @property
    def invalid(self) -> str: ...
    @property
    def deliveries(self) -> int: ...
    @property
    def transit(self) -> float:
        """The longest that it may have been on its way, in seconds."""

    async def extend(self) -> None: ...
    async def ack(self) -> None: ...
    async def term(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Bound:
    """What a registration gives. Seconds."""

    ack_wait: float
    refresh: float


class Link(Protocol):
    """The queue."""

    async def register(self) -> Bound:
        """Declares the functions, for ever until a dispatcher answers."""

    async def pull(self, batch: int, each: Callable[[Taken], None]) -> None:
        """Gives up to so many calls. When cancelled it still gives what is on its way, then raises CancelledError."""

    async def report(self, d: Dispatch, o: Outcome) -> None:
        """Publishes the outcome; returns once it is stored. TooLarge, InvalidOutcome, PermissionDenied or NotStored."""

    async def lookup(self, d: Dispatch) -> str:
        """How the call stands; NoAnswer or PermissionDenied."""

    async def on_cancel(self, each: Callable[[Key, str], None]) -> None:
        """Calls each for every cancel notice about the functions."""
