"""Runs handlers without servers, and gives what would be reported.

from callfan.testing import invoke

def test_get_customer():
    assert invoke(get_customer, {"customer_id": "123"}).json()["found"]
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from callfan._run import attempt, texts
from callfan._run.ending import Ending, choice, uncertain, unknown, verifiable
from callfan._run.hosts import Hosts
from callfan._run.running import Running
from callfan._wire.dispatch import Dispatch, Key
from callfan._wire.outcome import encode_outcome
from callfan.function import Function
from callfan.output import encode_output
from callfan.policy import Duration, OnUncertain, seconds

__all__ = ["Outcome", "ainvoke", "invoke"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What would be reported about the call."""

    #: `success`, `failure`, `retry`, `released`, `uncertain`, or an empty text when nothing would be reported, as for a
    #: call that was cancelled or that is left to another executor.
    kind: str
    #: Of a success: a text, a list of content parts, or None.
    output: str | list[dict[str, str]] | None = None
    #: Of a failure: the text for the model, and the cause, empty for a business failure without one.
    error: str = ""
    cause: str = ""
    #: Of a retry and of uncertainty.
    reason: str = ""
    #: Of a retry, in seconds.
    after: float = 0.0
    #: The payload of the message.
    payload: bytes = field(default=b"", repr=False)

    @property
    def text(self) -> str:
        """The output, which has to be a text."""
        if not isinstance(self.output, str):
            raise AssertionError(f"the call came to {self!r}, not to a text")
        return self.output

    def json(self) -> Any:
        """The output, which has to be the text of JSON."""
        return json.loads(self.text)


def invoke(
    function: Function[..., Any] | Callable[..., Any],
    arguments: Mapping[str, Any] | str | bytes | None = None,
    *,
    attempt: int = 1,
    uncertain: bool = False,
    on_uncertain: OnUncertain | None = None,
    timeout: Duration | None = None,
    cancel_after: float | None = None,
    traceparent: str | None = None,
) -> Outcome:
    """Runs one attempt of a call with the function's validation, timeout and encoding, as production does.

    Args:
        function: what `@function` made.
        arguments: as a mapping, or their very text.
        attempt: the number of the attempt.
        uncertain: the call may have run before: the verify handler is asked if the policy says so.
        on_uncertain: what the dispatcher says about that; by default the function's policy.
        timeout: in place of the function's own.
        cancel_after: seconds after which a cancel notice comes.
        traceparent: the W3C trace context.
    """
    if not isinstance(function, Function):
        raise TypeError(f"{function!r} is no function of callfan; decorate it with @function")
    dispatch = Dispatch(
        key=Key("sess_test", "turn_test", "call_test"),
        function=function.name,
        arguments=_bytes(arguments),
        attempt=attempt,
        handover=1,
        nonce="1-test",
        result_subject=f"fn.result.{function.token}.p00",
        idempotency_key="call_0123456789abcdefghijkl",
        timeout_ms=None if timeout is None else max(round(seconds(timeout) * 1000), 1),
        uncertain=uncertain,
        on_uncertain=on_uncertain,
        traceparent=traceparent,
    )
    results: list[Outcome | BaseException] = []

    def work() -> None:
        try:
            results.append(asyncio.run(_invoke(function, dispatch, cancel_after)))
        except BaseException as err:
            results.append(err)

    thread = threading.Thread(target=work, name="callfan-testing", daemon=True)  # the caller may have an event loop
    thread.start()
    thread.join()
    result = results[0]
    if isinstance(result, BaseException):
        raise result
    return result


async def ainvoke(
    function: Function[..., Any] | Callable[..., Any], arguments: Mapping[str, Any] | str | bytes | None = None, **options: Any
) -> Outcome:
    """As invoke, for tests that have an event loop."""
    return await asyncio.to_thread(invoke, function, arguments, **options)


def _bytes(arguments: Mapping[str, Any] | str | bytes | None) -> bytes:
    if arguments is None:
        return b"{}"
    if isinstance(arguments, bytes):
        return arguments
    if isinstance(arguments, str):
        return arguments.encode()
    return str(json.loads(encode_output(dict(arguments)))).encode()


async def _invoke(f: Function[..., Any], d: Dispatch, cancel_after: float | None) -> Outcome:
    hosts, log = Hosts(), logging.getLogger("callfan")
    entered: list[Running[Any]] = []

    def enter(running: Running[T]) -> Running[T]:
        entered.append(running)
        if cancel_after is not None:
            asyncio.get_running_loop().call_later(cancel_after, running.end, "cancelled")
        return running

    try:
        end = await _resolve(f, d, lambda: enter(attempt.ask(hosts, log, f, d, None))) if d.uncertain else None
        if end is None:
            end = await attempt.end_of(enter(attempt.begin(hosts, log, f, d, None, may_have_run=d.uncertain)))
        return _outcome(d, end)
    finally:
        for running in entered:
            await running.leave()
        await hosts.close()


async def _resolve(f: Function[..., Any], d: Dispatch, ask: Callable[[], Running[Any]]) -> Ending | None:
    if choice(f, d) == "rerun":
        return None
    if not verifiable(f, d):
        return unknown(f, d, texts.MAY_HAVE_RUN)
    if not f.verifies:
        return uncertain(texts.NO_VERIFY)
    return await attempt.verdict_of(ask())


def _outcome(d: Dispatch, end: Ending) -> Outcome:
    o = end.outcome
    if o is None:
        return Outcome("")
    return Outcome(
        kind=o.kind,
        output=json.loads(o.output) if o.kind == "success" else None,
        error=o.error,
        cause=o.cause,
        reason=o.reason,
        after=o.after_ms / 1000,
        payload=encode_outcome(d, o).body,
    )
