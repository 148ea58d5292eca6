"""The calls that may still be started."""

from __future__ import annotations

import asyncio

_BATCH = 16
_LARGEST = 256
_GATHER_FOR = 0.001


class Slots:
    def __init__(self, total: int) -> None:
        self._total = self._free = total
        self._freed = asyncio.Event()

    def release(self, count: int) -> None:
        if count:
            self._free += count
            self._freed.set()

    async def gather(self) -> int:
        """Takes the free slots as soon as they are worth a pull, or a moment after the first one is free."""
        while not self._free:
            self._freed.clear()
            await self._freed.wait()
        if self._free < min(_BATCH, self._total):
            await asyncio.sleep(_GATHER_FOR)
        count = min(self._free, _LARGEST)
        self._free -= count
        return count
