"""Listening: on which address, for whom, and with which certificate."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from podium.errors import InputError
from podium.web.guard import LOOPBACK, App

SHORTEST_TOKEN = 16
MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where a server listens and what it asks of those who call."""

    address: str = "127.0.0.1"
    port: int = 8080
    token_file: str | None = None
    certificate: str | None = None
    key: str | None = None
    insecure: bool = False
    """Listen to other machines without a token or without TLS."""
    allowed_hosts: tuple[str, ...] = ()
    proof: str = "--token-file"
    """The option that callers prove with who they are: --token-file, or --client-ca where no token can be sent."""
    client_ca: str | None = None
    """Whose certificates callers have to have; as good as a token."""

    def check(self) -> None:
        """InputError unless it is safe to listen there, or the user said that it need not be."""
        if bool(self.certificate) != bool(self.key):
            raise InputError("--tls-cert and --tls-key belong together: give both or none")
        if not self.is_loopback and not self.insecure:
            missing = [
                option
                for option, value in (
                    (self.proof, self.token_file or self.client_ca),
                    ("--tls-cert", self.certificate),
                    ("--tls-key", self.key),
                )
                if not value
            ]
            if missing:
                raise InputError(
                    f"--address {self.address} can be reached from other machines, which needs "
                    f"{' and '.join(missing)}; or say --insecure to let everybody in"
                )
        self.token()
        if self.certificate and self.key:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
            except (OSError, ssl.SSLError) as error:
                raise InputError(f"cannot be used as a certificate and its key: {error}", self.certificate) from None

    @property
    def is_loopback(self) -> bool:
        if self.address == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return False

    def token(self) -> str:
        """The token of the file; empty where there is none."""
        if self.token_file is None:
            return ""
        try:
            token = Path(self.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", self.token_file) from None
        if len(token) < SHORTEST_TOKEN:
            raise InputError(
                f"a token has {SHORTEST_TOKEN} characters at least; make one with `openssl rand -hex 32`",
                self.token_file,
            )
        return token

    def hosts(self) -> tuple[str, ...]:
        """The names that requests may ask for."""
        named = f"[{self.address}]" if ":" in self.address else self.address
        everywhere = self.address in ("0.0.0.0", "::") and self.insecure and not self.allowed_hosts
        return (*LOOPBACK, named, *self.allowed_hosts, *(["*"] if everywhere else []))

    def guarding(self, most_bytes: int) -> dict[str, Any]:
        """What the guard has to know."""
        return {
            "hosts": self.hosts(),
            "token": self.token(),
            "most_bytes": most_bytes,
            "secure": self.certificate is not None,
        }

    @property
    def url(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}/"


Alongside = Callable[[], Coroutine[Any, Any, None]]
"""What else a server does while it listens."""


def listen(
    app: App,
    listening: Listening,
    *,
    on_started: Callable[[], object] = lambda: None,
    alongside: Alongside | None = None,
) -> None:
    """Serve until interrupted, or until what is done `alongside` fails; InputError if the port is taken."""
    # What was loaded stays: no use in looking through it again and again.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        host=listening.address,
        port=listening.port,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        ssl_ca_certs=listening.client_ca,
        ssl_cert_reqs=ssl.CERT_REQUIRED if listening.client_ca else ssl.CERT_NONE,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        timeout_keep_alive=75,
        limit_concurrency=500,
    )
    server = _Announcing(config, on_started, alongside)
    try:
        server.run()
        server.check()
    except SystemExit:
        raise InputError(f"cannot listen on {listening.address} port {listening.port}: is it taken?") from None


class _Announcing(uvicorn.Server):
    """Says when it listens."""

    def __init__(
        self, config: uvicorn.Config, on_started: Callable[[], object], alongside: Alongside | None = None
    ) -> None:
        super().__init__(config)
        self._on_started, self._alongside = on_started, alongside
        self._task: asyncio.Task[None] | None = None

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        self._on_started()
        if self._alongside is not None:
            self._task = asyncio.create_task(self._alongside())
            self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: Any = None) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await super().shutdown(sockets)

    def check(self) -> None:
        """Raise what ended the work alongside."""
        if self._task is not None and not self._task.cancelled():
            self._task.result()
