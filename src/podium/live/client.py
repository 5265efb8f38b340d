"""A client of one API server: finds the server and the credentials (kubeconfig files or the pod's service account,
certificates, tokens and exec plugins); requests, paged lists and watches, as bytes.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
import yaml
from msgspec.structs import replace

from podium.errors import InputError, PodiumError, os_problem
from podium.live.fence import Fence, FencedError, fenced_request
from podium.live.loopback import is_loopback

# -- kubeconfig and credentials ----------------------------------------------------------------------------------------


DEFAULT_FILE = "~/.kube/config"
DEFAULT_NAMESPACE = "default"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
DEEPEST = 100
"""How many levels of a kubeconfig are read: a few more than there are."""
IN_CLUSTER = "in-cluster"
"""The context name for a pod's service account."""


class _Entry(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of a kubeconfig. Its repr shows no values, as some of them are secrets."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of a kubeconfig>"


class ClusterEntry(_Entry, frozen=True):
    """The address of an API server, and how to verify it."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class ExecVariable(_Entry, frozen=True):
    name: str
    value: str = ""


class ExecPlugin(_Entry, frozen=True, rename="camel"):
    """A command that prints credentials, as managed clusters use it."""

    command: str
    api_version: str = ""
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False


class UserEntry(_Entry, frozen=True):
    """The credentials of a user; all fields are optional."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: ExecPlugin | None = None
    auth_provider: dict[str, object] | None = None
    as_user: str = msgspec.field(name="as", default="")
    as_groups: list[str] = []
    as_uid: str = ""
    as_user_extra: dict[str, list[str]] = {}


class ContextEntry(_Entry, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Entry, frozen=True):
    name: str
    cluster: ClusterEntry = ClusterEntry()


class _NamedUser(_Entry, frozen=True):
    name: str
    user: UserEntry = UserEntry()


class _NamedContext(_Entry, frozen=True):
    name: str
    context: ContextEntry = ContextEntry()


class _File(_Entry, frozen=True):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


class Access(NamedTuple):
    """Everything needed to talk to one API server."""

    context: str
    cluster: ClusterEntry
    user: UserEntry
    namespace: str

    def __repr__(self) -> str:
        return f"<Access to context {self.context!r}>"


class Kubeconfig:
    """Kubeconfig files merged: if several files define something, the first one counts."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self.clusters: dict[str, ClusterEntry] = {}
        self.users: dict[str, UserEntry] = {}
        self.contexts: dict[str, ContextEntry] = {}
        self.current = ""
        for path in paths:
            self._merge(_read(path), path.parent)

    def _merge(self, file: _File, directory: Path) -> None:
        for each in file.clusters or ():
            self.clusters.setdefault(each.name, _cluster_in(each.cluster, directory))
        for each_user in file.users or ():
            self.users.setdefault(each_user.name, _user_in(each_user.user, directory))
        for each_context in file.contexts or ():
            self.contexts.setdefault(each_context.name, each_context.context)
        self.current = self.current or file.current_context or ""

    def access(self, context: str = "") -> Access:
        """How to reach the cluster of a context, by default the current one; InputError if there is none."""
        where, name = _listed(map(str, self.paths)), context or self.current
        if not name:
            raise InputError(f"no current-context; say which with --context: {_listed(self.contexts)}", where)
        chosen = self.contexts.get(name)
        if chosen is None:
            raise InputError(f"no context {name!r}; there is {_listed(self.contexts)}", where)
        cluster, user = self.clusters.get(chosen.cluster), self.users.get(chosen.user)
        if cluster is None or not cluster.server:
            raise InputError(f"context {name!r} names cluster {chosen.cluster!r}, which has no server", where)
        if user is None and chosen.user:
            raise InputError(f"context {name!r} names user {chosen.user!r}, who does not exist", where)
        return Access(name, cluster, user or UserEntry(), chosen.namespace or DEFAULT_NAMESPACE)


def find_access(
    kubeconfig: str | None = None, context: str | None = None, *, service_account: str = SERVICE_ACCOUNT
) -> Access:
    """The API server to use: from the given file, else KUBECONFIG, else the default file, else this pod's
    service account.
    """
    paths = _paths(kubeconfig)
    if paths:
        return Kubeconfig(paths).access(context or "")
    if not context and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(Path(service_account))
    looked_in = os.environ.get("KUBECONFIG") or DEFAULT_FILE
    raise InputError(
        f"no kubeconfig: {looked_in} does not exist; give files with -f, or name a kubeconfig with --kubeconfig"
    )


def _paths(kubeconfig: str | None) -> list[Path]:
    """The files that count: one that is named must be there, those of KUBECONFIG need not."""
    if kubeconfig:
        return [Path(kubeconfig).expanduser()]
    named = [name for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    return [path for path in (Path(name).expanduser() for name in named or [DEFAULT_FILE]) if path.exists()]


def _read(path: Path) -> _File:
    try:
        text, loader = path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        _check_depth(text, loader, str(path))
        document = yaml.load(text, Loader=loader)
        return msgspec.convert(document or {}, _File)
    except OSError as error:
        raise InputError(os_problem(error), str(path)) from None
    except yaml.YAMLError as error:
        # What YAML says of an error quotes the text around it, which may be a secret.
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f" at line {mark.line + 1}"
        raise InputError(f"is not YAML{line}", str(path)) from None
    except msgspec.ValidationError as error:
        raise InputError(f"is not a kubeconfig: {error}", str(path)) from None


def _check_depth(text: bytes, loader: Any, where: str) -> None:
    """InputError for a text nested so deeply that loading it could end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise InputError(f"is not a kubeconfig: it is nested more than {DEEPEST} levels deep", where)


def _in_cluster(account: Path) -> Access:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        namespace = (account / "namespace").read_text().strip()
    except OSError as error:
        problem = os_problem(error)
        raise InputError(f"{problem}; does the pod mount its service account's token?", str(account)) from None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    cluster = ClusterEntry(server=server, certificate_authority=str(account / "ca.crt"))
    return Access(IN_CLUSTER, cluster, UserEntry(token_file=str(account / "token")), namespace or DEFAULT_NAMESPACE)


def _cluster_in(cluster: ClusterEntry, directory: Path) -> ClusterEntry:
    return replace(cluster, certificate_authority=_absolute(cluster.certificate_authority, directory))


def _user_in(user: UserEntry, directory: Path) -> UserEntry:
    """The user with absolute file names: relative names are relative to the kubeconfig."""
    plugin = user.exec
    if plugin is not None and os.path.dirname(plugin.command):
        plugin = replace(plugin, command=_absolute(plugin.command, directory))
    return replace(
        user,
        client_certificate=_absolute(user.client_certificate, directory),
        client_key=_absolute(user.client_key, directory),
        token_file=_absolute(user.token_file, directory),
        exec=plugin,
    )


def _absolute(name: str, directory: Path) -> str:
    return str(directory / name) if name else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


TOKEN_FILE_AGE = 60.0
"""A token file is read again after this many seconds: the kubelet replaces the token in time."""
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_TIMEOUT = 120.0
"""Seconds: a plugin may have to wait for a login."""

Headers = list[tuple[str, str]]


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _ExecStatus | None = None


class Credentials:
    """The credentials for every request. Call `refresh` when the server no longer accepts them."""

    def __init__(self, access: Access) -> None:
        self._access, self._user = access, access.user
        self._where = f"context {access.context}"
        self._token, self._good_until = self._user.token, float("inf")
        self._lock = asyncio.Lock()
        self._fixed = _fixed_headers(self._user, self._where)
        self._check_transport()
        if self._user.token_file or (self._user.exec is not None and not self._user.token):
            self._good_until = float("-inf")
        self.ssl_context = self._new_context(self._user) if access.cluster.server.startswith("https") else None
        """The TLS context with the client's certificate; None for a server without TLS."""

    def _check_transport(self) -> None:
        """InputError if a secret would leave this machine over plain http."""
        url, user = self._access.cluster.server, self._user
        has_secret = (
            user.token or user.token_file or user.exec is not None or user.username or "@" in urlsplit(url).netloc
        )
        if has_secret and not url.startswith("https://") and not is_loopback(url):
            problem = f"{without_password(url)} is plain http: credentials are sent over https only"
            raise InputError(f"{problem}; use https, or kubectl proxy", self._where)

    async def headers(self) -> Headers:
        """The authentication headers."""
        if time.monotonic() >= self._good_until:
            async with self._lock:
                if time.monotonic() >= self._good_until:
                    await self._renew()
        return [*self._fixed, ("Authorization", f"Bearer {self._token}")] if self._token else self._fixed

    def refresh(self) -> bool:
        """Get new credentials for the next request; False if there is no source of new ones."""
        if not (self._user.token_file or self._user.exec):
            return False
        self._good_until = float("-inf")
        return True

    async def _renew(self) -> None:
        if self._user.token_file:
            try:
                self._token = Path(self._user.token_file).read_text().strip()
            except OSError as error:
                problem = os_problem(error)
                raise InputError(f"tokenFile {self._user.token_file}: {problem}", self._where) from None
            self._good_until = time.monotonic() + TOKEN_FILE_AGE
        elif self._user.exec is not None:
            status = await self._run_plugin(self._user.exec)
            self._token = status.token
            if status.client_certificate_data:
                self.ssl_context = self._new_context(self._user, status)
            self._good_until = _monotonic(status.expiration_timestamp, self._where)

    # -- exec plugins ------------------------------------------------------------------------------------------------

    async def _run_plugin(self, plugin: ExecPlugin) -> _ExecStatus:
        where = f"{self._where}: exec plugin {plugin.command}"
        if plugin.api_version not in EXEC_VERSIONS:
            raise InputError(f"apiVersion {plugin.api_version!r} is not known; use {EXEC_VERSIONS[0]}", where)
        variables = {each.name: each.value for each in plugin.env or ()}
        environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": self._exec_info(plugin)}
        command = [plugin.command, *(plugin.args or ())]
        try:
            # The plugin shares the user's stderr: it may have to show where to log in.
            process = await asyncio.to_thread(
                subprocess.run, command, env=environment, stdout=subprocess.PIPE, timeout=EXEC_TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"no answer within {EXEC_TIMEOUT:g} s", where) from None
        except OSError as error:
            hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
            raise InputError(f"{os_problem(error)}{hint}", where) from None
        if process.returncode:
            raise InputError(f"failed with exit code {process.returncode}", where)
        return _status_of(process.stdout, plugin, where)

    def _exec_info(self, plugin: ExecPlugin) -> str:
        spec: dict[str, object] = {"interactive": sys.stdin is not None and sys.stdin.isatty()}
        if plugin.provide_cluster_info:
            cluster = self._access.cluster
            known = {
                "server": cluster.server,
                "tls-server-name": cluster.tls_server_name,
                "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
                "certificate-authority-data": _certificate_data(cluster.certificate_authority_data, self._access),
                "proxy-url": cluster.proxy_url,
            }
            spec["cluster"] = {name: value for name, value in known.items() if value}
        return json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})

    # -- TLS ---------------------------------------------------------------------------------------------------------

    def _new_context(self, user: UserEntry, status: _ExecStatus | None = None) -> ssl.SSLContext:
        cluster = self._access.cluster
        context = ssl.create_default_context()
        # As in Go: any trusted certificate may end the chain, and old ones need not have every extension.
        context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
        try:
            if cluster.insecure_skip_tls_verify:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            elif cluster.certificate_authority_data:
                context = _trusting(context.verify_flags)
                context.load_verify_locations(cadata=_decoded(cluster.certificate_authority_data).decode())
            elif cluster.certificate_authority:
                context = _trusting(context.verify_flags)
                context.load_verify_locations(cafile=cluster.certificate_authority)
        except (OSError, ValueError, binascii.Error) as error:
            raise InputError(f"certificate-authority cannot be used: {_reason(error)}", self._where) from None
        try:
            _load_client_certificate(context, user, status)
        except (OSError, ValueError, binascii.Error) as error:
            raise InputError(f"client certificate or key cannot be used: {_reason(error)}", self._where) from None
        return context


