"""Functions: schemas, arguments and outputs, by way of callfan.testing."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import threading
import uuid
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from callfan import (
    Backoff,
    Call,
    Cancelled,
    CannotTell,
    ConfigurationError,
    Content,
    Done,
    Failure,
    Function,
    ImagePart,
    NotDone,
    Retry,
    TextPart,
    Uncertain,
    current_call,
    function,
)
from callfan.testing import ainvoke, invoke
from conftest import cases


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    number: int = 1


@dataclasses.dataclass
class Point:
    x: int
    y: float


def test_the_schema_comes_from_hints_and_docstring() -> None:
    @function
    def find(
        customer_id: str,
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
        color: Color | None = None,
        kind: Literal["a", "b"] = "a",
    ) -> None:
        """Find orders.

        Newest first.

        Args:
            customer_id: the customer's id,
                as in the CRM
            limit (int): how many
        """

    definition = find.definition()
    assert definition["description"] == "Find orders.\n\nNewest first."
    schema = definition["parameters"]
    assert schema["type"] == "object"
    assert schema["required"] == ["customer_id"]
    assert schema["additionalProperties"] is False
    assert "title" not in str(schema)
    assert schema["properties"]["customer_id"] == {"type": "string", "description": "the customer's id, as in the CRM"}
    assert schema["properties"]["limit"] == {"type": "integer", "minimum": 1, "maximum": 50, "description": "how many", "default": 10}
    assert schema["properties"]["kind"] == {"type": "string", "enum": ["a", "b"], "default": "a"}


def test_models_dataclasses_and_dates_are_read() -> None:
    @function
    def f(address: Address, point: Point, when: datetime.date, colors: set[Color], key: uuid.UUID) -> str:
        assert isinstance(address, Address)
        assert isinstance(point, Point)
        assert isinstance(when, datetime.date)
        assert isinstance(key, uuid.UUID)
        return f"{address.street} {address.number} {point.x} {when.year} {sorted(colors)[0].name}"

    arguments = {
        "address": {"street": "Elm"},
        "point": {"x": 1, "y": 2},
        "when": "2026-11-30",
        "colors": ["red"],
        "key": "12345678-1234-5678-1234-567812345678",
    }
    assert invoke(f, arguments).text == "Elm 1 1 2026 RED"
    assert f.parameters is not None
    assert "$defs" in f.parameters


def test_an_omitted_argument_takes_the_default_of_python() -> None:
    @function
    def f(a: int, b: list[int] | None = None, **others: Any) -> str:
        return f"{a} {b} {sorted(others)}"

    assert invoke(f, {"a": 1}).text == "1 None []"
    assert invoke(f, {"a": 1, "b": [2], "c": 3}).text == "1 [2] ['c']"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"count":"5"}', ["count", "integer"]),
        ('{"count":5.5}', ["count", "integer"]),
        ('{"count":true}', ["count", "integer"]),
        ("{}", ["count", "required"]),
        ('{"count":1,"other":2}', ["other", "not permitted"]),
        ("[1]", ["invalid arguments"]),
        ('{"count":1', ["invalid arguments"]),
        ('{"count":{"secret":"hunter2"}}', ["count"]),
        ('{"count":' + "[" * 5000 + "]" * 5000 + "}", ["invalid arguments"]),
    ],
)
def test_arguments_that_do_not_fit_are_a_failure_that_names_the_member(arguments: str, words: list[str]) -> None:
    entered = []

    @function
    def f(count: int) -> None:
        entered.append(count)

    o = invoke(f, arguments)
    assert (o.kind, o.cause, entered) == ("failure", "invalid_arguments", [])
    assert o.error.startswith("invalid arguments: ")
    assert all(word in o.error for word in words)
    assert "hunter2" not in o.error


def test_integers_of_any_size_are_exact() -> None:
    @function
    def f(n: int) -> int:
        return n

    assert invoke(f, '{"n":123456789012345678901234567890}').text == "123456789012345678901234567890"


def test_raw_functions_get_the_very_text() -> None:
    @function(raw=True)
    def as_bytes(arguments: bytes) -> bytes:
        return arguments

    @function(raw=True)
    def as_text(arguments: str) -> str:
        return arguments

    text = '{ "b" : 1.10, "a":1e400, "b": "\\u2028\\ud800" }'
    assert invoke(as_bytes, text).text == text
    assert invoke(as_text, text).text == text
    assert as_text.definition() == {"name": "as_text", "policy": {}}


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ("", ""),
        (' "x" \n', ' "x" \n'),
        (None, None),
        ([], "[]"),
        ({"a": [1, 2.5, None, True], "b": "<ů>"}, '{"a":[1,2.5,null,true],"b":"<ů>"}'),
        (3, "3"),
        (False, "false"),
        (b"\xffx", "�x"),
        ("\ud800x", "�x"),
        (Color.RED, "red"),
        (Address(street="Elm"), '{"street":"Elm","number":1}'),
        (Point(1, 2.5), '{"x":1,"y":2.5}'),
        ([Address(street="Elm")], '[{"street":"Elm","number":1}]'),
        ({"at": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)}, '{"at":"2026-01-02T00:00:00Z"}'),
        ([decimal.Decimal("1.10")], '["1.10"]'),
        (Content("a", TextPart("b")), [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]),
        (ImagePart("data:,x"), [{"type": "input_image", "image_url": "data:,x"}]),
    ],
)
def test_outputs(value: object, output: object) -> None:
    @function
    def f() -> object:
        return value

    o = invoke(f)
    assert (o.kind, o.output) == ("success", output)


@pytest.mark.parametrize("value", [float("nan"), {"x": float("inf")}, object(), Content(), Content(ImagePart("")), {(1, 2): 3}])
def test_outputs_that_cannot_be_written_are_a_failure(value: object) -> None:
    @function
    def f() -> object:
        return value

    o = invoke(f)
    assert (o.kind, o.cause) == ("failure", "invalid_output")


def test_a_cyclic_output_is_a_failure() -> None:
    @function
    def f() -> object:
        value: list[object] = []
        value.append(value)
        return value

    assert invoke(f).cause == "invalid_output"


class NotFoundError(Failure):
    pass


@pytest.mark.parametrize(
    ("error", "kind", "text", "cause"),
    [
        (Failure("no such customer"), "failure", "no such customer", ""),
        (NotFoundError("gone"), "failure", "gone", ""),
        (Failure("no money", cause="no_money"), "failure", "no money", "no_money"),
        (Failure(" "), "failure", "the function failed without saying why", ""),
        (Retry("HTTP 503", after=1.5), "retry", "HTTP 503", ""),
        (Retry("later", after=datetime.timedelta(minutes=1)), "retry", "later", ""),
        (RuntimeError("secret"), "failure", "function crashed", "panic"),
        (TimeoutError("a downstream's"), "failure", "function crashed", "panic"),
        (SystemExit(1), "failure", "function crashed", "panic"),
        (KeyboardInterrupt(), "failure", "function crashed", "panic"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_errors(error: BaseException, kind: str, text: str, cause: str, is_async: bool) -> None:
    @function(name="f")
    def sync() -> None:
        raise error

    @function(name="f")
    async def asynchronous() -> None:
        raise error

    o = invoke(asynchronous if is_async else sync)
    assert (o.kind, o.error or o.reason, o.cause) == (kind, text, cause)
    assert "secret" not in o.payload.decode()


@pytest.mark.parametrize("case", cases("lost-runs.json"))
def test_a_lost_run_goes_by_the_choice_for_uncertain_calls(case: dict[str, Any]) -> None:
    @function
    def f() -> None:
        raise Uncertain("the bank hung up")

    if case["verifies"]:
        f.verify(lambda: NotDone())
    o = invoke(f, on_uncertain=case["on_uncertain"])
    expect = case["expect"]
    assert (o.kind, o.cause, o.reason) == (expect["kind"], expect.get("cause", ""), expect.get("reason", ""))


def test_retry_says_when() -> None:
    @function
    def f() -> None:
        raise Retry("later", after=1.5)

    assert invoke(f).after == 1.5
    assert b'"after_ms":1500' in invoke(f).payload


def test_the_current_call() -> None:
    @function
    async def by_context(n: int) -> str:
        await asyncio.sleep(0)
        call = await asyncio.to_thread(current_call)
        return f"{call.function} {call.attempt} {call.idempotency_key[:5]} {call.traceparent} {call.uncertain} {call.arguments.decode()}"

    @function
    def by_parameter(n: int, call: Call) -> str:
        assert 25 < call.remaining <= 30
        assert (call.deadline - datetime.datetime.now(datetime.UTC)).total_seconds() == pytest.approx(30, abs=2)
        assert "arguments" not in repr(call)
        call.progress("half done")
        return f"{call.function} {call is current_call()}"

    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert invoke(by_context, {"n": 1}, attempt=2, traceparent=trace).text == f'by_context 2 call_ {trace} False {{"n":1}}'
    assert invoke(by_parameter, {"n": 1}).text == "by_parameter True"
    assert by_parameter.parameters is not None
    assert list(by_parameter.parameters["properties"]) == ["n"]
    with pytest.raises(LookupError, match="in handlers only"):
        current_call()


def test_timeouts_and_cancellation() -> None:
    @function(timeout="50ms")
    async def slow() -> None:
        await asyncio.sleep(10)

    @function
    def waits(call: Call) -> None:
        call.sleep(10)

    o = invoke(slow)
    assert (o.kind, o.cause, o.error) == ("failure", "timeout", "timed out after 0.05s")
    assert invoke(waits, timeout=0.05).cause == "timeout"
    assert invoke(waits, cancel_after=0.05).kind == ""


def test_verify_handlers() -> None:
    asked: list[str] = []

    @function
    def pay(amount: int, how: str = "done") -> str:
        return "paid"

    @pay.verify
    def verify(how: str = "done") -> Any:
        asked.append(current_call().idempotency_key)
        match how:
            case "done":
                return Done({"receipt": 7})
            case "not_done":
                return NotDone()
            case "cannot_tell":
                return CannotTell("no receipt")
            case "raise":
                raise RuntimeError("secret")
            case "failure":
                raise Failure("HTTP 500")
        return None

    assert pay.definition()["verifies"] is True
    assert invoke(pay, {"amount": 1}).text == "paid"
    assert asked == []
    assert invoke(pay, {"amount": 1}, uncertain=True).json() == {"receipt": 7}
    assert invoke(pay, {"amount": 1, "how": "not_done"}, uncertain=True).text == "paid"
    reasons = {how: invoke(pay, {"amount": 1, "how": how}, uncertain=True) for how in ("cannot_tell", "raise", "failure", "nothing")}
    assert {o.kind for o in reasons.values()} == {"uncertain"}
    assert [o.reason for o in reasons.values()] == [
        "no receipt",
        "the verify handler crashed",
        "the verify handler failed: HTTP 500",
        "the verify handler returned no verdict",
    ]
    assert invoke(pay, {"amount": 1}, uncertain=True, on_uncertain="fail").cause == "unknown_outcome"
    assert invoke(pay, {"amount": 1}, uncertain=True, on_uncertain="rerun").text == "paid"


def test_an_async_verify_handler() -> None:
    @function
    async def pay() -> str:
        return "paid"

    @pay.verify
    async def verify() -> Done:
        await asyncio.sleep(0)
        return Done("earlier")

    assert invoke(pay, uncertain=True).text == "earlier"


def test_functions_stay_functions() -> None:
    @function(name="other name")
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert isinstance(add, Function)
    assert (add(1), add(1, b=3)) == (3, 4)
    assert (add.name, add.__doc__) == ("other name", "Add.")


async def test_ainvoke() -> None:
    @function
    async def f() -> str:
        return threading.current_thread().name

    assert (await ainvoke(f)).text == "callfan-handler-loop"


def test_policies() -> None:
    @function(
        effects="idempotent",
        timeout=1.5,
        queue_timeout=datetime.timedelta(minutes=2),
        total_deadline="1h",
        attempts=4,
        backoff=Backoff(initial=0.25, max="10s", multiplier=3, jitter=0),
        on_uncertain="rerun",
    )
    def f() -> None: ...

    assert f.definition()["policy"] == {
        "timeout": "1500ms",
        "queue_timeout": "120s",
        "total_deadline": "1h",
        "attempts": 4,
        "backoff": {"initial": "250ms", "max": "10s", "multiplier": 3, "jitter": 0},
        "effects": "idempotent",
        "on_uncertain": "rerun",
    }


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"effects": "some"}, "effects"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": "soon"}, "soon"),
        ({"timeout": float("nan")}, "nan"),
        ({"attempts": 0}, "attempts"),
        ({"backoff": Backoff(multiplier=0.5)}, "multiplier"),
        ({"backoff": Backoff(jitter=2)}, "jitter"),
        ({"on_uncertain": "guess"}, "on_uncertain"),
        ({"name": ""}, "empty"),
        ({"parameters": {"type": "array"}}, "array"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigurationError, match=word):
        function(**options)(lambda: None)


def test_unusable_signatures_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="positional"):
        function(lambda *args: None)
    with pytest.raises(ConfigurationError, match="raw=True"):

        @function
        def f(x: threading.Lock) -> None: ...

    with pytest.raises(ConfigurationError, match="one parameter"):
        function(raw=True)(lambda a, b: None)
    with pytest.raises(ConfigurationError, match="verify handler"):
        function(on_uncertain="verify")(lambda: None).definition()


def test_a_cancelled_error_says_why() -> None:
    @function
    def f(call: Call) -> str:
        try:
            call.sleep(10)
        except Cancelled as err:
            return str(err)
        return "slept"

    assert invoke(f, timeout=0.05).cause == "timeout"
