"""What a handler and a verify handler come to."""

from __future__ import annotations

import logging
import time
from typing import Any

from callfan import call as calls
from callfan._run import texts
from callfan._run.ending import Ending, choice, dropped, failed, left, released, uncertain, unknown, verifiable
from callfan._run.hosts import Hosts
from callfan._run.running import Running
from callfan._wire import jsontext
from callfan._wire.dispatch import Dispatch
from callfan._wire.outcome import Outcome
from callfan.errors import Failure, Retry, Uncertain
from callfan.function import Function
from callfan.verdict import CannotTell, Done, NotDone, Verdict


def begin(
    hosts: Hosts, log: logging.Logger, f: Function[..., Any], d: Dispatch, until: float | None, *, may_have_run: bool
) -> Running[str]:
    """Enters the handler."""
    code: dict[str, Any] = {"asynchronous": f.run_async} if f.is_async else {"sync": f.run}
    return Running(hosts, log, f, d, handler="function", until=until, uncertain=may_have_run, **code)


async def end_of(a: Running[str]) -> Ending:
    """Waits for what the handler comes to."""
    r = await a.wait()
    error = r.error if r is not None else None
    if a.reason == "cancelled":
        return dropped("cancelled")
    if r is not None and error is None:
        return Ending(Outcome("success", output=r.value or "null"))
    if a.reason == "stopped":  # the error, if there is one, is most likely of the interruption
        return _cut_off(a)
    if a.reason == "timeout":
        return _late(a)
    if isinstance(error, Retry):
        return Ending(Outcome("retry", reason=_text(error), after_ms=round(error.after * 1000)))
    if isinstance(error, Uncertain):
        return _lost(a, _text(error))
    if isinstance(error, Failure):
        return failed(error.cause, _text(error))
    _log_crash(a, error)
    return failed("panic", texts.FUNCTION_CRASHED)


def _late(a: Running[str]) -> Ending:
    after = f"{round(a.ends - a.began, 3):g}s"
    if a.at_deadline:
        return failed("deadline", f"timed out after {after}, at the call's deadline")
    return failed("timeout", f"timed out after {after}")


def _cut_off(a: Running[str]) -> Ending:
    """What the hard stop interrupted: what may be run again is given back, what can be verified is left."""
    if choice(a.f, a.d) == "rerun":
        return released()
    if verifiable(a.f, a.d):
        return left()
    return unknown(a.f, a.d, texts.INTERRUPTED)


def _lost(a: Running[str], why: str) -> Ending:
    """What may be run again is retried, what can be verified is left, of any other the outcome is unknown."""
    if choice(a.f, a.d) == "rerun":
        return Ending(Outcome("retry", reason=why))
    if verifiable(a.f, a.d) and a.f.verifies:
        return left()
    return unknown(a.f, a.d, why)


def ask(hosts: Hosts, log: logging.Logger, f: Function[..., Any], d: Dispatch, until: float | None) -> Running[Verdict]:
    """Enters the verify handler."""
    code: dict[str, Any] = {"asynchronous": f.ask_async} if f.verify_is_async else {"sync": f.ask}
    return Running(hosts, log, f, d, handler="verify", until=until, uncertain=True, **code)


async def verdict_of(v: Running[Verdict]) -> Ending | None:
    """Waits for the verdict. None lets the call run."""
    r = await v.wait()
    verdict, error = (r.value, r.error) if r is not None else (None, None)
    extra = {**calls.log_keys(v.call), "verdict": type(verdict).__name__}
    if v.reason == "cancelled":
        return dropped("cancelled")
    if isinstance(verdict, Done):
        v.log.info("uncertain call was verified", extra=extra)
        return Ending(Outcome("success", output=str(verdict.output)), reason="verified")
    if isinstance(verdict, NotDone):
        v.log.info("uncertain call was verified", extra=extra)
        return None
    if v.reason == "stopped":
        return left()
    if r is None:
        return uncertain(f"the verify handler did not answer within {round(v.ends - v.began, 3):g}s")
    if isinstance(error, Failure) and error.cause == "invalid_output":
        return failed("invalid_output", _text(error))
    if isinstance(error, (Failure, Retry, Uncertain)):
        return uncertain(f"the verify handler failed: {_text(error)}")
    if error is not None:
        _log_crash(v, error)
        return uncertain("the verify handler crashed")
    v.log.warning("uncertain call could not be verified", extra=extra)
    reason = verdict.reason if isinstance(verdict, CannotTell) else ""
    return uncertain(reason or "the verify handler could not tell")


def _text(error: Exception) -> str:
    text = jsontext.valid_text(str(error))
    return text if text.strip() else texts.NO_REASON


def _log_crash(a: Running[Any], error: BaseException | None) -> None:
    extra = {**calls.log_keys(a.call), "handler": a.handler, "after_seconds": round(time.monotonic() - a.began, 3)}
    a.log.error("function crashed", extra=extra, exc_info=error)
