"""The executor on a real nats-server, for what `callfan conformance` does not look at."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from callfan import Executor, NatsConfig, PermissionDenied, RegistrationRefused
from callfan._nats.connection import Connection
from fakes import until
from servers import Dispatcher, Server, free_port

LEAST = """permissions: {
  publish: ["fn.register.f", "fn.outcome.f", %s"$JS.API.CONSUMER.INFO.FN_CALLS.pool_T",
            "$JS.API.CONSUMER.MSG.NEXT.FN_CALLS.pool_T", "$JS.ACK.FN_CALLS.pool_T.>"]
  subscribe: ["_INBOX_t.>", "fn.cancel.f"]}"""
ALL = '"fn.result.f.>", '


def user(password: str, results: str = ALL) -> str:
    return f"{{user: t, password: {password}, {LEAST % results}}}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    s = Server(tmp_path, user("right"))
    s.start()
    yield s
    s.stop()


def executor(server: Server, password: str = "right") -> Executor:
    ex = Executor("T", nats=NatsConfig(url=server.url, user="t", password=password, inbox_prefix="_INBOX_t"), stop_timeout=5)

    @ex.function(name="f", effects="none")
    def f(n: int = 0) -> int:
        return n

    return ex


@asynccontextmanager
async def served(ex: Executor, *, ready: bool = True) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(ex.serve())
    try:
        if ready:
            assert await asyncio.to_thread(ex.wait_ready, 20)
        yield task
    finally:
        ex.stop()
        async with asyncio.timeout(20):
            await task


async def test_refused_credentials_are_tried_until_they_are_accepted(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async with Dispatcher(server.url, ["f"]) as d, served(executor(server, "sesame"), ready=False):
        await d.hand_over("f", "c1", '{"n":7}')
        await until(lambda: "cannot connect to NATS" in caplog.text, within=20)
        assert not d.registered
        server.reload(user("sesame"))
        assert (await d.outcome(1))["output"] == "7"
        server.reload(user("another"))  # which drops the connection
        await until(lambda: "connection to NATS lost" in caplog.text, within=20)
        server.reload(user("sesame"))
        await d.hand_over("f", "c2", '{"n":8}')
        assert (await d.outcome(2))["output"] == "8"
    assert "sesame" not in caplog.text


async def test_a_forbidden_result_is_logged_as_it_is_written_and_the_call_kept(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.reload(user("right", results=""))
    async with Dispatcher(server.url, ["f"]) as d, served(executor(server)):
        await d.hand_over("f", "c1")
        await until(lambda: "outcome could not be reported" in caplog.text, within=20)
        assert 'user "t" may not publish to "fn.result.f.p07"; allow that subject' in caplog.text
        assert await d.waiting() == 1


async def test_a_forbidden_registration_ends_the_executor(server: Server) -> None:
    server.reload(user("right").replace('"fn.register.f", ', ""))
    with pytest.raises(PermissionDenied, match=r"fn\.register\.f"):
        async with asyncio.timeout(20):
            await executor(server).serve()


async def test_a_refused_registration_ends_the_executor(server: Server) -> None:
    async with Dispatcher(server.url, ["f"], refusal="function_taken"):
        with pytest.raises(RegistrationRefused, match="it belongs to pool erp") as refused:
            async with asyncio.timeout(20):
                await executor(server).serve()
    assert refused.value.code == "function_taken"


async def test_a_server_that_stands_still_is_left_and_found_again(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async with Dispatcher(server.url, ["f"], ack_wait=60) as d, served(executor(server)):
        await d.hand_over("f", "c1", '{"n":1}')
        assert (await d.outcome(1))["output"] == "1"
        server.signal(signal.SIGSTOP)
        await until(lambda: "connection to NATS lost" in caplog.text, within=30)
        server.signal(signal.SIGCONT)
        await asyncio.sleep(1)  # the dispatcher's own connection comes back
        await d.hand_over("f", "c2", '{"n":2}')
        assert (await d.outcome(2))["output"] == "2"


async def test_thousands_of_calls(server: Server) -> None:
    calls = 2000
    async with Dispatcher(server.url, ["f"]) as d:
        await asyncio.gather(*(d.hand_over("f", f"c{n}", f'{{"n":{n}}}') for n in range(calls)))
        async with served(executor(server)):
            await d.outcome(calls, within=60)
            async with asyncio.timeout(10):
                while await d.waiting():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        assert {(await d.outcome(n))["call_id"] for n in range(1, 200)} <= {f"c{n}" for n in range(calls)}
        assert (await d.client.jetstream().stream_info("FN_RESULTS")).state.messages == calls


async def test_members_of_the_cluster_are_found(tmp_path: Path) -> None:
    """One address is enough: the server tells the others."""
    routes = [free_port(), free_port()]
    servers = []
    for number, ports in enumerate((routes, routes[::-1])):
        directory = tmp_path / str(number)
        directory.mkdir()
        servers.append(Server(directory, user("right"), ports))
    try:
        for s in servers:
            s.start()
        connection = Connection(NatsConfig(url=servers[0].url, user="t", password="right"), "test", logging.getLogger("callfan"))
        connection.start()
        async with asyncio.timeout(20):
            await connection.wait_connected()
        await until(lambda: connection.client.discovered_servers, within=20)
        servers[0].stop()
        await until(lambda: not connection.connected, within=20)
        async with asyncio.timeout(20):
            await connection.wait_connected()
        connected = connection.client.connected_url
        assert connected is not None
        assert connected.port == servers[1].port
        await connection.close()
    finally:
        for s in servers:
            s.stop()
