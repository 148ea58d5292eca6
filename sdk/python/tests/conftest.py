"""What the tests share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "protocol" / "fixtures"


def fixture_bytes(path: str) -> bytes:
    return (FIXTURES / path).read_bytes()


def cases(index: str) -> list[Any]:
    """The cases of an index of protocol/fixtures, for parametrize."""
    path = FIXTURES / index
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; remedy: run the tests in a checkout of the whole repository")
    found = json.loads(path.read_text(encoding="utf-8"))["cases"]
    assert found
    return [
        pytest.param(case, id=str(case.get("name", number)).encode("ascii", "replace").decode()[:60]) for number, case in enumerate(found)
    ]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The line that .ci/run counts."""
    stats = terminalreporter.stats
    passed = len(stats.get("passed", []))
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    terminalreporter.write_line(f"{passed} passed, {failed} failed")


def program(name: str) -> str:
    """The path of a program that `make test-python` builds."""
    path = ROOT / "bin" / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; remedy: run `make test-python`, which builds it")
    return str(path)


def callfan() -> str:
    """The program callfan, which brings NATS, a dispatcher and the conformance suite along."""
    return program("callfan")
