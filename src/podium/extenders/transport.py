"""One HTTP client per extender: posts a body, gives back the body of a 200, raises ExtenderError otherwise."""

from __future__ import annotations

import ipaddress
import re
import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httpx2

from podium.errors import ExtenderError
from podium.extenders.tls import tls_context
from podium.extenders.wire import one_line

if TYPE_CHECKING:
    from podium.config.types import ExtenderConfig

DEFAULT_TIMEOUT = 5.0
"""Seconds, when the configuration has no httpTimeout."""

_IDLE_SECONDS = 90.0
_MAX_REDIRECTS = 10


class Transport:
    """Posts to one extender. The time allowed covers the whole call, from connecting to the last byte."""

    def __init__(self, config: ExtenderConfig, name: str) -> None:
        self._name = name
        self._prefix = config.url_prefix.rstrip("/")
        self._secrets = _userinfo(config.url_prefix)
        # As in Go: zero is the default, less than zero is no limit.
        timeout = config.http_timeout or DEFAULT_TIMEOUT
        self._timeout = timeout if timeout > 0 else None
        server_name = config.tls_config.server_name if config.tls_config is not None else ""
        self._extensions: dict[str, Any] = {"sni_hostname": server_name} if server_name else {}
        self._client = httpx2.Client(
            verify=tls_context(config, where=f"extender {name}"),
            timeout=self._timeout,
            headers={"Content-Type": "application/json", "User-Agent": "podium"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            follow_redirects=True,
            max_redirects=_MAX_REDIRECTS,
            limits=httpx2.Limits(keepalive_expiry=_IDLE_SECONDS),
            trust_env=not _is_loopback(config.url_prefix),
        )

    def post(self, verb: str, body: bytes) -> bytes:
        """The answer to `POST <urlPrefix>/<verb>`."""
        if self._client.is_closed:
            raise ExtenderError(self._name, f"{verb}: the extender was closed")
        try:
            return self._exchange(verb, body)
        except httpx2.TimeoutException as error:
            raise self._late(verb) from error
        except httpx2.ConnectError as error:
            raise self.error(verb, f"cannot connect: {error}") from error
        except httpx2.RequestError as error:
            raise self.error(verb, str(error) or type(error).__name__) from error
        except httpx2.InvalidURL:
            # Its message may quote the part of the URL that holds a password.
            raise self.error(verb, "urlPrefix is not a valid URL") from None

    def close(self) -> None:
        self._client.close()

    def _exchange(self, verb: str, body: bytes) -> bytes:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        url = f"{self._prefix}/{verb}"
        received = bytearray()
        with self._client.stream("POST", url, content=body, extensions=self._extensions) as response:
            for chunk in response.iter_bytes():
                received += chunk
                # The client's own limit is per read: a server that drips would never meet it.
                if deadline is not None and time.monotonic() > deadline:
                    raise self._late(verb)
                if response.status_code != httpx2.codes.OK:
                    break
        if response.status_code != httpx2.codes.OK:
            said = one_line(received.decode("utf-8", "replace"), 120)
            raise self.error(verb, f"answered {response.status_code}" + (f": {said}" if said else ""))
        return bytes(received)

    def _late(self, verb: str) -> ExtenderError:
        return ExtenderError(self._name, f"{verb}: no answer within {self._timeout:g} s")

    def error(self, verb: str, message: str) -> ExtenderError:
        """The error to raise for a call that failed, on one line and without the URL's password."""
        for secret in self._secrets:
            message = message.replace(secret, "***")
        return ExtenderError(self._name, f"{verb}: {one_line(message, 300)}")


_USERINFO = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?([^/?#]*)@")


def public_url(url: str) -> str:
    """The URL without user, password, query and fragment: what may be shown."""
    return re.split("[?#]", _USERINFO.sub(r"\1", url), maxsplit=1)[0]


def _userinfo(url: str) -> tuple[str, ...]:
    """What stands for the password in the URL, as written and as sent; nothing when there is none."""
    found = _USERINFO.match(url)
    password = found[2].partition(":")[2] if found else ""
    return tuple(dict.fromkeys((password, unquote(password)))) if password else ()


def _is_loopback(url: str) -> bool:
    """Whether the URL names this machine: Go never sends such calls through a proxy, whatever the environment says."""
    try:
        host = httpx2.URL(url).host
    except httpx2.InvalidURL:
        return False
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
