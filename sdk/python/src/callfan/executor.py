"""Executors: they serve functions."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, overload

from callfan import function as functions
from callfan import logs
from callfan._nats.connection import Connection
from callfan._nats.link import NatsLink
from callfan._run.hosts import Hosts
from callfan._run.worker import Worker
from callfan._wire.outcome import executor_name
from callfan.config import NatsConfig
from callfan.errors import CallfanError, ConfigurationError
from callfan.function import Function
from callfan.policy import Backoff, Duration, Effects, OnUncertain, seconds

__all__ = ["Executor"]

P = ParamSpec("P")
R = TypeVar("R")

_POOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_ID = 128


class Executor:
    """A process that serves functions.

    Args:
        pool: the name of the deployment, 1 to 64 of `[A-Za-z0-9_-]`. All processes with one pool name must serve the same
            functions, since any of them may be given any call of the pool.
        nats: an address, or a NatsConfig; by default the environment decides (`NATS_URL`, `NATS_CREDS`, …).
        concurrency: how many calls run at once.
        stop_timeout: how long running handlers may go on after a stop began, in seconds. Keep it below the time that the
            platform gives (Kubernetes: 30 s).
        id: names this process in logs and in what it reports; by default host, process id and four random characters.
        version: the version of the program, for operators.
        logger: by default the logger `callfan`.
    """

    def __init__(
        self,
        pool: str,
        *,
        nats: NatsConfig | str | None = None,
        concurrency: int = 32,
        stop_timeout: float | timedelta = 25.0,
        id: str | None = None,
        version: str = "",
        logger: logging.Logger | None = None,
    ) -> None:
        if not _POOL.fullmatch(pool):
            raise ConfigurationError(f"the pool name {pool!r} is not 1 to 64 of A-Z a-z 0-9 _ -; rename the pool")
        if concurrency < 1:
            raise ConfigurationError(f"concurrency is {concurrency}; use 1 or more")
        if id is not None and (id != executor_name(id) or not id):
            raise ConfigurationError(f"id is {id!r}; use at most {_MAX_ID} bytes of printable characters, or leave it out")
        self.pool = pool
        self.id = id or _default_id()
        self.version = version
        self.concurrency = concurrency
        self.stop_timeout = max(seconds(stop_timeout), 0.0)
        self.functions: dict[str, Function[..., Any]] = {}
        self._nats = nats
        self._log = logger or logging.getLogger("callfan")
        self._lock = threading.Lock()
        self._began = False
        self._worker: Worker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_wanted = False
        self._ready = threading.Event()

    # Functions.

    def add(self, *added: Function[..., Any]) -> None:
        """Adds functions that were made by `callfan.function`."""
        if self._began:
            raise ConfigurationError("the executor has begun: it serves the functions that it had then")
        for f in added:
            if f.name in self.functions:
                raise ConfigurationError(f"the function {f.name!r} is there already")
            self.functions[f.name] = f

    @overload
    def function(self, fn: Callable[P, R], /) -> Function[P, R]: ...
    @overload
    def function(
        self,
        *,
        name: str | None = ...,
        description: str | None = ...,
        parameters: Mapping[str, Any] | None = ...,
        raw: bool = ...,
        effects: Effects | None = ...,
        timeout: Duration | None = ...,
        queue_timeout: Duration | None = ...,
        total_deadline: Duration | None = ...,
        attempts: int | None = ...,
        backoff: Backoff | None = ...,
        on_uncertain: OnUncertain | None = ...,
    ) -> Callable[[Callable[P, R]], Function[P, R]]: ...
    def function(self, fn: Any = None, /, **options: Any) -> Any:  # type: ignore[misc]
        """Makes a Python function one that agents can call, and adds it. The options are those of `callfan.function`."""

        def decorate(f: Callable[P, R]) -> Function[P, R]:
            made: Function[P, R] = functions.function(**options)(f)
            self.add(made)
            return made

        return decorate if fn is None else decorate(fn)

    # Running.

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT, then stops in order: running handlers finish, unstarted calls are given back.

        A second signal interrupts the handlers. While NATS or every dispatcher is away it waits and tries on. Raises
        ConfigurationError, RegistrationRefused or PermissionDenied when it cannot begin.

        A program that has configured no logging gets JSON lines on standard error.
        """
        logs.configure_if_nobody_did()
        asyncio.run(self._serve(signals=threading.current_thread() is threading.main_thread()))

    async def serve(self) -> None:
        """As run, in a thread of its own beside an event loop of yours, and without signals.

        It stops in order when `stop` is called and when the task is cancelled.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def work() -> None:
            error: BaseException | None = None
            try:
                asyncio.run(self._serve(signals=False))
            except BaseException as err:
                error = err

            def settle() -> None:
                if not ended.done():
                    ended.set_exception(error) if error is not None else ended.set_result(None)

            loop.call_soon_threadsafe(settle)

        threading.Thread(target=work, name="callfan-executor", daemon=True).start()
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait([ended])
            raise

    def stop(self) -> None:
        """Begins an orderly stop, from any thread. Again: interrupts the handlers."""
        with self._lock:
            again, self._stop_wanted = self._stop_wanted, True
            loop, worker = self._loop, self._worker
        if loop is not None and worker is not None:
            try:
                loop.call_soon_threadsafe((worker.hard if again else worker.soft).set)
            except RuntimeError:
                return  # it has ended

    def wait_ready(self, timeout: float | None = None) -> bool:
        """Waits, in another thread than run's, until the functions are registered; whether they are."""
        return self._ready.wait(timeout)

    async def _serve(self, *, signals: bool) -> None:
        config = self._configuration()
        log = self._log
        loop = asyncio.get_running_loop()
        connection = Connection(config, f"executor {self.pool} {self.id}", log)
        executor = {"id": self.id, "language": "python", "version": self.version, "host": socket.gethostname()}
        link = NatsLink(connection, self.pool, self.functions, executor, log)
        hosts = Hosts()
        worker = Worker(link, self.functions, hosts, concurrency=self.concurrency, stop_timeout=self.stop_timeout, log=log)
        with self._lock:
            self._loop, self._worker = loop, worker
            if self._stop_wanted:
                worker.soft.set()
        if signals:
            self._listen(loop)
        ready = asyncio.create_task(self._tell_ready(worker))
        serving = asyncio.create_task(worker.serve())
        connecting = connection.start()
        try:
            await asyncio.wait([serving, connecting], return_when=asyncio.FIRST_COMPLETED)
            if connecting.done():
                worker.soft.set()
                connecting.result()
            await serving
        finally:
            ready.cancel()
            self._ready.clear()
            await connection.close()
            await hosts.close()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(number, self.stop)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda *_: self.stop())

    async def _tell_ready(self, worker: Worker) -> None:
        await worker.serving.wait()
        self._ready.set()

    def _configuration(self) -> NatsConfig:
        with self._lock:
            if self._began:
                raise CallfanError("the executor has begun already: it runs once")
            if not self.functions:
                raise ConfigurationError("there is no function; decorate one with @executor.function")
            for f in self.functions.values():
                f.definition()
            config = self._nats
            if config is None:
                config = NatsConfig.from_environment()
            elif isinstance(config, str):
                config = NatsConfig(url=config)
            config.validate()
            self._began = True
            return config


def _default_id() -> str:
    process = f"-{os.getpid()}-{secrets.token_hex(2)}"
    host = "".join(c if c.isascii() and c.isprintable() else "_" for c in socket.gethostname())
    return host[: _MAX_ID - len(process)] + process
