"""JSON as bytes: where the members of an object lie, for arguments that nobody may decode and encode again.

The standard parser keeps no bytes and gives up on deep nesting and on long numbers, which are valid JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SPACE = re.compile(rb"[ \t\n\r]*")
_STRING = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_SCALAR = re.compile(_STRING.pattern + rb"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")


def refuse_constant(name: str) -> Any:
    """For parse_constant of json.loads: NaN and Infinity are not JSON."""
    raise ValueError(f"{name} is not JSON")


def is_json(text: bytes) -> bool:
    """Whether text is one JSON value."""
    try:
        json.loads(text.decode("utf-8", "replace"), parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        try:
            return _skip_space(text, skip_value(text, 0)) == len(text)
        except ValueError:
            return False
    return True


def members(body: bytes) -> list[tuple[str, bytes]]:
    """The names and the untouched values of the object in body, in order, those that come twice included."""
    found: list[tuple[str, bytes]] = []
    at = _skip_space(body, 0)
    if body[at : at + 1] != b"{":
        raise ValueError("the payload is not a JSON object")
    at = _skip_space(body, at + 1)
    more = body[at : at + 1] != b"}"
    while more:
        name, at = _key(body, at)
        end = skip_value(body, at)
        found.append((name, body[at:end]))
        at = _skip_space(body, end)
        more = body[at : at + 1] == b","
        if more:
            at = _skip_space(body, at + 1)
        elif body[at : at + 1] != b"}":
            raise _invalid(at)
    if _skip_space(body, at + 1) != len(body):
        raise _invalid(at + 1)
    return found


def skip_value(body: bytes, at: int) -> int:
    """The index after the value at that index. It does not recurse: values may be nested as deep as memory goes."""
    closers = bytearray()
    while True:
        at = _skip_space(body, at)
        opener = body[at : at + 1]
        if opener in (b"{", b"["):
            closer = b"}" if opener == b"{" else b"]"
            at = _skip_space(body, at + 1)
            if body[at : at + 1] != closer:
                closers += closer
                if opener == b"{":
                    at = _skip_key(body, at)
                continue
            at += 1
        else:
            scalar = _SCALAR.match(body, at)
            if scalar is None:
                raise _invalid(at)
            at = scalar.end()
        while closers:  # a value has ended
            at = _skip_space(body, at)
            mark = body[at : at + 1]
            if mark == b",":
                at = _skip_space(body, at + 1)
                if closers[-1:] == b"}":
                    at = _skip_key(body, at)
                break
            if mark != closers[-1:]:
                raise _invalid(at)
            closers.pop()
            at += 1
        else:
            return at


def _skip_space(body: bytes, at: int) -> int:
    match = _SPACE.match(body, at)
    return match.end() if match else at


def _skip_key(body: bytes, at: int) -> int:
    match = _STRING.match(body, at)
    if match is None:
        raise _invalid(at)
    at = _skip_space(body, match.end())
    if body[at : at + 1] != b":":
        raise _invalid(at)
    return _skip_space(body, at + 1)


def _key(body: bytes, at: int) -> tuple[str, int]:
    match = _STRING.match(body, at)
    if match is None:
        raise _invalid(at)
    return decode_text(match.group()), _skip_key(body, at)


def decode_text(raw: bytes) -> str:
    """Reads a JSON string. What is not valid Unicode becomes U+FFFD."""
    value = json.loads(raw.decode("utf-8", "replace"))
    if not isinstance(value, str):
        raise ValueError("not a text")
    return valid_text(value)


def valid_text(text: str) -> str:
    """The text with each surrogate that has no partner replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def encode_text(text: str) -> str:
    """The text as a JSON string. Nothing is escaped that need not be."""
    return json.dumps(valid_text(text), ensure_ascii=False)


def _invalid(at: int) -> ValueError:
    return ValueError(f"the payload is not valid JSON, at byte {at}")
