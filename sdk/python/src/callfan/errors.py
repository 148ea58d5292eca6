"""What handlers raise, and what an executor raises."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["CallfanError", "Cancelled", "ConfigurationError", "Failure", "PermissionDenied", "RegistrationRefused", "Retry", "Uncertain"]


class Failure(Exception):
    """A business failure: its text goes to the model as it is, and the call is not run again.

    Subclass it for errors of your own. Any other exception is a crash: the model is told "function crashed", and the
    details go to the log alone.

    `cause` is a short machine word for counters, of `[a-z_]{1,32}`. Use few distinct words.
    """

    def __init__(self, text: str = "", *, cause: str = "") -> None:
        super().__init__(text)
        self.cause = cause


class Retry(Exception):
    """A technical failure: the dispatcher decides by the function's policy whether the call is run again.

    `after` is the least wait, in seconds; None leaves it to the dispatcher. The model gets the reason only when no
    attempts are left.
    """

    def __init__(self, reason: str = "", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason)
        if isinstance(after, timedelta):
            after = after.total_seconds()
        self.after = max(after or 0.0, 0.0)


class Uncertain(Exception):
    """The run was lost and may have taken effect, as when a downstream went away before it answered.

    What follows is the function's `on_uncertain`: a function that may be run again has a technical failure, as by `Retry`;
    one that can be verified has its verify handler asked after the lease; of any other the model is told that the outcome
    is unknown, or an operator decides.
    """


class Cancelled(Exception):
    """Raised by `Call.raise_if_cancelled`. A handler may let it out: its result is not awaited any more."""


class CallfanError(Exception):
    """The base of the errors of an executor."""


class ConfigurationError(CallfanError, ValueError):
    """A setting or the declaration of a function cannot be used; nothing was started."""


class RegistrationRefused(CallfanError):
    """A dispatcher refused a function. Asking again without a change gets the same answer.

    `code` is `invalid_function`, `function_taken`, `pool_taken`, or another one of docs/protocol.md.
    """

    def __init__(self, function: str, code: str, message: str) -> None:
        super().__init__(f'function "{function}" was refused ({code}): {message}')
        self.function, self.code = function, code


class PermissionDenied(CallfanError):
    """The NATS server refused a subject to this user."""

    def __init__(self, operation: str, subject: str, user: str = "") -> None:
        who = f'user "{user}"' if user else "this connection's user"
        super().__init__(f'permission denied: {who} may not {operation} to "{subject}"; allow that subject in the server\'s permissions')
        self.operation, self.subject = operation, subject
