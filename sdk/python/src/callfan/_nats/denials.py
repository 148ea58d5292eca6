"""What the NATS server refused. A refused publication gets no answer; the reason comes apart from it."""

from __future__ import annotations

import asyncio
import re

from callfan.errors import PermissionDenied

_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"', re.IGNORECASE)
_MOST = 4096


class Denials:
    """nats-py writes errors in small letters, so subjects are known by them here."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._spelled: dict[str, str] = {}
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    def spell(self, subject: str) -> None:
        """Remembers how a subject that will be used is written."""
        if len(self._spelled) < _MOST:
            self._spelled[subject.lower()] = subject

    def record(self, text: str) -> PermissionDenied | None:
        """Takes the server's error; None when it is another one."""
        match = _VIOLATION.search(text)
        if match is None:
            return None
        operation = "publish" if match[1].lower() == "publish" else "subscribe"
        subject = match[2].lower()
        for waiting in self._waiting.pop(subject, set()):
            if not waiting.done():
                waiting.set_result(None)
        return PermissionDenied(operation, self._spelling(subject), self._user)

    def _spelling(self, subject: str) -> str:
        if subject in self._spelled:
            return self._spelled[subject]
        for known, spelled in self._spelled.items():  # a wildcard stands for acks and inboxes
            if known.endswith(".>") and subject.startswith(known[:-1]):
                return spelled
        return subject

    def watch(self, subject: str) -> asyncio.Future[None]:
        """Is done when the subject is refused next."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(subject.lower(), set()).add(future)
        return future

    def forget(self, subject: str, future: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(subject.lower())
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                self._waiting.pop(subject.lower(), None)
        future.cancel()

    def error(self, subject: str) -> PermissionDenied:
        return PermissionDenied("publish", subject, self._user)
