"""Pulls: the request for calls, and the status messages that tell about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

EXPIRES = 10.0
HEARTBEAT = 1.0
SILENCE = 2.5
_HEARTBEATS_PER_LEASE = 6
LARGEST = 256
_MAX_BYTES = 16 << 20

Action = Literal["continue", "ended", "register", "pull_again", "ask_consumer_info", "fault"]


def heartbeat(ack_wait: float) -> float:
    """How often a pull says that it is alive: a call that comes to an idle pull may have been on its way since the last time."""
    return min(HEARTBEAT, ack_wait / _HEARTBEATS_PER_LEASE) if ack_wait > 0 else HEARTBEAT


def pull_request(batch: int, max_payload: int, ack_wait: float) -> bytes:
    """Asks for up to so many calls."""
    return json.dumps(
        {
            "batch": batch,
            "expires": int(EXPIRES * 1e9),
            "idle_heartbeat": int(heartbeat(ack_wait) * 1e9),
            "max_bytes": max(_MAX_BYTES, 2 * max_payload),
        },
        separators=(",", ":"),
    ).encode()


def is_status(headers: Mapping[str, str] | None, body: bytes) -> bool:
    """Whether a message is about the pull rather than a call."""
    return not body and bool(headers) and bool(headers.get("Status"))  # type: ignore[union-attr]


def status(headers: Mapping[str, str]) -> tuple[Action, int]:
    """What to do, and how many of the calls asked for will not come."""
    code, description = headers.get("Status", ""), headers.get("Description", "")
    pending = headers.get("Nats-Pending-Messages", "")
    left = int(pending) if pending.isascii() and pending.isdigit() else 0
    if code == "100":
        return "continue", left
    if code in ("404", "408") or (code == "409" and description in ("Batch Completed", "Message Size Exceeds MaxBytes")):
        return "ended", left
    if code == "409" and description == "Consumer Deleted":
        return "register", left
    if code == "503":
        return "ask_consumer_info", left
    if code == "400":
        return "fault", left
    return "pull_again", left
