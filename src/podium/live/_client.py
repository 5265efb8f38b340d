"""A client of one API server: requests, paged lists, and watches, as bytes."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec

from podium.errors import InputError, PodiumError, os_problem
from podium.live.kubeconfig import Access, Credentials

PAGE = 500
"""The maximum number of objects per page of a list, as kubectl requests them."""
REQUEST_TIMEOUT = 60.0
"""The default timeout of a request in seconds."""
CONNECT_TIMEOUT = 30.0
MOST_RETRIES = 10
"""How often a request is repeated that the server asked to send later."""
LONGEST_RETRY_AFTER = 60.0
LONGEST_LINE = 64 << 20
"""The maximum bytes of one watch event: far more than etcd stores for an object."""

GONE = 410
"""The HTTP status of a list or watch whose resourceVersion the server no longer has."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class ApiError(PodiumError):
    """The API server refused a request, or cannot be reached. Never contains credentials."""

    def __init__(self, message: str, code: int = 0, reason: str = "") -> None:
        """`code` is the HTTP status, 0 if there was no answer; `reason` is Kubernetes' word for it."""
        super().__init__(message)
        self.code, self.reason = code, reason

    @property
    def is_unreachable(self) -> bool:
        return self.code == 0


class ApiStatus(msgspec.Struct):
    """The API server's answer instead of an object."""

    message: str = ""
    reason: str = ""
    code: int = 0


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct):
    """A page of a list; its objects are not decoded yet."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class Limit:
    """Allows `qps` requests a second, and `burst` at once; a qps of 0 or less means no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps, self._burst = qps, max(burst, 1)
        self._free, self._at = float(self._burst), time.monotonic()

    async def wait(self) -> None:
        if self._qps <= 0:
            return
        now = time.monotonic()
        self._free = min(self._free + (now - self._at) * self._qps, float(self._burst)) - 1
        self._at = now
        if self._free < 0:
            await asyncio.sleep(-self._free / self._qps)


class ApiClient:
    """Talks to the API server of an `Access`. Use it as an async context manager."""

    def __init__(self, access: Access, *, qps: float = 0.0, burst: int = 0, user_agent: str = "podium") -> None:
        self.access = access
        self._server = access.cluster.server.rstrip("/")
        self._credentials = Credentials(access)
        self._limit = Limit(qps, burst)
        self._user_agent = user_agent
        self._proxy = _proxy_for(access)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Get the credentials once, before many requests need them.
        await self._credentials.headers()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=90.0),
            headers={"User-Agent": self._user_agent, "Accept": JSON},
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=1 << 18,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    # -- requests ----------------------------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = JSON,
        timeout: float = REQUEST_TIMEOUT,
    ) -> bytes:
        """The body of the answer; ApiError for anything but success.

        A request that the server asks to send later (with Retry-After) is repeated, and so is one whose credentials
        expired.
        """
        limits, retries, was_refreshed = aiohttp.ClientTimeout(timeout, sock_connect=CONNECT_TIMEOUT), 0, False
        while True:
            await self._limit.wait()
            async with self._send(method, path, body, params, content_type, limits) as response:
                answer = await response.read()
                if response.status < 400:
                    return answer
                if response.status == 401 and not was_refreshed and self._credentials.refresh():
                    was_refreshed = True
                    continue
                after = _retry_after(response)
                if after is None or retries >= MOST_RETRIES:
                    raise self._error(response.status, answer)
                retries += 1
            await asyncio.sleep(after)

    async def pages(
        self, path: str, *, params: Mapping[str, str] | None = None, limit: int = PAGE
    ) -> AsyncGenerator[Page, None]:
        """A list page by page, or in one page if `limit` is 0; ApiError 410 if the server forgot the rest meanwhile."""
        asked = {"limit": str(limit), **(params or {})}
        while True:
            answer = await self.request("GET", path, params=asked)
            try:
                page = msgspec.json.decode(answer, type=Page)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise ApiError(f"{self._server}: the answer to GET {path} is not a list in JSON") from None
            yield page
            if not page.metadata.continue_:
                return
            asked["continue"] = page.metadata.continue_

    async def watch(self, path: str, params: Mapping[str, str], idle: float) -> AsyncGenerator[bytes, None]:
        """The events of a watch, one JSON text each, until the server ends it; `idle` is the maximum silence in
        seconds.
        """
        limits = aiohttp.ClientTimeout(None, sock_connect=CONNECT_TIMEOUT, sock_read=idle)
        async with self._send("GET", path, None, {**params, "watch": "true"}, JSON, limits) as response:
            if response.status >= 400:
                if response.status == 401:
                    self._credentials.refresh()
                raise self._error(response.status, await response.read())
            try:
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield line
                    if len(rest) > LONGEST_LINE:
                        raise ApiError(f"{self._server}: an event of {path} is longer than {LONGEST_LINE} bytes")
            finally:
                _cut(response)

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        params: Mapping[str, str] | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request; every failure becomes an ApiError."""
        assert self._session is not None, "use the client as an async context manager"
        headers = await self._credentials.headers()
        if body is not None:
            headers = [*headers, ("Content-Type", content_type)]
        try:
            async with self._session.request(
                method,
                self._server + path,
                data=body,
                params=params,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                ssl=self._credentials.ssl_context or True,
                server_hostname=self.access.cluster.tls_server_name or None,
                proxy=self._proxy,
            ) as response:
                yield response
        except TimeoutError:
            raise ApiError(f"{self._server}: no answer to {method} {path} in time") from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise ApiError(f"{self._server}: {_certificate_problem(error.certificate_error)}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ApiError(f"{self._server}: {_connection_problem(error)}") from None

    def _error(self, code: int, answer: bytes) -> ApiError:
        try:
            status = msgspec.json.decode(answer, type=ApiStatus)
        except (msgspec.DecodeError, UnicodeDecodeError):
            status = ApiStatus()
        if code == 401:
            return ApiError(
                f"{self._server}: the server does not accept the credentials of context {self.access.context}; "
                "log in again",
                code,
                status.reason,
            )
        return ApiError(status.message or f"{self._server}: HTTP status {code}", code, status.reason)


def _cut(response: aiohttp.ClientResponse) -> None:
    """Drop the connection of an answer that has not ended.

    A TLS shutdown would wait for the server, which keeps sending the events of a watch.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    """How many seconds to wait before repeating a request; None if the server did not ask for it."""
    said = response.headers.get("Retry-After", "")
    if (response.status != 429 and response.status < 500) or not said.isdigit():
        return None
    return min(float(said), LONGEST_RETRY_AFTER)


def _proxy_for(access: Access) -> str | None:
    """The proxy of the kubeconfig, else of the environment."""
    proxy = access.cluster.proxy_url
    if not proxy:
        url = urlsplit(access.cluster.server)
        proxy = "" if proxy_bypass(url.netloc) else getproxies().get(url.scheme, "")
    if proxy and not proxy.startswith(("http://", "https://")):
        scheme = proxy.partition(":")[0]
        raise InputError(f"proxy-url: {scheme} proxies are not known; use http or https", f"context {access.context}")
    return proxy or None


def _certificate_problem(error: Exception) -> str:
    said = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else str(error)
    return f"the server's certificate is not trusted: {said}; check certificate-authority and tls-server-name"


def _connection_problem(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect: {os_problem(error.os_error)}; is the server up?"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    if isinstance(error, aiohttp.InvalidURL):
        return "is not a URL"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer ends in the middle"
    return f"the connection failed: {type(error).__name__}"
