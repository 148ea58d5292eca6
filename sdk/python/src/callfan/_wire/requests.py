"""What executors ask dispatchers, what they answer, and what dispatchers tell executors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from callfan._wire import jsontext
from callfan._wire.dispatch import Dispatch, Key

STANDINGS = frozenset({"pending", "answered", "cancelled", "unknown"})


class NoAnswer(Exception):
    """Nobody answered in a way that can be used: ask again."""


class Refused(Exception):
    """A dispatcher refused a registration, with a code and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a pool's calls come from. Times are milliseconds."""

    calls_stream: str
    consumer: str
    ack_wait_ms: int
    max_payload: int
    result_prefix: str
    refresh_ms: int


def registration(pool: str, definition: dict[str, Any], functions: list[str], executor: dict[str, str]) -> bytes:
    """The request that declares one of the executor's functions."""
    request = {"protocol": 1, "pool": pool, "function": definition, "functions": functions, "executor": executor}
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()


def decode_binding(body: bytes) -> Binding:
    """Reads the answer to a registration: a binding, Refused, or NoAnswer."""
    reply = _object(body)
    error = reply.get("error")
    if isinstance(error, dict):
        code, message = str(error.get("code", "")), str(error.get("message", ""))
        if code == "unavailable":
            raise NoAnswer(message)
        raise Refused(code, message)
    binding = reply.get("binding")
    if reply.get("ok") is not True or not isinstance(binding, dict):
        raise NoAnswer("the answer has no binding")
    texts = {name: binding.get(name, "") for name in ("calls_stream", "consumer", "result_prefix")}
    numbers = {name: binding.get(name, 0) for name in ("ack_wait_ms", "max_payload", "refresh_ms")}
    if not all(isinstance(v, str) for v in texts.values()) or not all(_whole(v) for v in numbers.values()):
        raise NoAnswer("the answer is not readable: its binding has members of wrong types")
    if not texts["calls_stream"] or not texts["consumer"]:
        raise NoAnswer("the answer's binding names no stream or no consumer")
    return Binding(**texts, **numbers)


def lookup(d: Dispatch) -> bytes:
    """The question how a call stands."""
    text = jsontext.encode_text
    return (
        f'{{"session_id":{text(d.key.session_id)},"turn_id":{text(d.key.turn_id)},"call_id":{text(d.key.call_id)},'
        f'"nonce":{text(d.nonce)},"handover":{d.handover}}}'
    ).encode()


def decode_standing(body: bytes) -> str:
    """Reads the answer to a look-up: a standing, or NoAnswer."""
    reply = _object(body)
    standing = reply.get("standing")
    if not isinstance(standing, str) or standing not in STANDINGS:
        raise NoAnswer(f"the dispatcher's answer has no known standing: {str(reply.get('error', ''))[:200]}")
    return standing


def decode_cancel(body: bytes) -> tuple[Key, str] | None:
    """Reads a cancel notice: the call and the reason. None is a notice to be ignored."""
    try:
        notice = _object(body)
    except NoAnswer:
        return None
    ids = [notice.get(name) for name in ("session_id", "turn_id", "call_id")]
    reason = notice.get("reason", "")
    if not all(isinstance(i, str) and i for i in ids) or not isinstance(reason, str):
        return None
    session, turn, call = (jsontext.valid_text(str(i)) for i in ids)
    return Key(session, turn, call), jsontext.valid_text(reason)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body.decode("utf-8", "replace"), parse_constant=jsontext.refuse_constant)
    except (ValueError, RecursionError):
        raise NoAnswer("the answer is not readable") from None
    if not isinstance(value, dict):
        raise NoAnswer("the answer is not a JSON object")
    return value


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
