"""Runs docs/executors/python.md: its commands, its programs, and what it promises."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callfan.testing import invoke
from conftest import ROOT, callfan

GUIDE = ROOT / "docs" / "executors" / "python.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"))


def block(language: str, text: str) -> str:
    found = [b for b in blocks(language) if text in b]
    assert len(found) == 1, f"{len(found)} blocks of {language} have {text!r}"
    return found[0]


class Shell:
    """Commands of the guide, run where they can do no harm."""

    def __init__(self, directory: Path, env: dict[str, str]) -> None:
        self.directory, self.env = directory, {**os.environ, **env}

    def _command(self, commands: str, replace: dict[str, str]) -> list[str]:
        replace = {"go run ./cmd/callfan": shlex.quote(callfan()), "./sdk/python": shlex.quote(str(ROOT / "sdk" / "python")), **replace}
        for old, new in replace.items():
            commands = commands.replace(old, new)
        *first, last = commands.strip().splitlines()
        return ["/bin/sh", "-euc", "\n".join([*first, f"exec {last}"])]  # signals go to the program

    def run(self, commands: str, **replace: str) -> str:
        ran = subprocess.run(
            self._command(commands, replace), cwd=self.directory, env=self.env, capture_output=True, text=True, timeout=300, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    @contextmanager
    def running(self, commands: str, awaited: str) -> Iterator[Path]:
        """Runs it until the with ends, and gives the file of its output."""
        output = self.directory / f"output-{len(list(self.directory.glob('output-*')))}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                self._command(commands, {}), cwd=self.directory, env=self.env, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            deadline = time.monotonic() + 60
            while awaited not in output.read_text():
                assert process.poll() is None and time.monotonic() < deadline, output.read_text()
                time.sleep(0.05)
            yield output
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, output.read_text()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def test_the_five_minutes(tmp_path: Path) -> None:
    ran: list[str] = []

    def commands(text: str) -> str:
        found = block("sh", text)
        ran.append(found)
        return found

    dev_env = {
        "CALLFAN_DEV_DIR": str(tmp_path / "state"),
        "CALLFAN_DEV_NATS_LISTEN": "127.0.0.1:0",
        "CALLFAN_DEV_SIMULATE_LISTEN": "127.0.0.1:0",
        "CALLFAN_LISTEN": "127.0.0.1:0",
        "PYTHONUNBUFFERED": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # python3 is the one that runs the tests
    }
    with Shell(tmp_path, dev_env).running(commands("callfan dev"), "OPENAI_API_KEY=any") as dev:

        def printed(pattern: str) -> str:
            match = re.search(pattern, dev.read_text())
            assert match, dev.read_text()
            return match[1]

        shell = Shell(tmp_path, {**dev_env, "NATS_URL": printed(r"NATS_URL=(\S+)"), "CALLFAN_DISPATCHER": printed(r"health, admin +(\S+)")})
        shell.run(commands("pip install ./sdk/python"))
        (tmp_path / "customers.py").write_text(block("python", "Answers calls of get_customer"))
        with shell.running(commands("python customers.py"), "executor serves"):
            api = {"http://127.0.0.1:8421/v1": printed(r"OPENAI_BASE_URL=(\S+)")}
            answer = shell.run(commands("callfan ask"), **api)
        assert 'get_customer({"customer_id":"123"}) = "{\\"found\\":true,\\"name\\":\\"Example Customer\\"}"' in answer
        assert "Customer 456 was not found." in answer
        (tmp_path / "test_customers.py").write_text(block("python", "from callfan.testing import invoke"))
        assert "2 passed" in shell.run(commands("pytest test_customers.py"))
    assert sorted(ran) == sorted(blocks("sh")), "a block of commands is not run"


def test_its_program_is_the_example() -> None:
    assert block("python", "Answers calls of") == (ROOT / "examples" / "python" / "customers.py").read_text()


def test_its_pieces_work() -> None:
    scope: dict[str, Any] = {"__name__": "guide"}
    for piece in blocks("python"):
        if "callfan.testing" not in piece:
            exec(compile(piece, str(GUIDE), "exec"), scope)
    cancel, pay = scope["cancel_order"], scope["pay"]
    assert invoke(cancel, {"order_id": 7}).text.startswith("cancelled with call_")
    assert invoke(cancel, {"order_id": 0}).error == "there is no order 0"
    assert invoke(cancel, {"order_id": 503}).after == 2
    assert invoke(pay, {"amount": 5}, uncertain=True).text == "paid 5"
    assert invoke(pay, {"amount": 6}, uncertain=True).text == "paid 6"
    assert invoke(pay, {"amount": 2_000_000}, uncertain=True).reason == "ask the bank"


def test_the_readme_of_the_package_works() -> None:
    pieces = re.findall(r"(?ms)^```python\n(.*?)^```$", (ROOT / "sdk" / "python" / "README.md").read_text())
    assert pieces
    scope: dict[str, Any] = {"__name__": "readme"}
    exec(compile(pieces[0], "README.md", "exec"), scope)
    assert invoke(scope["get_customer"], {"customer_id": "123"}).json() == {"found": True}
