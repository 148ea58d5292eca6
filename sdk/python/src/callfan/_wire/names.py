"""Subjects: every one is put together here, from the installation's prefix and a function's token."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PARTITION = re.compile(r"p([0-9]{2}|[1-9][0-9]{2,4})")
_LONGEST_ENCODED = 128


def token(function: str) -> str:
    """The part of a subject that stands for a function's name. The empty name has none."""
    if _PLAIN.fullmatch(function):
        return function
    name = function.encode("utf-8", "surrogatepass")
    if not name:
        raise ValueError("a function's name is empty; give it one")
    if len(name) <= _LONGEST_ENCODED:
        return "=" + _base64url(name)
    return "~" + _base64url(hashlib.sha256(name).digest())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of one installation."""

    prefix: str = "fn"

    def register(self, function: str) -> str:
        return f"{self.prefix}.register.{token(function)}"

    def outcome(self, function: str) -> str:
        return f"{self.prefix}.outcome.{token(function)}"

    def cancel(self, function: str) -> str:
        return f"{self.prefix}.cancel.{token(function)}"

    def is_result(self, subject: str, function_token: str) -> bool:
        """Whether subject takes the outcomes of the function with that token."""
        head = f"{self.prefix}.result.{function_token}."
        return subject.startswith(head) and _PARTITION.fullmatch(subject, len(head)) is not None
