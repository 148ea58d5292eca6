"""Functions: Python functions that agents can call."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload

from callfan import _docstring
from callfan._parameters import Parameters
from callfan._wire.names import token
from callfan.call import Call
from callfan.errors import ConfigurationError, Failure
from callfan.output import encode_output
from callfan.policy import Backoff, Duration, Effects, OnUncertain, Policy
from callfan.verdict import CannotTell, Done, Verdict

__all__ = ["Function", "function"]

P = ParamSpec("P")
R = TypeVar("R")
VerifyHandler = TypeVar("VerifyHandler", bound=Callable[..., Verdict | Awaitable[Verdict]])

INVALID_OUTPUT = "invalid_output"


class Function(Generic[P, R]):
    """A function that agents can call. It can still be called as the Python function that it is made of."""

    def __init__(
        self,
        fn: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        raw: bool = False,
        policy: Policy | None = None,
    ) -> None:
        documented, descriptions = _docstring.parse(fn.__doc__)
        self.fn = fn
        self.name: str = getattr(fn, "__name__", "") if name is None else name
        self.description = documented if description is None else description
        self.policy = policy or Policy()
        try:
            self.token = token(self.name)
        except ValueError as err:
            raise ConfigurationError(str(err)) from None
        try:
            self._policy_on_wire = self.policy.wire()
        except ConfigurationError as err:
            raise ConfigurationError(f"function {self.name!r}: {err}") from None
        self._handler = _Handler(fn, raw, descriptions)
        self._verifier: _Handler | None = None
        self.parameters = self._handler.schema if parameters is None else _object_schema(self.name, parameters)
        self.__name__, self.__doc__, self.__wrapped__ = self.name, fn.__doc__, fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<callfan.Function {self.name!r}>"

    def verify(self, handler: VerifyHandler) -> VerifyHandler:
        """Decorates the verify handler: it finds out whether an earlier run of a call took effect.

        It takes the function's parameters, or any part of them, and returns Done(output), NotDone() or
        CannotTell(reason). It must have no effects itself. An exception, a timeout and any other value mean that it
        cannot tell. `current_call().idempotency_key` is what most downstreams can be asked for.
        """
        self._verifier = _Handler(handler, self._handler.raw, {}, partial=True)
        return handler

    @property
    def verifies(self) -> bool:
        """Whether there is a verify handler."""
        return self._verifier is not None

    @property
    def is_async(self) -> bool:
        return self._handler.is_async

    @property
    def verify_is_async(self) -> bool:
        return self._verifier is not None and self._verifier.is_async

    def definition(self) -> dict[str, Any]:
        """The declaration, as it is registered. ConfigurationError when it cannot be used."""
        if self.policy.on_uncertain == "verify" and not self.verifies:
            raise ConfigurationError(
                f"function {self.name!r}: on_uncertain is verify, and there is no verify handler; add one, or use fail or rerun"
            )
        definition: dict[str, Any] = {"name": self.name}
        if self.description:
            definition["description"] = self.description
        if self.parameters is not None:
            definition["parameters"] = self.parameters
        if self.verifies:
            definition["verifies"] = True
        definition["policy"] = self._policy_on_wire
        return definition

    def run(self, call: Call) -> str:
        """Runs a sync handler and gives the output as JSON."""
        return self._encode(self._handler.enter(call))

    async def run_async(self, call: Call) -> str:
        """Runs an async handler and gives the output as JSON."""
        return self._encode(await self._handler.enter(call))

    @staticmethod
    def _encode(value: Any) -> str:
        try:
            return encode_output(value)
        except ValueError as err:
            raise Failure(str(err), cause=INVALID_OUTPUT) from err

    def ask(self, call: Call) -> Verdict:
        """Asks a sync verify handler."""
        assert self._verifier is not None
        return _checked(self._verifier.enter(call))

    async def ask_async(self, call: Call) -> Verdict:
        """Asks an async verify handler."""
        assert self._verifier is not None
        return _checked(await self._verifier.enter(call))


def _object_schema(function: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise ConfigurationError(f"function {function!r}: its parameters are a {type(schema).__name__}; use a JSON Schema as a dict")
    if schema.get("type", "object") != "object":
        raise ConfigurationError(f"function {function!r}: its parameters have the type {schema['type']!r}; functions take an object")
    return dict(schema)


class _Handler:
    """A Python function, and how it takes a call."""

    def __init__(self, fn: Callable[..., Any], raw: bool, descriptions: Mapping[str, str], *, partial: bool = False) -> None:
        self.fn, self.raw = fn, raw
        self.is_async = inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004
        self.schema: dict[str, Any] | None = None
        self._parameters: Parameters | None = None
        if raw:
            self._raw_type = _raw_type(fn)
            return
        # A verify handler takes what it needs of the function's arguments.
        self._parameters = Parameters(fn, descriptions, partial=partial)
        self.schema = self._parameters.schema

    def enter(self, call: Call) -> Any:
        if self._parameters is None:
            arguments = call.arguments or b"{}"
            return self.fn(arguments if self._raw_type is bytes else arguments.decode("utf-8", "replace"))
        keywords = self._parameters.read(call.arguments)
        if self._parameters.call_parameter is not None:
            keywords[self._parameters.call_parameter] = call
        return self.fn(**keywords)


def _raw_type(fn: Callable[..., Any]) -> type:
    parameters = list(inspect.signature(fn).parameters.values())
    if len(parameters) != 1:
        raise ConfigurationError(
            f"function {getattr(fn, '__name__', '?')}: with raw=True it takes one parameter, the text of the arguments"
        )
    try:
        annotation = typing.get_type_hints(fn).get(parameters[0].name, str)
    except (NameError, TypeError):
        annotation = str
    return bytes if annotation is bytes else str


def _checked(verdict: Any) -> Verdict:
    if isinstance(verdict, Done):
        return Done(Function._encode(verdict.output))
    if isinstance(verdict, Verdict):
        return verdict
    return CannotTell("the verify handler returned no verdict")


@overload
def function(fn: Callable[P, R], /) -> Function[P, R]: ...
@overload
def function(
    *,
    name: str | None = ...,
    description: str | None = ...,
    parameters: Mapping[str, Any] | None = ...,
    raw: bool = ...,
    effects: Effects | None = ...,
    timeout: Duration | None = ...,
    queue_timeout: Duration | None = ...,
    total_deadline: Duration | None = ...,
    attempts: int | None = ...,
    backoff: Backoff | None = ...,
    on_uncertain: OnUncertain | None = ...,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(
    fn: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    raw: bool = False,
    effects: Effects | None = None,
    timeout: Duration | None = None,
    queue_timeout: Duration | None = None,
    total_deadline: Duration | None = None,
    attempts: int | None = None,
    backoff: Backoff | None = None,
    on_uncertain: OnUncertain | None = None,
) -> Function[P, R] | Callable[[Callable[P, R]], Function[P, R]]:
    """Makes a Python function one that agents can call. It may be sync or async.

    The JSON Schema of its arguments comes from the type hints, the description from the docstring. Arguments that do not
    fit become a failure that names the member; the function is not entered then.

    Args:
        name: the name by which the model calls it; the function's own by default.
        description: what it does, for the model; the docstring by default.
        parameters: a JSON Schema of the arguments in place of the derived one.
        raw: the function takes one parameter, the very text of the arguments: `str`, or `bytes` if annotated so.
            Nothing is checked.
        effects: what running it twice does: `none`, `idempotent` or `side_effects`, the default.
        timeout: bounds one run. 30 s by default. Seconds, a timedelta or a text such as `1m30s`.
        queue_timeout: bounds the wait for an executor. 60 s by default.
        total_deadline: bounds the time from the claim to the answer. 15 min by default.
        attempts: how often `Retry` lets a call run, 1 to 1000. 3 by default, 1 with side effects.
        backoff: the waits between attempts.
        on_uncertain: what happens to a call that may have run: `rerun`, `verify`, `fail` or `park`. By default `rerun`
            without side effects, else `verify` with a verify handler, else `fail`.
    """

    def decorate(f: Callable[P, R]) -> Function[P, R]:
        policy = Policy(effects, timeout, queue_timeout, total_deadline, attempts, backoff, on_uncertain)
        return Function(f, name=name, description=description, parameters=parameters, raw=raw, policy=policy)

    return decorate if fn is None else decorate(fn)
