"""How to reach NATS."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from callfan.errors import ConfigurationError

__all__ = ["NatsConfig"]

_SCHEMES = ("nats", "tls", "ws", "wss")


@dataclass(frozen=True, slots=True)
class NatsConfig:
    """How to reach NATS, and what the installation is called there. At most one of creds, nkey, user and token."""

    #: One address, or several with commas between them.
    url: str = "nats://127.0.0.1:4222"
    #: A .creds file with JWT and seed.
    creds: str | None = None
    #: A file with an nkey seed.
    nkey: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    #: Certificates of the authorities that sign the server's; the client's own certificate and its key.
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    #: The first token of every subject of the installation.
    prefix: str = "fn"
    #: Where replies arrive, for users whose permissions name one.
    inbox_prefix: str = "_INBOX"
    #: The subject prefix of the JetStream API, for accounts that import it under another name.
    api_prefix: str = "$JS.API"

    @staticmethod
    def from_environment() -> NatsConfig:
        """The configuration by the environment variables that callfan's programs know."""
        env = os.environ.get
        default = NatsConfig()
        return NatsConfig(
            url=env("NATS_URL") or default.url,
            creds=env("NATS_CREDS") or None,
            nkey=env("NATS_NKEY") or None,
            user=env("NATS_USER") or None,
            password=env("NATS_PASSWORD") or _file("NATS_PASSWORD_FILE"),
            token=env("NATS_TOKEN") or _file("NATS_TOKEN_FILE"),
            ca=env("NATS_CA") or None,
            cert=env("NATS_CERT") or None,
            key=env("NATS_KEY") or None,
            prefix=env("CALLFAN_PREFIX") or default.prefix,
            inbox_prefix=env("CALLFAN_NATS_INBOX_PREFIX") or default.inbox_prefix,
            api_prefix=env("CALLFAN_NATS_API_PREFIX") or default.api_prefix,
        )

    def servers(self) -> list[str]:
        """The addresses, each with a scheme."""
        found = []
        for address in self.url.split(","):
            address = address.strip()
            scheme, mark, _ = address.partition("://")
            if not address:
                raise ConfigurationError(f"the NATS address {redact(self.url)!r} has an empty part")
            if not mark:
                address = f"nats://{address}"
            elif scheme.lower() not in _SCHEMES:
                raise ConfigurationError(f"{redact(address)}: NATS is not reached by {scheme}; use nats://, tls://, ws:// or wss://")
            found.append(address)
        return found

    def validate(self) -> None:
        """ConfigurationError when it cannot be used. Files are looked at before anything connects."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", self.prefix):
            raise ConfigurationError(f"prefix {self.prefix!r}: use 1 to 32 of A-Z a-z 0-9 _ -")
        if sum(1 for identity in (self.creds, self.nkey, self.user, self.token) if identity) > 1:
            raise ConfigurationError("more than one of creds, nkey, user and token is set; keep one")
        if bool(self.cert) != bool(self.key):
            raise ConfigurationError("a client certificate needs both its certificate file and its key file")
        self.servers()
        for name in ("creds", "nkey", "ca", "cert", "key"):
            path = getattr(self, name)
            if path and not Path(path).expanduser().is_file():
                raise ConfigurationError(f"the {name} file {path} does not exist")

    def tls(self) -> ssl.SSLContext | None:
        """The TLS context, when one is configured or an address asks for TLS."""
        if not (self.ca or self.cert or any(s.startswith(("tls://", "wss://")) for s in self.servers())):
            return None
        context = ssl.create_default_context(cafile=self.ca)
        if self.cert and self.key:
            context.load_cert_chain(self.cert, self.key)
        return context


def _file(variable: str) -> str | None:
    path = os.environ.get(variable)
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n") or None
    except OSError as err:
        raise ConfigurationError(f"{variable}: {err}") from None


def redact(addresses: str) -> str:
    """The addresses without passwords and tokens."""
    shown = []
    for address in addresses.split(","):
        try:
            parts = urlsplit(address.strip())
        except ValueError:
            shown.append("(unreadable address)")
            continue
        if "@" in parts.netloc:
            parts = parts._replace(netloc="xxxxx@" + parts.netloc.rpartition("@")[2])
        shown.append(parts.geturl())
    return ",".join(shown)
