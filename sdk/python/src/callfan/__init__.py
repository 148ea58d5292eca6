"""Answer the function calls of OpenAI agents from Python.

    from callfan import Executor

    ex = Executor(pool="customers")

    @ex.function(effects="none")
    def get_customer(customer_id: str) -> dict[str, object]:
        \"\"\"Look up a customer by ID.\"\"\"
        return {"found": customer_id == "123"}

    ex.run()

A handler returns what the model gets: a text as it is, `Content` for several parts, None for no value, anything else as
JSON. It raises `Failure` for a business error, whose text goes to the model, `Retry` for a technical one, and `Uncertain` for one after
which the function may have taken effect.
"""

from callfan.call import Call, current_call
from callfan.config import NatsConfig
from callfan.errors import CallfanError, Cancelled, ConfigurationError, Failure, PermissionDenied, RegistrationRefused, Retry, Uncertain
from callfan.executor import Executor
from callfan.function import Function, function
from callfan.output import Content, ImagePart, TextPart
from callfan.policy import Backoff, Policy
from callfan.verdict import CannotTell, Done, NotDone, Verdict

__all__ = [
    "Backoff",
    "Call",
    "CallfanError",
    "Cancelled",
    "CannotTell",
    "ConfigurationError",
    "Content",
    "Done",
    "Executor",
    "Failure",
    "Function",
    "ImagePart",
    "NatsConfig",
    "NotDone",
    "PermissionDenied",
    "Policy",
    "RegistrationRefused",
    "Retry",
    "TextPart",
    "Uncertain",
    "Verdict",
    "current_call",
    "function",
]
