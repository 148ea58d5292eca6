"""A connection to NATS that is made anew, for ever, when it is lost.

nats-py closes a connection for good after errors that pass by, as refused credentials and expired tokens, and keeps
publications over a reconnection. So each connection is a client of its own here, and what was not sent is not sent later.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from callfan._nats.denials import Denials
from callfan.config import NatsConfig, redact
from callfan.errors import PermissionDenied

_CONNECT_TIMEOUT = 5
_CLOSE_TIMEOUT = 5.0

Handler = Callable[[Msg], Awaitable[None]]


class NotConnected(Exception):
    """There is no connection, or it was lost meanwhile."""


class NoReply(Exception):
    """Nobody answered in time, or nobody is there."""


class Connection:
    def __init__(self, config: NatsConfig, name: str, log: logging.Logger) -> None:
        self.config, self.log = config, log
        self.denials = Denials(config.user or "")
        self._name = name
        self._servers = config.servers()
        self._discovered: list[str] = []
        self._tls = config.tls()
        self._client: Client | None = None
        self._changed = asyncio.Event()
        self._subscriptions: list[tuple[str, Handler]] = []
        self._task: asyncio.Task[None] | None = None
        self._problem = ""

    # Keeping it.

    def start(self) -> asyncio.Task[None]:
        """Begins to connect. The task goes on until close; it ends before that by a fault of the SDK alone."""
        self._task = asyncio.create_task(self._keep())
        return self._task

    async def _keep(self) -> None:
        connected_before = False
        for turn in itertools.count():
            servers = [*self._servers, *self._discovered]
            server = servers[turn % len(servers)]
            client, lost = Client(), asyncio.Event()
            if not await self._open(client, server, lost):
                await asyncio.sleep(random.uniform(0.25, 1.0) / max(len(servers) / 2, 1))
                continue
            self._problem = ""
            extra = {"server": redact(server), "max_payload": client.max_payload, "again": connected_before}
            self.log.info("connected to NATS", extra=extra)
            connected_before = True
            self._client = client
            self._notify()
            await self._stands(client, lost)
            self._discovered = self._others(client, server)
            self._client = None
            self._notify()
            self.log.warning(
                "connection to NATS lost; connecting again until it stands", extra={"error": self._problem or str(client.last_error or "")}
            )
            await self._discard(client)
            await asyncio.sleep(random.uniform(0.0, 0.25))

    async def _open(self, client: Client, server: str, lost: asyncio.Event) -> bool:
        problems: list[Exception] = []

        async def on_error(err: Exception) -> None:
            problems.append(err)
            del problems[:-1]
            self._reported(err)

        async def on_closed() -> None:
            lost.set()

        try:
            async with asyncio.timeout(3 * _CONNECT_TIMEOUT):
                await client.connect(
                    [server],
                    name=self._name,
                    error_cb=on_error,
                    closed_cb=on_closed,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=1,
                    connect_timeout=_CONNECT_TIMEOUT,
                    ping_interval=5,
                    max_outstanding_pings=2,
                    drain_timeout=int(_CLOSE_TIMEOUT),
                    flush_timeout=10,
                    inbox_prefix=self.config.inbox_prefix,
                    tls_hostname=self._tls_name(server),
                    **self._identity(),
                )
                for subject, handler in self._subscriptions:
                    await client.subscribe(subject, cb=handler)
                await client.flush(_CONNECT_TIMEOUT)
        except Exception as err:  # whatever it is, it is tried again
            cause = problems[0] if isinstance(err, nats.errors.NoServersError) and problems else err
            problem = f"{type(cause).__name__}: {cause}"
            if problem != self._problem:  # each reason once
                self._problem = problem
                extra = {"server": redact(server), "error": problem}
                self.log.warning("cannot connect to NATS; trying until it works", extra=extra)
            await self._discard(client)
            return False
        return True

    def _others(self, client: Client, server: str) -> list[str]:
        """The members of the cluster that the server named, as addresses with the credentials of its own."""
        seed = urlsplit(server)
        before = seed.netloc.rpartition("@")
        known = {urlsplit(s).netloc.rpartition("@")[2] for s in self._servers}
        found = {uri.netloc for uri in client.discovered_servers} - known
        return [f"{seed.scheme}://{before[0]}{before[1]}{netloc}" for netloc in sorted(found)]

    def _tls_name(self, server: str) -> str | None:
        """Certificates are made out to the names that were configured, and clusters tell addresses."""
        host = urlsplit(server).hostname or ""
        if self._tls is None or server in self._servers:
            return None
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return None
        return urlsplit(self._servers[0]).hostname

    def _identity(self) -> dict[str, Any]:
        c = self.config
        identity: dict[str, Any] = {}
        if c.creds:
            identity["user_credentials"] = c.creds
        elif c.nkey:
            identity["nkeys_seed"] = c.nkey
        elif c.user:
            identity["user"], identity["password"] = c.user, c.password or ""
        elif c.token:
            identity["token"] = c.token
        if self._tls is not None:
            identity["tls"] = self._tls
        return identity

    async def _stands(self, client: Client, lost: asyncio.Event) -> None:
        """Waits until the connection is lost. A client that hangs while it closes does not say so."""
        while not lost.is_set() and not client.is_closed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await lost.wait()

    async def _discard(self, client: Client) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                await client.close()

    def _reported(self, err: Exception) -> None:
        denied = self.denials.record(str(err))
        if denied is not None:
            self.log.error(str(denied), extra={"operation": denied.operation, "subject": denied.subject})
        elif self._client is not None:
            self._problem = f"{type(err).__name__}: {err}"
            self.log.debug("NATS reported an error", extra={"error": self._problem})

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # Using it.

    @property
    def client(self) -> Client:
        """The client of the connection that stands now."""
        client = self._client
        if client is None or not client.is_connected:
            raise NotConnected(self._problem or "there is no connection to NATS")
        return client

    @property
    def connected(self) -> bool:
        return self._client is not None and self._client.is_connected

    @property
    def max_payload(self) -> int:
        return self._client.max_payload if self._client is not None else 0

    async def wait_connected(self) -> None:
        while not self.connected:
            changed = self._changed
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await changed.wait()

    def changed(self) -> asyncio.Event:
        """Is set when the connection next comes or goes."""
        return self._changed

    async def publish(self, subject: str, body: bytes, *, reply: str = "") -> None:
        """Sends a message; nobody confirms it."""
        try:
            await self.client.publish(subject, body, reply=reply)
        except Exception as err:  # nats-py raises all sorts while it closes
            raise NotConnected(f"{type(err).__name__}: {err}") from err

    async def request(self, subject: str, body: bytes, *, within: float, headers: dict[str, str] | None = None) -> bytes:
        """Asks and gives the answer. NotConnected, NoReply, or PermissionDenied as soon as the server refuses the subject."""
        client, changed = self.client, self._changed
        self.denials.spell(subject)
        refused = self.denials.watch(subject)
        task = asyncio.ensure_future(client.request(subject, body, timeout=within, headers=headers))
        gone = asyncio.ensure_future(changed.wait())
        try:
            waiting: list[asyncio.Future[Any]] = [task, refused, gone]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result().data
            if refused.done():
                raise self.denials.error(subject)
            raise NotConnected("the connection was lost")
        except nats.errors.NoRespondersError:
            raise NoReply(f"nobody listens on {subject}") from None
        except (nats.errors.TimeoutError, TimeoutError):
            raise NoReply(f"no answer on {subject} within {within:g}s") from None
        except (PermissionDenied, NotConnected):
            raise
        except Exception as err:
            raise NotConnected(f"{type(err).__name__}: {err}") from err
        finally:
            self.denials.forget(subject, refused)
            gone.cancel()
            if not task.done():
                task.cancel()

    async def subscribe_for_ever(self, subject: str, handler: Handler) -> None:
        """Subscribes now and after each reconnection."""
        self.denials.spell(subject)
        self._subscriptions.append((subject, handler))
        if self.connected:
            with contextlib.suppress(Exception):  # the next connection subscribes
                await self.client.subscribe(subject, cb=handler)

    async def subscribe(self, subject: str, handler: Handler) -> Subscription:
        """Subscribes on the connection that stands now."""
        try:
            return await self.client.subscribe(subject, cb=handler)
        except Exception as err:
            raise NotConnected(f"{type(err).__name__}: {err}") from err

    def new_inbox(self) -> str:
        return self.client.new_inbox()

    async def close(self) -> None:
        """Sends what is buffered and closes."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        client, self._client = self._client, None
        if client is None:
            return
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSE_TIMEOUT + 1):
                await client.drain()
        await self._discard(client)
