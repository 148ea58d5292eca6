"""What is done with a delivered call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from callfan._run import texts
from callfan._wire.dispatch import Dispatch
from callfan._wire.outcome import Outcome
from callfan.function import Function


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome is reported, unless there is none; then the call is acked, unless it is kept."""

    outcome: Outcome | None = None
    reason: str = ""
    keep: bool = False


def failed(cause: str, text: str) -> Ending:
    return Ending(Outcome("failure", error=text, cause=cause))


def uncertain(reason: str) -> Ending:
    return Ending(Outcome("uncertain", reason=reason))


def released() -> Ending:
    return Ending(Outcome("released"))


def dropped(reason: str) -> Ending:
    """Acked without an outcome."""
    return Ending(reason=reason)


def left() -> Ending:
    """Left to its lease: the next executor gets it as a call that may have run."""
    return Ending(reason="left", keep=True)


def choice(f: Function[..., Any], d: Dispatch) -> str:
    """What to do with a call that may have run: as the dispatcher says, or else as the function declares."""
    return d.on_uncertain or f.policy.choice(f.verifies)


def verifiable(f: Function[..., Any], d: Dispatch) -> bool:
    """Whether an executor may find out what became of the call, so that a stop leaves it to the next one."""
    chosen = choice(f, d)
    return chosen == "verify" or (chosen == "park" and f.verifies)


def unknown(f: Function[..., Any], d: Dispatch, why: str) -> Ending:
    """Ends a call that may have run and about which nothing more is found out. why is for the operator."""
    if choice(f, d) == "park":
        return uncertain(why)
    return failed("unknown_outcome", texts.UNKNOWN_OUTCOME)
