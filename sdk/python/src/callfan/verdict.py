"""What a verify handler finds out about an earlier run."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CannotTell", "Done", "NotDone", "Verdict"]


@dataclass(frozen=True, slots=True)
class Done:
    """The earlier run took effect. The call succeeds with this output, which becomes what the model gets as a handler's does."""

    output: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class NotDone:
    """The earlier run did not take effect and will not do so any more. The handler is run."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """It could not be found out. The handler is not run, and the dispatcher decides.

    The reason is for operators, and for the model when the dispatcher gives up.
    """

    reason: str = ""


Verdict = Done | NotDone | CannotTell