def _fixed_headers(user: UserEntry, where: str) -> Headers:
    """The headers that never change: basic authentication and impersonation."""
    if user.auth_provider is not None and not (user.token or user.exec or user.token_file):
        raise InputError("auth-provider was removed from Kubernetes; use an exec plugin", where)
    headers: Headers = []
    if user.username and not user.token:
        encoded = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        headers.append(("Authorization", f"Basic {encoded}"))
    if user.as_user:
        headers.append(("Impersonate-User", user.as_user))
        headers += [("Impersonate-Group", group) for group in user.as_groups]
        headers += [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
        for name, values in user.as_user_extra.items():
            headers += [(f"Impersonate-Extra-{quote(name.lower(), safe='')}", value) for value in values]
    elif user.as_groups or user.as_uid or user.as_user_extra:
        raise InputError("as-groups, as-uid and as-user-extra need the user to be impersonated: as", where)
    return headers


def _status_of(output: bytes, plugin: ExecPlugin, where: str) -> _ExecStatus:
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.DecodeError:
        raise InputError("printed no ExecCredential", where) from None
    if credential.api_version != plugin.api_version:
        raise InputError(f"printed apiVersion {credential.api_version!r}, not {plugin.api_version}", where)
    status = credential.status
    if status is None or not (status.token or (status.client_certificate_data and status.client_key_data)):
        raise InputError("printed neither a token nor a certificate with its key", where)
    return status


def _monotonic(timestamp: str, where: str) -> float:
    """The expiry of credentials on the monotonic clock; infinity if there is none."""
    if not timestamp:
        return float("inf")
    try:
        until = datetime.fromisoformat(timestamp)
    except ValueError:
        raise InputError(f"expirationTimestamp {timestamp!r} is not a time", where) from None
    left = (until if until.tzinfo else until.replace(tzinfo=UTC)) - datetime.now(UTC)
    return time.monotonic() + left.total_seconds()


def _trusting(verify_flags: ssl.VerifyFlags) -> ssl.SSLContext:
    """An SSL context that verifies certificates and has no trusted authority yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags = verify_flags
    return context


def _load_client_certificate(context: ssl.SSLContext, user: UserEntry, status: _ExecStatus | None) -> None:
    if status is not None:
        _load_pair(context, status.client_certificate_data.encode(), status.client_key_data.encode())
    elif user.client_certificate_data or user.client_certificate:
        certificate = _decoded(user.client_certificate_data) or Path(user.client_certificate).read_bytes()
        key = _decoded(user.client_key_data) or (Path(user.client_key).read_bytes() if user.client_key else b"")
        _load_pair(context, certificate, key)


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate and its key through a temporary file that only this user can read."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)


def _certificate_data(data: str, access: Access) -> str:
    """The CA as written in a kubeconfig, read from its file if necessary."""
    path = access.cluster.certificate_authority
    return data or (base64.b64encode(Path(path).read_bytes()).decode() if path else "")


def _decoded(data: str) -> bytes:
    return base64.b64decode(data, validate=True) if data else b""


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "it is not PEM").lower().replace("_", " ")
    return os_problem(error) if isinstance(error, OSError) else str(error)


# -- requests, lists and watches ---------------------------------------------------------------------------------------


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
FENCED_CODE, FENCED = 499, "this replica may no longer be the leader"
"""The code of a write that was not sent; no server answers with it."""

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


class SilentWatchError(ApiError):
    """A watch from which nothing came for too long: the connection may be half open."""


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


class Requests(Protocol):
    """Makes requests to an API server."""

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
        """The body of the answer; ApiError for anything but success."""


class ApiClient:
    """Talks to the API server of an `Access`. Use it as an async context manager."""

    def __init__(
        self,
        access: Access,
        *,
        qps: float = 0.0,
        burst: int = 0,
        user_agent: str = "podium",
        fence: Fence | None = None,
    ) -> None:
        """With a `fence`, nothing but GET is sent while the fence is closed."""
        self.access = access
        self._request_class = aiohttp.ClientRequest if fence is None else fenced_request(fence)
        self._url = access.cluster.server.rstrip("/")
        self._server = without_password(self._url)
        self._credentials = Credentials(access)
        self._limit = Limit(qps, burst)
        self._user_agent = user_agent
        self._proxy = _proxy_for(access)
        self._session: aiohttp.ClientSession | None = None
        self.in_flight: set[asyncio.Task[Any] | None] = set()
        """The tasks whose request was sent and has no answer yet."""
        self.errors: Counter[int] = Counter()
        """How many requests failed, by HTTP status; 0 counts those without an answer."""

    async def __aenter__(self) -> Self:
        # Get the credentials once, before many requests need them.
        await self._credentials.headers()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=90.0, socket_factory=_new_socket),
            headers={"User-Agent": self._user_agent, "Accept": JSON},
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=1 << 18,
            request_class=self._request_class,
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
            async with self._sent(), self._send(method, path, body, params, content_type, limits) as response:
                answer = await response.read()
                if response.status < 400:
                    return answer
                if response.status == 401 and not was_refreshed and self._credentials.refresh():
                    was_refreshed = True
                    continue
                after = _retry_after(response)
                self.errors[response.status] += 1
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
                self.errors[response.status] += 1
                if response.status == 401:
                    self._credentials.refresh()
                raise self._error(response.status, await response.read())
            try:
                rest = b""
                # A timeout from here on is silence: the server did accept the watch.
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield line
                    if len(rest) > LONGEST_LINE:
                        raise ApiError(f"{self._server}: an event of {path} is longer than {LONGEST_LINE} bytes")
            except TimeoutError:
                raise SilentWatchError(f"{self._server}: nothing came from the watch of {path} in {idle:g} s") from None
            finally:
                _cut(response)

    @asynccontextmanager
    async def _sent(self) -> AsyncIterator[None]:
        """Note that this task's request is on its way."""
        task = asyncio.current_task()
        self.in_flight.add(task)
        try:
            yield
        finally:
            self.in_flight.discard(task)

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
                self._url + path,
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
        except FencedError:
            raise ApiError(f"{method} {path} was not sent: {FENCED}", FENCED_CODE) from None
        except TimeoutError:
            self.errors[0] += 1
            raise ApiError(f"{self._server}: no answer to {method} {path} in time") from None
        except aiohttp.ClientConnectorCertificateError as error:
            self.errors[0] += 1
            raise ApiError(f"{self._server}: {_certificate_problem(error.certificate_error)}") from None
        except (aiohttp.ClientError, OSError) as error:
            self.errors[0] += 1
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


KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
"""Seconds, how often, and milliseconds: a peer that is gone is noticed after about 45 s, and after 30 s if something
was sent to it. Systems without one of these options do without it.
"""


def _new_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket that notices when its peer is gone without having closed the connection."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


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


def without_password(url: str) -> str:
    """A URL without user and password, to be shown."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}" if separator else url.rpartition("@")[2]


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
