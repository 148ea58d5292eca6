"""The conformance executor of the Python SDK; see protocol/conformance.md."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import replace
from typing import Any

from callfan import Call, CannotTell, Content, Done, Executor, Failure, NatsConfig, NotDone, Retry, Verdict, current_call

ex = Executor(
    pool=os.environ["CONFORMANCE_POOL"],
    nats=replace(NatsConfig.from_environment(), inbox_prefix=os.environ.get("CONFORMANCE_INBOX_PREFIX") or "_INBOX"),
    concurrency=int(os.environ["EXECUTOR_CONCURRENCY"]),
    stop_timeout=int(os.environ["EXECUTOR_STOP_TIMEOUT_MS"]) / 1000,
)

_journal = os.open(os.environ["CONFORMANCE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def log(event: str) -> None:
    call = current_call()
    line = {
        "event": event,
        "function": call.function,
        "call_id": call.call_id,
        "attempt": call.attempt,
        "idempotency_key": call.idempotency_key,
        "at_ms": time.time_ns() // 1_000_000,
        "pid": os.getpid(),
    }
    os.write(_journal, (json.dumps(line) + "\n").encode())


async def pause(ms: int) -> None:
    """Waits; an async handler is cancelled when its call is."""
    try:
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        log("cancelled")
        raise


def echo(arguments: bytes) -> bytes:
    """Returns its arguments."""
    log("start")
    log("end")
    return arguments


OBJECT = {"type": "object"}
for name in ("echo", "sag mir, wo ☂.*>", "a/" + 300 * "n"):
    ex.function(name=name, raw=True, parameters=OBJECT, effects="none")(echo)


@ex.function(effects="none")
def fail(text: str) -> None:
    """Fails with a text."""
    log("start")
    log("end")
    raise Failure(text)


@ex.function(effects="idempotent", attempts=5)
def retry(after_ms: int, ok_at: int, call: Call) -> str:
    """Fails for a technical reason until an attempt."""
    log("start")
    log("end")
    if call.attempt < ok_at:
        raise Retry("not yet", after=after_ms / 1000)
    return "ok"


@ex.function(effects="idempotent")
async def sleep(ms: int) -> str:
    """Sleeps."""
    log("start")
    await pause(ms)
    log("end")
    return "slept"


@ex.function(effects="idempotent")
def key(call: Call) -> dict[str, Any]:
    """Tells about its call."""
    log("start")
    about: dict[str, Any] = {
        "idempotency_key": call.idempotency_key,
        "attempt": call.attempt,
        "session_id": call.session_id,
        "turn_id": call.turn_id,
        "call_id": call.call_id,
        "function": call.function,
        "deadline_ms": round(call.deadline.timestamp() * 1000),
    }
    if call.traceparent:
        about["traceparent"] = call.traceparent
    log("end")
    return about


async def paid(ms: int) -> str:
    log("start")
    log("effect")
    await pause(ms)
    log("end")
    return "paid"


@ex.function
async def pay_blind(ms: int = 0) -> str:
    """Pays, and cannot be asked about it."""
    return await paid(ms)


@ex.function(on_uncertain="park")
async def pay_park(ms: int = 0) -> str:
    """Pays, and an operator is asked about it."""
    return await paid(ms)


@ex.function
async def pay(verdict: str, ms: int = 0) -> str:
    """Pays."""
    return await paid(ms)


@pay.verify
def verify_pay(verdict: str) -> Verdict:
    log("verify")
    match verdict:
        case "done":
            return Done("verified")
        case "not_done":
            return NotDone()
        case "cannot_tell":
            return CannotTell("no receipt")
    raise RuntimeError("secret-detail: the verify handler crashes")


@ex.function(effects="none")
def text(text: str) -> str:
    """Returns a text."""
    log("start")
    log("end")
    return text


@ex.function(effects="none")
def parts() -> Content:
    """Returns content parts."""
    log("start")
    log("end")
    return Content("first", "second ☂")


@ex.function(name="object", effects="none")
def object_() -> dict[str, Any]:
    """Returns an object."""
    log("start")
    log("end")
    return {
        "name": "Žluťoučký kůň ☂",
        "nested": {"list": [1, 2.5, True, None, "<a>&"], "empty": {}},
        "integer": 9007199254740991,
        "text": '{"quoted":"\\n"}',
    }


@ex.function(effects="none")
def nothing() -> None:
    """Returns nothing."""
    log("start")
    log("end")


@ex.function(effects="none")
def crash() -> None:
    """Crashes."""
    log("start")
    log("end")
    raise RuntimeError("secret-detail")


@ex.function(effects="none")
def typed(count: int) -> str:
    """Takes an integer."""
    log("start")
    log("end")
    return str(count)


@ex.function(effects="idempotent")
def block(ms: int) -> str:
    """Keeps its thread busy."""
    log("start")
    until = time.monotonic() + ms / 1000
    while time.monotonic() < until:
        pass
    log("end")
    return "blocked"


@ex.function(effects="none", timeout="1s", attempts=1)
def stuck() -> None:
    """Never returns."""
    log("start")
    time.sleep(600)


@ex.function(name="exit", effects="idempotent")
def exit_(unless: str) -> str:
    """Ends the process."""
    log("start")
    if not os.path.exists(unless):
        os._exit(3)
    log("end")
    return "alive"


@ex.function(effects="none")
def large(bytes: int) -> str:
    """Returns a large text."""
    log("start")
    log("end")
    return "x" * bytes


if __name__ == "__main__":
    ex.run()
