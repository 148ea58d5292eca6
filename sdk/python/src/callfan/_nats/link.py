"""The link of a worker over NATS."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from nats.aio.msg import Msg

from callfan._nats.connection import Connection, NoReply, NotConnected
from callfan._nats.line import Ended, Line
from callfan._run.link import Bound, NotStored, PullAgain, Taken, TooLarge
from callfan._wire import requests
from callfan._wire.dispatch import Dispatch, InvalidCall, Key, decode_call, deliveries, term_body
from callfan._wire.names import Subjects
from callfan._wire.outcome import Outcome, encode_outcome
from callfan._wire.pulls import LARGEST
from callfan._wire.requests import Binding, NoAnswer, Refused
from callfan.errors import RegistrationRefused
from callfan.function import Function

_OPERATION_TIMEOUT = 10.0
_LOOKUP_TIMEOUT = 2.0
_PUBACK_TIMEOUT = 5.0
_WAIT_FIRST, _REGISTER_WAIT_LAST, _PULL_WAIT_LAST = 0.1, 5.0, 2.0
_NOT_FOUND = (10014, 10059)  # consumer, stream
_MESSAGE_TOO_LARGE = 10054


class NatsTaken:
    """A message that was pulled."""

    def __init__(self, connection: Connection, subjects: Subjects, msg: Msg, transit: float) -> None:
        self._connection, self._reply, self._headers = connection, msg.reply, msg.headers
        self.deliveries, self.transit = deliveries(msg.reply), transit
        self.dispatch: Dispatch | None = None
        self.invalid = ""
        try:
            self.dispatch = decode_call(subjects, msg.subject, msg.headers, msg.data)
        except InvalidCall as err:
            self.invalid = str(err)

    async def extend(self) -> None:
        await self._connection.publish(self._reply, b"+WPI")

    async def ack(self) -> None:
        await self._connection.publish(self._reply, b"+ACK")

    async def term(self, reason: str) -> None:
        await self._connection.publish(self._reply, term_body(reason, self._headers))


class NatsLink:
    def __init__(
        self, connection: Connection, pool: str, functions: Mapping[str, Function[..., Any]], executor: dict[str, str], log: logging.Logger
    ) -> None:
        self._connection, self._log = connection, log
        self._subjects = Subjects(connection.config.prefix)
        self._executor_id = executor["id"]
        names = list(functions)
        self._requests = {name: requests.registration(pool, f.definition(), names, executor) for name, f in functions.items()}
        self._binding: Binding | None = None
        self._idle: list[Line] = []
        self._pull_wait = _WAIT_FIRST
        self._waiting = False
        for name in functions:
            connection.denials.spell(self._subjects.register(name))

    # Registration.

    async def register(self) -> Bound:
        while True:
            binding: Binding | None = None
            for name, body in self._requests.items():
                binding = await self._register_one(name, body)
            assert binding is not None
            if await self._exists(binding):
                break
            await asyncio.sleep(0.5)
        if binding != self._binding:
            self._binding = binding
            self._connection.denials.spell(f"$JS.ACK.{binding.calls_stream}.{binding.consumer}.>")
            self._idle.clear()
        if self._waiting:
            self._waiting = False
            self._log.info("registered", extra={"functions": len(self._requests)})
        return Bound(ack_wait=binding.ack_wait_ms / 1000, refresh=binding.refresh_ms / 1000)

    async def _register_one(self, name: str, body: bytes) -> Binding:
        """Asks until somebody decides."""
        wait = _WAIT_FIRST
        while True:
            await self._connection.wait_connected()
            limit = self._connection.max_payload
            if limit and len(body) > limit:
                raise RegistrationRefused(name, "too_large", f"its declaration has {len(body)} bytes, the server's max_payload is {limit}")
            try:
                return requests.decode_binding(
                    await self._connection.request(self._subjects.register(name), body, within=_OPERATION_TIMEOUT)
                )
            except Refused as err:
                raise RegistrationRefused(name, err.code, err.message) from None
            except (NotConnected, NoReply, NoAnswer) as err:
                if not self._waiting:
                    self._waiting = True
                    extra = {"function": name, "error": str(err)}
                    self._log.warning("no dispatcher takes the registration; asking until one does", extra=extra)
            await asyncio.sleep(wait)
            wait = min(2 * wait, _REGISTER_WAIT_LAST)

    async def _exists(self, binding: Binding) -> bool:
        """Whether the pool's consumer exists; asks until JetStream answers."""
        wait = _WAIT_FIRST
        while True:
            await self._connection.wait_connected()
            found = await self._info(binding)
            if found is not None:
                return found
            await asyncio.sleep(wait)
            wait = min(2 * wait, _PULL_WAIT_LAST)

    async def _info(self, binding: Binding) -> bool | None:
        """Whether the consumer exists; None when nobody says."""
        subject = f"{self._connection.config.api_prefix}.CONSUMER.INFO.{binding.calls_stream}.{binding.consumer}"
        try:
            reply = json.loads(await self._connection.request(subject, b"", within=_OPERATION_TIMEOUT))
        except (NotConnected, NoReply, ValueError):
            return None
        error = reply.get("error") if isinstance(reply, dict) else {"err_code": 0}
        if not error:
            return True
        return False if error.get("err_code") in _NOT_FOUND or error.get("code") == 404 else None

    # Pulls.

    async def pull(self, batch: int, each: Callable[[Taken], None]) -> None:
        binding = self._binding
        assert binding is not None
        await self._connection.wait_connected()
        line: Line | None = None

        def arrived(msg: Msg, transit: float) -> None:
            each(NatsTaken(self._connection, self._subjects, msg, transit))

        try:
            line = self._take_line(binding)
            await line.pull(min(batch, LARGEST), arrived)
        except NotConnected as err:
            if line is not None:
                await line.drop()
            await self._pace()
            raise PullAgain(str(err)) from None
        except Ended as err:
            if line is not None:
                await line.drop()
            await self._ended(err, binding)
        except BaseException:
            if line is not None:
                await line.drop()
            raise
        else:
            self._pull_wait = _WAIT_FIRST
            self._idle.append(line)

    def _take_line(self, binding: Binding) -> Line:
        while self._idle:
            line = self._idle.pop()
            if line.usable:
                return line
        request = f"{self._connection.config.api_prefix}.CONSUMER.MSG.NEXT.{binding.calls_stream}.{binding.consumer}"
        return Line(self._connection, request, binding.ack_wait_ms / 1000)

    async def _ended(self, err: Ended, binding: Binding) -> None:
        """Raises what the worker has to know about a pull that ended before its time."""
        if err.action == "ask_consumer_info" and await self._info(binding) is False:
            raise RuntimeError(f"the consumer {binding.consumer} does not exist")
        if err.action == "register":
            raise RuntimeError(f"the consumer {binding.consumer} was deleted")
        if err.action == "fault":
            raise RuntimeError(f"the server refused a pull: {err}")
        await self._pace()
        raise PullAgain(str(err))

    async def _pace(self) -> None:
        wait, self._pull_wait = self._pull_wait, min(2 * self._pull_wait, _PULL_WAIT_LAST)
        await asyncio.sleep(wait)

    # Outcomes and questions.

    async def report(self, d: Dispatch, o: Outcome) -> None:
        message = encode_outcome(d, o, self._executor_id)
        limit = self._connection.max_payload
        if limit and message.size > limit:
            raise TooLarge(message.size, limit)
        try:
            answer = await self._connection.request(message.subject, message.body, headers=message.headers, within=_PUBACK_TIMEOUT)
        except (NotConnected, NoReply) as err:
            raise NotStored(str(err)) from None
        try:
            confirmation = json.loads(answer)
        except ValueError:
            raise NotStored("the confirmation is not readable") from None
        error = confirmation.get("error") if isinstance(confirmation, dict) else {"description": "no object"}
        if error:
            if error.get("err_code") == _MESSAGE_TOO_LARGE:
                raise TooLarge(message.size, limit)
            raise NotStored(f"{error.get('description', '')} ({error.get('err_code', '')})")
        if not confirmation.get("stream") or not confirmation.get("seq"):
            raise NotStored("the confirmation names no stream")

    async def lookup(self, d: Dispatch) -> str:
        began = time.monotonic()
        try:
            answer = await self._connection.request(self._subjects.outcome(d.function), requests.lookup(d), within=_LOOKUP_TIMEOUT)
        except (NotConnected, NoReply) as err:
            raise NoAnswer(f"{err}, after {time.monotonic() - began:.1f}s") from None
        return requests.decode_standing(answer)

    async def on_cancel(self, each: Callable[[Key, str], None]) -> None:
        async def arrived(msg: Msg) -> None:
            notice = requests.decode_cancel(msg.data)
            if notice is not None:
                each(*notice)

        for name in self._requests:
            await self._connection.subscribe_for_ever(self._subjects.cancel(name), arrived)
