"""Holds the wire to protocol/fixtures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callfan import CannotTell, Content, Executor, ImagePart, TextPart
from callfan._wire import pulls, requests
from callfan._wire.dispatch import Dispatch, InvalidCall, Key, decode_call, deliveries, term_body
from callfan._wire.names import Subjects, token
from callfan._wire.outcome import Outcome, encode_outcome
from callfan.errors import CallfanError
from callfan.function import Function
from callfan.output import encode_output
from callfan.policy import Backoff, Policy, seconds
from conftest import cases, fixture_bytes

Case = dict[str, Any]
SUBJECTS = Subjects("fn")


@pytest.mark.parametrize("case", cases("tokens.json"))
def test_tokens(case: Case) -> None:
    assert token(case["name"]) == case["token"]


def test_the_empty_name_has_no_token() -> None:
    with pytest.raises(ValueError, match="empty"):
        token("")


@pytest.mark.parametrize("case", cases("calls.json") + cases("calls-foreign.json"))
def test_calls(case: Case) -> None:
    d = decode_call(SUBJECTS, case["subject"], case["headers"], fixture_bytes(case["payload"]))
    expect = case["expect"]
    assert d.arguments == fixture_bytes(expect["arguments"])
    read = {
        "session_id": d.key.session_id,
        "turn_id": d.key.turn_id,
        "call_id": d.key.call_id,
        "function": d.function,
        "attempt": d.attempt,
        "handover": d.handover,
        "nonce": d.nonce,
        "result_subject": d.result_subject,
        "idempotency_key": d.idempotency_key,
        "timeout_ms": d.timeout_ms,
        "deadline_ms": d.deadline_ms,
        "traceparent": d.traceparent,
        "uncertain": d.uncertain,
        "on_uncertain": d.on_uncertain,
    }
    assert read == {name: expect[name] for name in read}


@pytest.mark.parametrize("case", cases("invalid-calls.json"))
def test_invalid_calls(case: Case) -> None:
    with pytest.raises(InvalidCall):
        decode_call(SUBJECTS, case["subject"], case.get("headers"), fixture_bytes(case["payload"]))


def dispatch(call: Case) -> Dispatch:
    return Dispatch(
        key=Key(call["session_id"], call["turn_id"], call["call_id"]),
        function=call["function"],
        arguments=b"{}",
        attempt=call["attempt"],
        handover=call["handover"],
        nonce=call["nonce"],
        result_subject=call["result_subject"],
        idempotency_key="",
    )


def output(given: Case) -> str:
    match given:
        case {"text": text}:
            return encode_output(text)
        case {"bytes": path}:
            return encode_output(fixture_bytes(path))
        case {"utf16": units}:
            return encode_output("".join(chr(unit) for unit in units))
        case {"parts": parts}:
            return encode_output(Content(*(TextPart(p["text"]) if p["type"] == "input_text" else ImagePart(p["image_url"]) for p in parts)))
        case {"value": value}:
            return encode_output(value)
    return encode_output(None)


def outcome(case: Case) -> Outcome:
    given = case.get("input") or {}
    if case["kind"] == "success":
        return Outcome("success", output=output(given))
    return Outcome(
        case["kind"],
        error=given.get("error", given.get("text", "")),
        cause=given.get("cause", ""),
        reason=given.get("reason", ""),
        after_ms=given.get("after_ms", 0),
    )


@pytest.mark.parametrize("case", [c for c in cases("outcomes.json") if c.values[0]["kind"] != "deferred"])
def test_outcomes(case: Case) -> None:
    m = encode_outcome(dispatch(case["call"]), outcome(case), str((case.get("input") or {}).get("executor", "")))
    expect = case["expect"]
    assert m.subject == expect["subject"]
    assert m.headers == expect["headers"]
    wanted = json.loads(fixture_bytes(expect["payload"]))
    written = json.loads(m.body)
    if "output_text" in expect:
        text = fixture_bytes(expect["output_text"]).decode()
        if expect.get("output_is_json"):
            assert json.loads(written.pop("output")) == json.loads(text)
            wanted.pop("output")
        else:
            assert written["output"] == text
    assert written == wanted


def cannot_tell(arguments: str) -> CannotTell:
    return CannotTell()


@pytest.mark.parametrize("case", cases("registrations.json"))
def test_registrations(case: Case) -> None:
    given, declared = case["input"], case["input"]["function"]

    def handler(arguments: str) -> str:
        return arguments

    policy = dict(declared.get("policy", {}))
    if "backoff" in policy:
        policy["backoff"] = Backoff(**policy["backoff"])
    f = Function(
        handler,
        name=declared["name"],
        description=declared.get("description", ""),
        parameters=declared.get("parameters"),
        raw=True,
        policy=Policy(**policy),
    )
    if declared.get("verifies"):
        f.verify(cannot_tell)
    body = requests.registration(given["pool"], f.definition(), given["functions"], given["executor"])
    assert SUBJECTS.register(declared["name"]) == case["expect"]["subject"]
    assert in_seconds(json.loads(body)) == in_seconds(json.loads(fixture_bytes(case["expect"]["payload"])))


def in_seconds(request: Case) -> Case:
    """The request with its durations as numbers: 15m is 15m0s."""
    policy = request["function"].get("policy", {})
    for where, names in ((policy, ("timeout", "queue_timeout", "total_deadline")), (policy.get("backoff", {}), ("initial", "max"))):
        where.update({name: seconds(where[name]) for name in names if name in where})
    return request


def declarable(case: Case) -> bool:
    """Whether the SDK's types allow such a definition at all; a number as a duration is one of seconds here."""
    if case["code"] not in ("invalid_pool", "invalid_function") or case["name"] == "timeout-number":
        return False
    request = json.loads(fixture_bytes(case["payload"]))
    declared = request.get("function")
    return isinstance(request.get("pool"), str) and isinstance(declared, dict) and isinstance(declared.get("name"), str)


