"""The life of calls in an executor, without servers."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

import pytest

from callfan import Cancelled, Failure, NotDone, PermissionDenied, current_call, function
from callfan._run.link import NotStored, TooLarge
from callfan._wire.dispatch import Key
from callfan._wire.outcome import InvalidOutcome
from fakes import FakeLink, FakeTaken, dispatch, serving, until

KEY = Key("s", "t", "call_1")


async def test_a_call_is_answered_then_acked() -> None:
    @function(effects="none")
    def double(n: int) -> int:
        return 2 * n

    link = FakeLink()
    taken = FakeTaken(dispatch("double", '{"n":21}'))
    async with await serving(link, double):
        link.give(taken)
        await until(lambda: taken.acked)
    assert [o.output for o in link.outcomes] == ['"42"']


async def test_calls_are_pulled_into_free_slots_only() -> None:
    release = threading.Event()

    @function(effects="none")
    def wait() -> None:
        release.wait(10)

    link = FakeLink()
    async with await serving(link, wait, concurrency=3) as s:
        for n in range(5):
            link.give(FakeTaken(dispatch("wait", call_id=f"call_{n}")))
        await until(lambda: len(s.worker.running) == 3)
        assert sum(link.batches) == 3
        release.set()
        await until(lambda: len(link.outcomes) == 5)


async def test_a_blocking_handler_does_not_stop_the_heartbeats() -> None:
    @function(effects="none")
    async def block() -> None:
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            pass

    link = FakeLink(ack_wait=0.3)
    taken = FakeTaken(dispatch("block"))
    async with await serving(link, block):
        link.give(taken)
        await until(lambda: taken.acked)
    assert taken.done.count("extend") >= 3


async def test_a_repeated_delivery_of_a_running_call_is_ignored() -> None:
    release, runs = threading.Event(), []

    @function
    def once() -> None:
        runs.append(1)
        release.wait(10)

    link = FakeLink()
    first, again = FakeTaken(dispatch("once")), FakeTaken(dispatch("once"), deliveries=2)
    async with await serving(link, once):
        link.give(first)
        await until(lambda: runs)
        link.give(again)
        await until(lambda: sum(link.batches) >= 4)
        release.set()
        await until(lambda: first.acked)
    assert (runs, again.done, len(link.outcomes)) == ([1], [], 1)


async def test_a_cancel_notice_reaches_sync_and_async_handlers() -> None:
    entered: list[str] = []
    seen: list[str] = []

    @function
    def sync() -> None:
        entered.append("sync")
        try:
            current_call().sleep(10)
        except Cancelled:
            seen.append(f"sync {current_call().reason}")
            raise

    @function
    async def asynchronous() -> None:
        entered.append("asynchronous")
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            seen.append(f"async {current_call().reason}")
            raise

    for f in (sync, asynchronous):
        link = FakeLink()
        taken = FakeTaken(dispatch(f.name))
        async with await serving(link, f):
            link.give(taken)
            await until(lambda name=f.name: name in entered)  # type: ignore[misc]
            link.cancel(KEY, "the turn has ended")
            await until(lambda taken=taken: taken.acked)  # type: ignore[misc]
        assert link.outcomes == []
    assert seen == ["sync cancelled", "async cancelled"]


@pytest.mark.parametrize(("standing", "runs"), [("pending", True), ("unknown", True), ("cancelled", False), ("answered", False)])
async def test_a_call_that_its_cancel_notice_overtook_is_looked_up(standing: str, runs: bool) -> None:
    ran = []

    @function
    def f() -> None:
        ran.append(1)

    link = FakeLink()
    link.standing = standing
    taken = FakeTaken(dispatch("f"))
    async with await serving(link, f):
        link.cancel(KEY, "early")
        link.give(taken)
        await until(lambda: taken.acked)
    assert bool(ran) == runs
    assert link.looked_up == 1


async def test_a_timeout_is_answered_at_once_and_the_late_result_ignored() -> None:
    release = threading.Event()

    @function(timeout=0.1)
    def stuck() -> str:
        release.wait(10)
        return "late"

    link = FakeLink()
    taken = FakeTaken(dispatch("stuck"))
    async with await serving(link, stuck, concurrency=1) as s:
        link.give(taken)
        await until(lambda: taken.acked)
        assert [(o.kind, o.cause, o.error) for o in link.outcomes] == [("failure", "timeout", "timed out after 0.1s")]
        await until(lambda: s.worker.abandoned == 1)
        other = FakeTaken(dispatch("stuck", call_id="call_2"))
        link.give(other)  # the slot of the stuck one is given on
        await until(lambda: other.acked)
        release.set()
    assert len(link.outcomes) == 2


async def test_the_deadline_of_the_call_bounds_its_run() -> None:
    @function
    async def slow() -> None:
        await asyncio.sleep(10)

    link = FakeLink()
    taken = FakeTaken(dispatch("slow", Fn_Deadline=str(round((time.time() + 0.2) * 1000))))
    late = FakeTaken(dispatch("slow", call_id="call_2", Fn_Deadline="1000"))
    async with await serving(link, slow):
        link.give(taken)
        link.give(late)
        await until(lambda: taken.acked and late.acked)
    assert {o.cause for o in link.outcomes} == {"deadline"}
    assert {o.error.partition(" after")[0] for o in link.outcomes} == {
        "timed out",
        "the call's deadline passed before the function was started",
    }


async def test_an_outcome_is_reported_until_it_is_stored() -> None:
    @function
    def f() -> str:
        return "x"

    link = FakeLink()
    link.refusals = [NotStored("full"), NotStored("full"), TooLarge(100, 10)]
    taken = FakeTaken(dispatch("f"))
    async with await serving(link, f):
        link.give(taken)
        await until(lambda: taken.acked)
    assert [(o.cause, o.error) for o in link.outcomes] == [("too_large", "result too large (100 bytes, limit 10)")]


async def test_an_invalid_outcome_becomes_a_failure() -> None:
    @function
    def f() -> str:
        return "x"

    link = FakeLink()
    link.refusals = [InvalidOutcome("no")]
    taken = FakeTaken(dispatch("f"))
    async with await serving(link, f):
        link.give(taken)
        await until(lambda: taken.acked)
    assert link.outcomes[0].cause == "invalid_output"


async def test_a_call_whose_outcome_is_forbidden_is_not_acked(caplog: pytest.LogCaptureFixture) -> None:
    @function
    def f() -> str:
        return "x"

    link = FakeLink()
    link.refusals = [PermissionDenied("publish", "fn.result.f.p07")]
    taken = FakeTaken(dispatch("f"))
    with caplog.at_level(logging.ERROR, "callfan"):
        async with await serving(link, f):
            link.give(taken)
            await until(lambda: "could not be reported" in caplog.text)
    assert not taken.acked
    assert link.outcomes == []


async def test_a_message_that_is_no_call_is_left_three_times_then_removed() -> None:
    @function
    def f() -> None: ...

    link = FakeLink()
    given = [FakeTaken(None, n, "protocol 2") for n in range(1, 5)]
    async with await serving(link, f):
        for taken in given:
            link.give(taken)
        await until(lambda: given[3].done)
    assert [t.done for t in given] == [[], [], [], ["term protocol 2"]]


async def test_a_function_that_is_not_served_is_given_back() -> None:
    @function
    def f() -> None: ...

    link = FakeLink()
    fresh, again = FakeTaken(dispatch("other")), FakeTaken(dispatch("other", call_id="call_2"), deliveries=2)
    async with await serving(link, f):
        link.give(fresh)
        link.give(again)
        await until(lambda: fresh.acked)
    assert [o.kind for o in link.outcomes] == ["released"]
    assert not again.acked


async def test_a_stop_lets_running_handlers_finish() -> None:
    entered = threading.Event()

    @function
    def f() -> str:
        entered.set()
        time.sleep(0.3)
        return "done"

    link = FakeLink()
    taken = FakeTaken(dispatch("f"))
    s = await serving(link, f)
    link.give(taken)
    await until(entered.is_set)
    await s.stop()
    assert taken.acked
    assert [o.kind for o in link.outcomes] == ["success"]


@pytest.mark.parametrize(
    ("effects", "choice", "verifies", "kinds"),
    [
        ("none", None, False, ["released"]),
        ("side_effects", None, False, ["failure"]),
        ("side_effects", None, True, []),
        ("side_effects", "park", False, ["uncertain"]),
        ("side_effects", "park", True, []),
    ],
)
async def test_a_hard_stop_interrupts(effects: str, choice: str | None, verifies: bool, kinds: list[str]) -> None:
    @function(name="f", effects=effects, on_uncertain=choice)  # type: ignore[call-overload,untyped-decorator]
    async def f() -> None:
        await asyncio.sleep(60)

    if verifies:
        f.verify(lambda: None)
    link = FakeLink()
    taken = FakeTaken(dispatch("f"))
    s = await serving(link, f, stop_timeout=0.1)
    link.give(taken)
    await until(lambda: s.worker.running)
    await s.stop()
    assert [o.kind for o in link.outcomes] == kinds
    assert taken.acked == bool(kinds)


async def test_a_second_stop_interrupts_at_once() -> None:
    @function(effects="idempotent")
    async def f() -> None:
        await asyncio.sleep(60)

    link = FakeLink()
    s = await serving(link, f, stop_timeout=60)
    link.give(FakeTaken(dispatch("f")))
    await until(lambda: s.worker.running)
    s.worker.soft.set()
    await asyncio.sleep(0)
    s.worker.hard.set()
    await s.stop()
    assert [o.kind for o in link.outcomes] == ["released"]


async def test_what_a_handler_returns_in_the_grace_of_a_hard_stop_counts() -> None:
    entered = threading.Event()

    @function
    async def f() -> str:
        entered.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "saved"
        return "never"

    link = FakeLink()
    taken = FakeTaken(dispatch("f"))
    s = await serving(link, f, stop_timeout=0.1)
    link.give(taken)
    await until(entered.is_set)
    await s.stop()
    assert [o.output for o in link.outcomes] == ['"saved"']


async def test_a_process_that_stood_still_starts_nothing_that_may_be_elsewhere() -> None:
    ran = []

    @function
    def pay() -> None:
        ran.append(1)

    @function(effects="idempotent")
    def put() -> None:
        ran.append(2)

    link = FakeLink(ack_wait=0.6)
    payment, other = FakeTaken(dispatch("pay")), FakeTaken(dispatch("put", call_id="call_2"))
    async with await serving(link, pay, put):
        await asyncio.sleep(0.3)
        time.sleep(0.7)  # noqa: ASYNC251  # the loop stands still
        link.give(payment)
        link.give(other)
        await until(lambda: payment.acked and other.acked)
    assert ran == [2]
    assert sorted((o.kind, o.cause) for o in link.outcomes) == [("failure", "unknown_outcome"), ("success", "")]


async def test_a_call_that_lay_in_the_network_is_not_started_if_it_may_be_elsewhere() -> None:
    ran = []

    @function
    def pay() -> None:
        ran.append("pay")

    @function(on_uncertain="verify")
    def book() -> None:
        ran.append("book")

    @book.verify
    def booked() -> NotDone:
        return NotDone()

    @function(effects="idempotent")
    def put() -> None:
        ran.append("put")

    link = FakeLink(ack_wait=20)
    late = [FakeTaken(dispatch(name, call_id=name), transit=10.5) for name in ("pay", "book", "put")]
    in_time = FakeTaken(dispatch("pay", call_id="in time"), transit=9.5)
    async with await serving(link, pay, book, put):
        for taken in (*late, in_time):
            link.give(taken)
        await until(lambda: late[0].acked and late[2].acked and in_time.acked)
    assert sorted(ran) == ["pay", "put"]
    assert "ack" not in late[1].done
    assert [o.cause for d, o in link.reported if d.key.call_id == "pay"] == ["unknown_outcome"]


async def test_logs_name_calls_and_keep_arguments_and_outputs_to_themselves(caplog: pytest.LogCaptureFixture) -> None:
    @function
    def f(secret: str) -> str:
        raise Failure(f"failure about {secret}")

    @function
    def crash(secret: str) -> str:
        raise RuntimeError("crashed")

    link = FakeLink()
    given = [FakeTaken(dispatch(name, '{"secret":"hunter2"}', call_id=name)) for name in ("f", "crash")]
    with caplog.at_level(logging.DEBUG, "callfan"):
        async with await serving(link, f, crash):
            for taken in given:
                link.give(taken)
            await until(lambda: all(t.acked for t in given))
    assert "hunter2" not in caplog.text
    assert not any("hunter2" in str(vars(r)) or "1-nonce" in str(vars(r)) for r in caplog.records)
    record = next(r for r in caplog.records if r.getMessage() == "function crashed")
    named = (record.session_id, record.turn_id, record.call_id, record.function, record.attempt)  # type: ignore[attr-defined]
    assert named == ("s", "t", "crash", "crash", 1)
    assert record.exc_info is not None
