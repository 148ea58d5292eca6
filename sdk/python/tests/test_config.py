"""Settings."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from callfan import ConfigurationError, Executor, NatsConfig
from callfan._nats.denials import Denials
from callfan.config import redact
from callfan.logs import JsonFormatter


def test_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NATS_URL", "NATS_CREDS", "NATS_USER", "NATS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert NatsConfig.from_environment().url == "nats://127.0.0.1:4222"
    secret = tmp_path / "password"
    secret.write_text("hunter2\n")
    monkeypatch.setenv("NATS_URL", "a:1, tls://b:2")
    monkeypatch.setenv("NATS_USER", "crm")
    monkeypatch.setenv("NATS_PASSWORD_FILE", str(secret))
    config = NatsConfig.from_environment()
    assert config.servers() == ["nats://a:1", "tls://b:2"]
    assert (config.user, config.password) == ("crm", "hunter2")
    assert "hunter2" not in repr(config)
    config.validate()


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (NatsConfig(url="http://a"), "http"),
        (NatsConfig(url="a,,b"), "empty"),
        (NatsConfig(prefix="a.b"), "prefix"),
        (NatsConfig(user="a", token="b"), "keep one"),
        (NatsConfig(cert="a"), "both"),
        (NatsConfig(creds="/nowhere/at.creds"), "does not exist"),
    ],
)
def test_wrong_settings_are_refused(config: NatsConfig, word: str) -> None:
    with pytest.raises(ConfigurationError, match=word):
        config.validate()


def test_executors_refuse_what_cannot_work() -> None:
    for options in ({"pool": "a.b"}, {"pool": "a", "concurrency": 0}, {"pool": "a", "id": "x" * 129}, {"pool": "a", "id": "a\nb"}):
        with pytest.raises(ConfigurationError):
            Executor(**options)
    ex = Executor("a")
    with pytest.raises(ConfigurationError, match="no function"):
        ex.run()
    ex.function(name="f")(lambda: None)
    with pytest.raises(ConfigurationError, match="already"):
        ex.function(name="f")(lambda: None)
    assert len(ex.id) <= 128


def test_passwords_are_not_shown() -> None:
    assert redact("nats://a:hunter2@b:1,nats://token@c") == "nats://xxxxx@b:1,nats://xxxxx@c"


def test_refused_subjects_are_shown_as_they_are_written() -> None:
    denials = Denials("crm")
    denials.spell("$JS.API.CONSUMER.MSG.NEXT.FN_CALLS.pool_CRM")
    denials.spell("$JS.ACK.FN_CALLS.pool_CRM.>")
    denied = denials.record('nats: permissions violation for publish to "$js.api.consumer.msg.next.fn_calls.pool_crm"')
    assert denied is not None
    assert denied.subject == "$JS.API.CONSUMER.MSG.NEXT.FN_CALLS.pool_CRM"
    assert 'user "crm" may not publish' in str(denied)
    denied = denials.record('nats: permissions violation for publish to "$js.ack.fn_calls.pool_crm.1.2.3"')
    assert denied is not None
    assert denied.subject == "$JS.ACK.FN_CALLS.pool_CRM.>"
    assert denials.record("nats: something else") is None


def test_log_lines_are_json() -> None:
    record = logging.LogRecord("callfan", logging.INFO, "f", 1, "executor serves", None, None)
    record.functions = 2
    line = JsonFormatter().format(record)
    assert '"msg": "executor serves"' in line
    assert '"functions": 2' in line