@pytest.mark.parametrize("case", [c for c in cases("invalid-registrations.json") if declarable(c.values[0])])
def test_invalid_definitions_are_refused_before_anything_is_sent(case: Case) -> None:
    request = json.loads(fixture_bytes(case["payload"]))
    declared = request["function"]
    with pytest.raises((CallfanError, TypeError, AttributeError)):
        policy = dict(declared.get("policy", {}))
        if "backoff" in policy:
            policy["backoff"] = Backoff(**policy["backoff"])
        f = Function(lambda a: a, name=declared["name"], parameters=declared.get("parameters"), raw=True, policy=Policy(**policy))
        Executor(request["pool"]).add(f)
        f.definition()


@pytest.mark.parametrize("case", cases("registration-replies.json"))
def test_registration_replies(case: Case) -> None:
    body, expect = fixture_bytes(case["payload"]), case["expect"]
    if "binding" in expect:
        b = requests.decode_binding(body)
        assert {name: getattr(b, name) for name in expect["binding"]} == expect["binding"]
    elif "code" in expect:
        with pytest.raises(requests.Refused) as refused:
            requests.decode_binding(body)
        assert refused.value.code == expect["code"]
    else:
        with pytest.raises(requests.NoAnswer):
            requests.decode_binding(body)


@pytest.mark.parametrize("case", cases("lookups.json"))
def test_lookups(case: Case) -> None:
    assert SUBJECTS.outcome(case["call"]["function"]) == case["expect"]["subject"]
    assert json.loads(requests.lookup(dispatch(case["call"]))) == json.loads(fixture_bytes(case["expect"]["payload"]))


@pytest.mark.parametrize("case", cases("lookup-replies.json"))
def test_lookup_replies(case: Case) -> None:
    body = fixture_bytes(case["payload"])
    if "standing" in case["expect"]:
        assert requests.decode_standing(body) == case["expect"]["standing"]
    else:
        with pytest.raises(requests.NoAnswer):
            requests.decode_standing(body)


@pytest.mark.parametrize("case", cases("cancels.json"))
def test_cancels(case: Case) -> None:
    notice, expect = requests.decode_cancel(fixture_bytes(case["payload"])), case["expect"]
    if expect is None:
        assert notice is None
    else:
        assert notice == (Key(expect["session_id"], expect["turn_id"], expect["call_id"]), expect["reason"])


@pytest.mark.parametrize("case", cases("pull-statuses.json"))
def test_pull_statuses(case: Case) -> None:
    action, pending = pulls.status(case["headers"])
    assert action == case["action"]
    if action == "ended":
        assert pending == case["pending"]


@pytest.mark.parametrize("case", cases("deliveries.json"))
def test_deliveries(case: Case) -> None:
    assert deliveries(case["reply"]) == case["deliveries"]


@pytest.mark.parametrize("case", cases("terms.json"))
def test_terms(case: Case) -> None:
    body, wanted = term_body(case["reason"], case["headers"]), fixture_bytes(case["body"])
    assert body.startswith(b"+TERM ")
    assert json.loads(body[6:]) == json.loads(wanted[6:])
