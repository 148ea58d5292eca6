"""A hand-over: the call message of the protocol, decoded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from callfan._wire import jsontext
from callfan._wire.names import Subjects, token

PROTOCOL = "1"
CHOICES = frozenset({"rerun", "verify", "fail", "park"})

_NONCE = re.compile(r"[A-Za-z0-9_-]{1,128}")
_WHOLE = re.compile(r"[0-9]{1,19}")
_ARGUMENTS = b',"arguments":'


class InvalidCall(ValueError):
    """The message is no call; the text says why."""


@dataclass(frozen=True, slots=True)
class Key:
    """The three ids that name a call for ever."""

    session_id: str
    turn_id: str
    call_id: str


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One hand-over of a call. Times are milliseconds."""

    key: Key
    function: str
    arguments: bytes = field(repr=False)
    attempt: int
    handover: int
    nonce: str = field(repr=False)
    result_subject: str
    idempotency_key: str
    timeout_ms: int | None = None
    deadline_ms: int | None = None
    uncertain: bool = False
    on_uncertain: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None

    @property
    def handover_id(self) -> tuple[Key, int, int]:
        """The same for every delivery of this hand-over."""
        return self.key, self.attempt, self.handover


def decode_call(subjects: Subjects, subject: str, headers: Mapping[str, str] | None, body: bytes) -> Dispatch:
    """Reads a call message; InvalidCall when it is none."""
    headers = headers or {}
    protocol = headers.get("Fn-Protocol", "")
    if protocol != PROTOCOL:
        raise InvalidCall(f'protocol "{protocol}"; this executor speaks {PROTOCOL}')
    texts, arguments = _payload(body)
    for name in ("session_id", "turn_id", "call_id", "name"):
        if not texts.get(name):
            raise InvalidCall(f"{name} is missing")
    function = texts["name"]
    subject_token = subject.rpartition(".")[2]
    if token(function) != subject_token:
        raise InvalidCall(f'the call is for function "{function}" but came on "{subject}"')
    result_subject = headers.get("Fn-Result-Subject", "")
    if not subjects.is_result(result_subject, subject_token):
        raise InvalidCall(f'header Fn-Result-Subject is "{result_subject}", not a result subject of this function')
    nonce = headers.get("Fn-Nonce", "")
    if not _NONCE.fullmatch(nonce):
        raise InvalidCall("header Fn-Nonce is missing or malformed")
    choice = headers.get("Fn-On-Uncertain") or None
    if choice is not None and choice not in CHOICES:  # one that is not understood must not end in a second run
        raise InvalidCall(f'header Fn-On-Uncertain is "{choice}"')
    return Dispatch(
        key=Key(texts["session_id"], texts["turn_id"], texts["call_id"]),
        function=function,
        arguments=arguments,
        attempt=_required(headers, "Fn-Attempt"),
        handover=_required(headers, "Fn-Handover"),
        nonce=nonce,
        result_subject=result_subject,
        idempotency_key=headers.get("Fn-Idempotency-Key", ""),
        timeout_ms=_optional(headers, "Fn-Timeout-Ms"),
        deadline_ms=_optional(headers, "Fn-Deadline"),
        uncertain=headers.get("Fn-Uncertain") == "1",
        on_uncertain=choice,
        traceparent=headers.get("traceparent") or None,
        tracestate=headers.get("tracestate") or None,
    )


def _payload(body: bytes) -> tuple[dict[str, str], bytes]:
    """The texts of the payload by name, and the bytes of the arguments."""
    # Dispatchers write the arguments last. Then their bytes are found without looking at them all.
    head, mark, rest = body.partition(_ARGUMENTS)
    if mark and rest.endswith(b"}") and jsontext.is_json(rest[:-1]):
        try:
            known = json.loads(head.decode("utf-8", "replace") + "}", parse_constant=jsontext.refuse_constant)
        except (ValueError, RecursionError):
            known = None
        if isinstance(known, dict):
            return {k: jsontext.valid_text(v) for k, v in known.items() if isinstance(v, str)}, rest[:-1]
    texts: dict[str, str] = {}
    arguments = b""
    try:
        for name, value in jsontext.members(body):
            if name == "arguments":
                arguments = value
            elif value.startswith(b'"'):
                texts[name] = jsontext.decode_text(value)
            else:
                texts.pop(name, None)
    except ValueError as err:
        raise InvalidCall(str(err)) from None
    return texts, arguments


def _required(headers: Mapping[str, str], name: str) -> int:
    value = headers.get(name, "")
    number = int(value) if _WHOLE.fullmatch(value) else 0
    if not 1 <= number < 1 << 63:
        raise InvalidCall(f'header {name} is "{value}"')
    return number


def _optional(headers: Mapping[str, str], name: str) -> int | None:
    return _required(headers, name) if headers.get(name) else None


def deliveries(reply: str) -> int:
    """How often a message with this reply subject was handed out."""
    parts = reply.split(".")
    at = 6 if len(parts) >= 11 else 4
    if len(parts) > at and _WHOLE.fullmatch(parts[at]):
        return max(int(parts[at]), 1)
    return 1


def term_body(reason: str, headers: Mapping[str, str] | None) -> bytes:
    """What removes a message that is no call, with what a dispatcher needs to answer it."""
    line = " ".join(jsontext.valid_text(reason).split()) if "\n" in reason or "\r" in reason else jsontext.valid_text(reason)
    known = {
        "key": "Fn-Key",
        "attempt": "Fn-Attempt",
        "nonce": "Fn-Nonce",
        "result_subject": "Fn-Result-Subject",
        "on_uncertain": "Fn-On-Uncertain",
    }
    named = {name: (headers or {}).get(header) for name, header in known.items()}
    reasoned = {"reason": cut(line, 256), **{name: value for name, value in named.items() if value}}
    return b"+TERM " + json.dumps(reasoned, ensure_ascii=True, separators=(",", ":")).encode()


def cut(text: str, size: int) -> str:
    """As much of the text as fits into so many bytes of UTF-8."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= size else raw[:size].decode("utf-8", "ignore")
