"""Outcomes: what an attempt came to, as a message."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from callfan._wire import jsontext
from callfan._wire.dispatch import PROTOCOL, Dispatch, cut

Kind = Literal["success", "failure", "retry", "released", "uncertain"]

_CAUSE = re.compile(r"[a-z_]{1,32}")
_MAX_REASON = 64 << 10
_MAX_EXECUTOR = 128
_MAX_AFTER_MS = 7 * 24 * 3600 * 1000


class InvalidOutcome(ValueError):
    """The outcome cannot be put on the wire."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt came to. `output` is JSON: a string, an array of content parts, or null."""

    kind: Kind
    output: str = field(default="null", repr=False)
    error: str = field(default="", repr=False)
    cause: str = ""
    reason: str = field(default="", repr=False)
    after_ms: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it is published."""

    subject: str
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """What the server compares with max_payload."""
        encoded = sum(len(f"{name}: {value}\r\n".encode()) for name, value in self.headers.items())
        return len(self.body) + len("NATS/1.0\r\n") + encoded + len("\r\n")


def encode_outcome(d: Dispatch, o: Outcome, executor: str = "") -> Message:
    """The message that answers the hand-over."""
    text = jsontext.encode_text
    parts = [
        f'"session_id":{text(d.key.session_id)}',
        f'"turn_id":{text(d.key.turn_id)}',
        f'"call_id":{text(d.key.call_id)}',
        f'"nonce":{text(d.nonce)}',
    ]
    name = executor_name(executor)
    if name:
        parts.append(f'"executor":{text(name)}')
    if o.kind == "success":
        if not o.output.startswith(('"', "[", "null")):
            raise InvalidOutcome("the output is not a text, an array of content parts or null")
        parts.append(f'"success":true,"output":{o.output}')
    elif o.kind == "failure":
        parts.append(f'"success":false,"error":{text(o.error)}')
        if o.cause:
            if not _CAUSE.fullmatch(o.cause):
                raise InvalidOutcome(f'the cause "{o.cause}" does not match {_CAUSE.pattern}')
            parts.append(f'"cause":{text(o.cause)}')
    elif o.kind == "retry":
        after = min(max(o.after_ms, 0), _MAX_AFTER_MS)
        parts.append(f'"retry":{{"reason":{text(_reason(o))},"after_ms":{after}}}')
    elif o.kind == "uncertain":
        parts.append(f'"uncertain":{{"reason":{text(_reason(o))}}}')
    else:
        parts.append('"released":true')
    body = ("{" + ",".join(parts) + "}").encode()
    message_id = f"{d.nonce}.{o.kind}" + (f".{d.handover}" if o.kind == "released" else "")
    return Message(d.result_subject, {"Nats-Msg-Id": message_id, "Fn-Protocol": PROTOCOL}, body)


def _reason(o: Outcome) -> str:
    return cut(jsontext.valid_text(o.reason), _MAX_REASON)


def executor_name(name: str) -> str:
    """The printable part of a process's name, as far as it fits."""
    return cut("".join(c for c in name if c.isprintable() and c != "�"), _MAX_EXECUTOR)
