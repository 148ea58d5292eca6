"""A queue without servers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from callfan import Function
from callfan._run.hosts import Hosts
from callfan._run.link import Bound, Taken
from callfan._run.worker import Worker
from callfan._wire.dispatch import Dispatch, Key, decode_call
from callfan._wire.names import Subjects, token
from callfan._wire.outcome import Outcome
from callfan._wire.requests import NoAnswer


class FakeTaken:
    """A delivered call that notes what is done with it."""

    def __init__(self, dispatch: Dispatch | None, deliveries: int = 1, invalid: str = "", transit: float = 0.0) -> None:
        self.dispatch, self.deliveries, self.invalid, self.transit = dispatch, deliveries, invalid, transit
        self.done: list[str] = []

    async def extend(self) -> None:
        self.done.append("extend")

    async def ack(self) -> None:
        self.done.append("ack")

    async def term(self, reason: str) -> None:
        self.done.append(f"term {reason}")

    @property
    def acked(self) -> bool:
        return "ack" in self.done


class FakeLink:
    """A link whose pulls give what `give` put there."""

    def __init__(self, ack_wait: float = 30.0) -> None:
        self.ack_wait = ack_wait
        self.standing: str | None = "pending"
        self.reported: list[tuple[Dispatch, Outcome]] = []
        self.looked_up = 0
        self.registered = 0
        self.batches: list[int] = []
        self.refusals: list[Exception] = []
        self.cancel: Callable[[Key, str], None] = lambda key, reason: None
        self._calls: asyncio.Queue[Taken] = asyncio.Queue()

    def give(self, taken: Taken) -> None:
        self._calls.put_nowait(taken)

    async def register(self) -> Bound:
        self.registered += 1
        return Bound(ack_wait=self.ack_wait, refresh=3600)

    async def pull(self, batch: int, each: Callable[[Taken], None]) -> None:
        self.batches.append(batch)
        for _ in range(batch):
            each(await self._calls.get())

    async def report(self, d: Dispatch, o: Outcome) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.reported.append((d, o))

    async def lookup(self, d: Dispatch) -> str:
        self.looked_up += 1
        if self.standing is None:
            raise NoAnswer("nobody")
        return self.standing

    async def on_cancel(self, each: Callable[[Key, str], None]) -> None:
        self.cancel = each

    @property
    def outcomes(self) -> list[Outcome]:
        return [o for _, o in self.reported]


def dispatch(function: str, arguments: str = "{}", **headers: str) -> Dispatch:
    """A call as it comes from the wire. Underscores of the headers' names are dashes."""
    t = token(function)
    given = {"Fn-Protocol": "1", "Fn-Attempt": "1", "Fn-Handover": "1", "Fn-Nonce": "1-nonce", "Fn-Result-Subject": f"fn.result.{t}.p07"}
    given["Fn-Idempotency-Key"] = "call_key"
    given.update({name.replace("_", "-"): value for name, value in headers.items()})
    call_id = given.pop("call-id", "call_1")
    body = f'{{"type":"function_call","session_id":"s","turn_id":"t","call_id":"{call_id}","name":"{function}","arguments":{arguments}}}'
    return decode_call(Subjects("fn"), f"fn.call.{t}", given, body.encode())


async def serving(link: FakeLink, *functions: Function[..., Any], concurrency: int = 4, stop_timeout: float = 5.0) -> Serving:
    hosts = Hosts()
    by_name = {f.name: f for f in functions}
    worker = Worker(link, by_name, hosts, concurrency=concurrency, stop_timeout=stop_timeout, log=logging.getLogger("callfan"))
    running = Serving(worker, hosts, asyncio.create_task(worker.serve()))
    async with asyncio.timeout(5):
        await worker.serving.wait()
    return running


class Serving:
    def __init__(self, worker: Worker, hosts: Hosts, task: asyncio.Task[None]) -> None:
        self.worker, self.hosts, self.task = worker, hosts, task

    async def __aenter__(self) -> Serving:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        self.worker.soft.set()
        async with asyncio.timeout(30):
            await self.task
        await self.hosts.close()


async def until(condition: Callable[[], object | Awaitable[object]], within: float = 5.0) -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        await asyncio.sleep(0.005)
