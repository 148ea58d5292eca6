"""The leases of the held calls, extended from one task whatever handlers do."""

from __future__ import annotations

import asyncio
import logging
import time

from callfan._run.link import Taken

_DEFAULT_ACK_WAIT = 30.0
#: How long it takes at most to read what arrived while the process stood still.
_DOUBT_FOR = 1.0


class Lease:
    """The hold on one delivered call, until then or until it is dropped."""

    def __init__(self, owner: Leases, taken: Taken, until: float) -> None:
        self._owner, self.taken, self.until = owner, taken, until

    def extend(self, until: float) -> None:
        self.until = max(self.until, until)

    def drop(self) -> None:
        self._owner.held.discard(self)


class Leases:
    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._ack_wait = _DEFAULT_ACK_WAIT
        self._changed = asyncio.Event()
        self.held: set[Lease] = set()
        self._beaten: float | None = None
        self._doubt_until = 0.0

    def set_ack_wait(self, seconds: float) -> None:
        self._ack_wait = seconds if seconds > 0 else _DEFAULT_ACK_WAIT
        if self._beaten is None:  # no call comes before this: a standstill that begins before the first beat shows, too
            self._beaten = time.monotonic()
        self._changed.set()

    def hold(self, taken: Taken, until: float) -> Lease:
        lease = Lease(self, taken, until)
        self.held.add(lease)
        return lease

    async def run(self) -> None:
        """Extends the leases every third of the lease."""
        while True:
            try:
                async with asyncio.timeout(self._ack_wait / 3):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            await self._beat()

    def doubtful(self) -> bool:
        """A call that is about to be started may be with another executor.

        This process stood still (SIGSTOP, a paused container, a starved machine) for most of a lease, and what was
        delivered before is only read now. Its delivery count was true when it was sent.
        """
        self._alive()
        return time.monotonic() < self._doubt_until

    def late(self, transit: float) -> bool:
        """A call that was on its way for so long may be with another executor: its lease began when the server sent it.

        Half a lease is left for what comes until the first extension arrives.
        """
        return transit > self._ack_wait / 2

    def _alive(self) -> None:
        now = time.monotonic()
        if self._beaten is not None and now - self._beaten > self._ack_wait * 0.9:
            self._doubt_until = now + _DOUBT_FOR
        self._beaten = now

    async def _beat(self) -> None:
        self._alive()
        now = time.monotonic()
        try:
            async with asyncio.timeout(self._ack_wait / 3):  # a server that does not read must not hold up the next beat
                for lease in [held for held in self.held if now < held.until]:
                    await lease.taken.extend()
        except Exception as err:  # there is no connection; the next beat may have one
            self._log.debug("leases were not extended", extra={"error": str(err)})
