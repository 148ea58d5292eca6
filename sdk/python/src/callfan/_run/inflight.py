"""The calls that this process holds, to find a repeated delivery and the target of a cancel notice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from callfan._wire.dispatch import Dispatch, Key

_NOTICES_FOR = 30.0
_NOTICES_MOST = 10_000


class Held:
    """One call in this process, from its delivery to its end."""

    def __init__(self, noticed: bool) -> None:
        #: A cancel notice about the call came before it.
        self.noticed = noticed
        self.cancelled = asyncio.Event()
        self._cancel: Callable[[], None] | None = None

    def started(self, cancel: Callable[[], None]) -> None:
        """Tells how to cancel what is done with the call now. A notice that came earlier cancels it at once."""
        self._cancel = cancel
        if self.cancelled.is_set():
            cancel()

    def cancel(self) -> None:
        self.cancelled.set()
        if self._cancel is not None:
            self._cancel()


class Inflight:
    def __init__(self) -> None:
        self._calls: dict[Key, dict[tuple[Key, int, int], Held]] = {}
        # A notice may overtake its call on the way. One that is remembered for too long does no harm: the call is
        # looked up before it is run.
        self._recent: dict[Key, None] = {}
        self._older: dict[Key, None] = {}
        self._since = time.monotonic()

    def add(self, d: Dispatch) -> Held | None:
        """Enters the call. None when this very hand-over is held already."""
        by_id = self._calls.setdefault(d.key, {})
        if d.handover_id in by_id:
            return None
        held = by_id[d.handover_id] = Held(d.key in self._recent or d.key in self._older)
        return held

    def remove(self, d: Dispatch) -> None:
        by_id = self._calls.get(d.key, {})
        by_id.pop(d.handover_id, None)
        if not by_id:
            self._calls.pop(d.key, None)

    def cancel(self, key: Key) -> bool:
        """Cancels every attempt of the call that is held here; whether there was one."""
        found = list(self._calls.get(key, {}).values())
        for held in found:
            held.cancel()
        if not found:
            now = time.monotonic()
            if now - self._since > _NOTICES_FOR or len(self._recent) >= _NOTICES_MOST:
                self._older, self._recent, self._since = self._recent, {}, now
            self._recent[key] = None
        return bool(found)
