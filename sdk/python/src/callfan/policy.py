"""How a function wants to be run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from callfan.errors import ConfigurationError

__all__ = ["Backoff", "Duration", "Effects", "OnUncertain", "Policy"]

Effects = Literal["none", "idempotent", "side_effects"]
OnUncertain = Literal["rerun", "verify", "fail", "park"]
#: Seconds, a timedelta, or a text as `1m30s`.
Duration = float | timedelta | str

DEFAULT_TIMEOUT = 30.0

_DURATION = re.compile(r"(0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_PART = re.compile(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Backoff:
    """The waits between attempts. None keeps a default: 1 s, at most 1 min, doubling, 20 % longer or shorter."""

    initial: Duration | None = None
    max: Duration | None = None
    multiplier: float | None = None
    jitter: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy that is declared; None leaves a member to its default. Operators may overrule every member."""

    effects: Effects | None = None
    timeout: Duration | None = None
    queue_timeout: Duration | None = None
    total_deadline: Duration | None = None
    attempts: int | None = None
    backoff: Backoff | None = None
    on_uncertain: OnUncertain | None = None

    def wire(self) -> dict[str, Any]:
        """The policy as it is registered; ConfigurationError when it cannot be used."""
        _one_of("effects", self.effects, ("none", "idempotent", "side_effects"))
        _one_of("on_uncertain", self.on_uncertain, ("rerun", "verify", "fail", "park"))
        if self.attempts is not None and (isinstance(self.attempts, bool) or not 1 <= self.attempts <= 1000):
            raise ConfigurationError(f"attempts is {self.attempts}; use 1 to 1000")
        members: dict[str, Any] = {
            "timeout": _positive("timeout", self.timeout),
            "queue_timeout": _positive("queue_timeout", self.queue_timeout),
            "total_deadline": _positive("total_deadline", self.total_deadline),
            "attempts": self.attempts,
            "backoff": _backoff(self.backoff),
            "effects": self.effects,
            "on_uncertain": self.on_uncertain,
        }
        return {name: value for name, value in members.items() if value is not None}

    def choice(self, verifies: bool) -> OnUncertain:
        """What happens to a call that may have run, when the call itself does not say."""
        if self.on_uncertain is not None:
            return self.on_uncertain
        if self.effects in ("none", "idempotent"):
            return "rerun"
        return "verify" if verifies else "fail"

    def timeout_seconds(self) -> float:
        """Bounds one run of the handler."""
        return DEFAULT_TIMEOUT if self.timeout is None else seconds(self.timeout) or DEFAULT_TIMEOUT


def _one_of(name: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise ConfigurationError(f"{name} is {value!r}; use {', '.join(known)}")


def _positive(name: str, value: Duration | None) -> str | None:
    if value is None:
        return None
    if not 0 < seconds(value) < 1e9:  # also what is no number
        raise ConfigurationError(f"{name} is {value!r}; use a positive duration")
    return duration_text(value)


def _backoff(b: Backoff | None) -> dict[str, Any] | None:
    if b is None:
        return None
    if b.multiplier is not None and not b.multiplier >= 1:
        raise ConfigurationError(f"the backoff's multiplier is {b.multiplier}; use 1 or more")
    if b.jitter is not None and not 0 <= b.jitter <= 1:
        raise ConfigurationError(f"the backoff's jitter is {b.jitter}; use 0 to 1")
    members = {
        "initial": _positive("the backoff's initial", b.initial),
        "max": _positive("the backoff's max", b.max),
        "multiplier": b.multiplier,
        "jitter": b.jitter,
    }
    return {name: value for name, value in members.items() if value is not None}


def seconds(value: Duration) -> float:
    """The duration in seconds."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        if not _DURATION.fullmatch(value):
            raise ConfigurationError(f"{value!r} is no duration; use a form such as 300ms, 10s or 1m30s")
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))
    return float(value)


def duration_text(value: Duration) -> str:
    """The duration as it is registered."""
    if isinstance(value, str):
        seconds(value)
        return value
    total = round(seconds(value) * 1e9)
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if total % size == 0:
            return f"{total // size}{unit}"
    return f"{total}ns"
