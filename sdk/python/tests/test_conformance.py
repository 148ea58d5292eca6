"""The SDK as a whole, against `callfan conformance`."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

from conftest import ROOT, callfan


def test_conformance_passes_in_full() -> None:
    executor = shlex.join([sys.executable, str(ROOT / "sdk" / "python" / "conformance_executor.py")])
    ran = subprocess.run([callfan(), "conformance", "--executor", executor], capture_output=True, text=True, timeout=600, check=False)
    report = json.loads(ran.stdout.splitlines()[-1])
    assert report["language"] == "python"
    assert report["level"] == "full"
    assert (report["failed_tests"], report["skipped_tests"]) == ([], []), ran.stdout
    assert report["passed"] >= 100
    assert ran.returncode == 0, ran.stderr
