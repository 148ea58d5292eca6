"""What is done with a delivery, by protocol/fixtures/decisions.json."""

from __future__ import annotations

from typing import Any

import pytest

from callfan import CannotTell, Done, NotDone, Verdict, function
from conftest import cases
from fakes import FakeLink, FakeTaken, dispatch, serving, until

Case = dict[str, Any]


@pytest.mark.parametrize("case", cases("decisions.json"))
async def test_decisions(case: Case) -> None:
    ran, asked = [], []

    @function(name="f", effects=case["effects"])
    def f() -> str:
        ran.append(1)
        return "ran"

    if case["verify"]:

        @f.verify
        def verify() -> Verdict:
            asked.append(1)
            match case["verify"]:
                case "done":
                    return Done("earlier")
                case "not_done":
                    return NotDone()
                case "cannot_tell":
                    return CannotTell("no receipt")
            raise RuntimeError("it fails")

    headers = {"Fn_On_Uncertain": case["on_uncertain"]} if case["on_uncertain"] else {}
    if case["uncertain"]:
        headers["Fn_Uncertain"] = "1"
    link = FakeLink()
    link.standing = case["standing"]
    taken = FakeTaken(dispatch("f", **headers), case["deliveries"])
    async with await serving(link, f):
        link.give(taken)
        await until(lambda: taken.acked)
    expect = case["expect"]
    assert bool(link.looked_up) == expect["looked_up"]
    assert bool(asked) == expect["verified"]
    assert bool(ran) == expect["runs"]
    kinds = [(o.kind, o.cause) for o in link.outcomes]
    assert kinds == ([(expect["kind"], expect["cause"])] if expect["kind"] else [])
    if expect["kind"] == "failure":
        assert ("the outcome of this call is unknown" in link.outcomes[0].error) == expect["says_unknown"]
