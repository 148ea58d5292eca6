"""Where handlers run: never on the protocol's event loop, so that none of them can stop a heartbeat."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any


class Threads:
    """Threads for sync handlers. They are daemons: a handler that never returns does not keep the process alive.

    There are as many as handlers run, those that were given up included.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle = 0
        self._started = 0
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                self._jobs.put(job)
                return
            self._started += 1
            name = f"callfan-handler-{self._started}"
        threading.Thread(target=self._work, args=(job,), name=name, daemon=True).start()

    def _work(self, job: Callable[[], None] | None) -> None:
        while job is not None:
            job()
            with self._lock:
                self._idle += 1
            job = self._jobs.get()

    def close(self) -> None:
        with self._lock:
            for _ in range(self._idle):
                self._jobs.put(None)
            self._idle = 0


class HandlerLoop:
    """An event loop in a thread of its own, for async handlers. It starts with the first one."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, coroutine: Coroutine[Any, Any, None], ended: Callable[[], None]) -> Callable[[], None]:
        """Runs the coroutine; what is returned cancels it, from any thread. ended is called at its end, in any case."""
        loop = self._running()
        tasks: list[asyncio.Task[None]] = []

        def start() -> None:
            task = loop.create_task(coroutine)
            task.add_done_callback(lambda _: ended())
            tasks.append(task)

        loop.call_soon_threadsafe(start)

        def cancel() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(lambda: tasks[0].cancel())

        return cancel

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = self._loop = asyncio.new_event_loop()

            def work() -> None:
                asyncio.set_event_loop(loop)
                loop.run_forever()
                loop.close()

            self._thread = threading.Thread(target=work, name="callfan-handler-loop", daemon=True)
            self._thread.start()
        return self._loop

    async def close(self) -> None:
        """Cancels what still runs and ends the loop. A handler that blocks it is left behind."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._loop = None

        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            if others:
                await asyncio.wait(others, timeout=1)
            with contextlib.suppress(Exception):
                await loop.shutdown_asyncgens()
            loop.stop()

        ending: list[asyncio.Task[None]] = []
        loop.call_soon_threadsafe(lambda: ending.append(loop.create_task(end())))
        for _ in range(40):
            if not thread.is_alive():
                return
            await asyncio.sleep(0.05)


class Hosts:
    """Both of them."""

    def __init__(self) -> None:
        self.threads = Threads()
        self.loop = HandlerLoop()

    async def close(self) -> None:
        self.threads.close()
        await self.loop.close()
