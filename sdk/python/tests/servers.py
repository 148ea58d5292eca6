"""A real nats-server, and as much of a dispatcher as an executor needs."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig

from callfan._wire.names import token
from conftest import program

ADMIN = "{user: admin, password: admin}"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Server:
    """It keeps its address over restarts and changes of its users."""

    def __init__(self, directory: Path, users: str, cluster: list[int] | None = None) -> None:
        """cluster has the ports of its members' routes, this one's first; without it the server stands alone."""
        self.port = free_port()
        self._cluster = cluster
        self._directory = directory
        self._config = directory / "nats.conf"
        self._process: subprocess.Popen[bytes] | None = None
        self.write(users)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def write(self, users: str) -> None:
        storage = f'jetstream {{store_dir: "{self._directory}/js"}}'
        if self._cluster is not None:
            routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in self._cluster)
            storage = f'cluster {{name: c, listen: "127.0.0.1:{self._cluster[0]}", routes: [{routes}]}}'
        self._config.write_text(
            f'listen: "127.0.0.1:{self.port}"\n{storage}\nmax_payload: 1MB\nauthorization {{users: [{ADMIN}, {users}]}}\n'
        )

    def start(self) -> None:
        self._process = subprocess.Popen([program("nats-server"), "-c", str(self._config)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            assert time.monotonic() < deadline, "nats-server does not listen"
            time.sleep(0.02)

    def reload(self, users: str) -> None:
        self.write(users)
        self.signal(signal.SIGHUP)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()


class Dispatcher:
    """Answers registrations and look-ups, hands calls over, and reads outcomes."""

    def __init__(self, url: str, functions: list[str], ack_wait: float = 30.0, refusal: str = "") -> None:
        self._refusal = refusal
        self._url, self._functions, self._ack_wait = url, functions, ack_wait
        self.registered: list[dict[str, object]] = []
        self.client: Client

    async def __aenter__(self) -> Dispatcher:
        self.client = await nats.connect(self._url, user="admin", password="admin", max_reconnect_attempts=-1, reconnect_time_wait=0.2)
        js = self.client.jetstream()
        await js.add_stream(StreamConfig(name="FN_CALLS", subjects=["fn.call.*"], retention=RetentionPolicy.WORK_QUEUE))
        await js.add_stream(StreamConfig(name="FN_RESULTS", subjects=["fn.result.*.*"]))
        filters = [f"fn.call.{token(f)}" for f in self._functions]
        pool = ConsumerConfig(durable_name="pool_T", filter_subjects=filters, ack_policy=AckPolicy.EXPLICIT, ack_wait=self._ack_wait)
        await js.add_consumer("FN_CALLS", pool)
        await self.client.subscribe("fn.register.*", cb=self._register)
        await self.client.subscribe("fn.outcome.*", cb=self._look_up)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def _register(self, msg: Msg) -> None:
        self.registered.append(json.loads(msg.data))
        if self._refusal:
            await msg.respond(json.dumps({"ok": False, "error": {"code": self._refusal, "message": "it belongs to pool erp"}}).encode())
            return
        binding = {
            "calls_stream": "FN_CALLS",
            "consumer": "pool_T",
            "ack_wait_ms": round(self._ack_wait * 1000),
            "max_payload": 1 << 20,
            "result_prefix": "fn.result.",
            "refresh_ms": 30000,
        }
        await msg.respond(json.dumps({"ok": True, "binding": binding}).encode())

    async def _look_up(self, msg: Msg) -> None:
        await msg.respond(b'{"standing":"pending"}')

    async def hand_over(self, function: str, call_id: str, arguments: str = "{}") -> None:
        t = token(function)
        headers = {
            "Fn-Protocol": "1",
            "Fn-Attempt": "1",
            "Fn-Handover": "1",
            "Fn-Nonce": f"1-{call_id}",
            "Fn-Result-Subject": f"fn.result.{t}.p07",
            "Fn-Idempotency-Key": f"call_{call_id}",
        }
        body = f'{{"session_id":"s","turn_id":"t","call_id":"{call_id}","name":"{function}","arguments":{arguments}}}'
        await self.client.jetstream().publish(f"fn.call.{t}", body.encode(), headers=headers)

    async def outcome(self, sequence: int, within: float = 20) -> dict[str, object]:
        """The outcome of that number in the stream, from 1."""
        async with asyncio.timeout(within):
            while True:
                with suppress(nats.js.errors.NotFoundError, nats.errors.TimeoutError):
                    stored = await self.client.jetstream().get_msg("FN_RESULTS", sequence)
                    return dict(json.loads(stored.data or b"{}"))
                await asyncio.sleep(0.02)

    async def waiting(self) -> int:
        """How many calls are in the queue."""
        return (await self.client.jetstream().stream_info("FN_CALLS")).state.messages
