"""How long a message may have been on its way."""

from __future__ import annotations

import math


class Transit:
    """Bounds it for each message of a line, in the order in which they are read.

    The server does not tell when it sent one, and a network that fails for a while delivers late what was sent before. But
    what arrives after something that the server said was sent after that, and what arrives after the answer to a ping was
    sent after the ping (ADR 0012). Times are seconds of a clock that never jumps.
    """

    def __init__(self, now: float) -> None:
        #: A time before which none of the messages that are still to be read was sent.
        self._since = now
        #: When the server was pinged, if the messages behind a silence may all have been sent in it.
        self._pinged: float | None = None
        #: How many messages before the ping's answer are still to be read; None while there is no answer.
        self._ahead: int | None = None
        self._silence = math.inf

    def asked(self, now: float, silence: float) -> None:
        """A pull was sent: its messages come after that. For `silence` at most, the server says nothing on a network that is well."""
        self._silence = silence
        if self._pinged is None:
            self._since = now

    def read(self, now: float) -> tuple[float, bool]:
        """The longest that a message which is read now may have been on its way, and whether a ping is wanted."""
        if self._pinged is not None and self._ahead == 0:
            self._since, self._pinged, self._ahead = self._pinged, None, None
        longest = now - self._since
        if self._pinged is not None:
            if self._ahead is not None:
                self._ahead -= 1
            return longest, False
        if longest > self._silence:
            self._pinged = now
            return longest, True
        self._since = now
        return longest, False

    def answered(self, unread: int) -> None:
        """The ping is answered; so many messages that came before the answer are not read yet."""
        self._ahead = unread
