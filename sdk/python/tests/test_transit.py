"""How long a message may have been on its way."""

from __future__ import annotations

from callfan._nats.transit import Transit
from callfan._wire.pulls import heartbeat


def test_a_message_is_as_old_as_the_last_sign_of_life() -> None:
    transit = Transit(100.0)
    transit.asked(100.0, 2.5)
    assert transit.read(101.0) == (1.0, False)
    assert transit.read(101.5) == (0.5, False)
    transit.asked(103.0, 2.5)
    assert transit.read(103.25) == (0.25, False)


def test_what_ends_a_silence_may_be_as_old_as_it_until_the_ping_is_answered() -> None:
    transit = Transit(100.0)
    transit.asked(100.0, 2.5)
    assert transit.read(109.0) == (9.0, True)
    assert transit.read(109.5) == (9.5, False)
    transit.asked(110.0, 2.5)  # proves nothing about what is before the answer
    assert transit.read(110.5) == (10.5, False)
    transit.answered(2)
    assert transit.read(111.0) == (11.0, False)
    assert transit.read(111.5) == (11.5, False)
    assert transit.read(112.0) == (3.0, True)  # sent after the ping, which is long ago
    transit.answered(0)
    assert transit.read(112.5) == (0.5, False)
    assert transit.read(112.75) == (0.25, False)


def test_a_short_lease_has_more_heartbeats() -> None:
    assert [heartbeat(30), heartbeat(0), heartbeat(3)] == [1, 1, 0.5]
