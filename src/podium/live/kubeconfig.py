"""Finds the API server and the credentials: kubeconfig files or the pod's service account, certificates, tokens and
exec plugins.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml
from msgspec.structs import replace

from podium.errors import InputError, os_problem

DEFAULT_FILE = "~/.kube/config"
DEFAULT_NAMESPACE = "default"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
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
        document = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
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
        if self._user.token_file or (self._user.exec is not None and not self._user.token):
            self._good_until = float("-inf")
        self.ssl_context = self._new_context(self._user) if access.cluster.server.startswith("https") else None
        """The TLS context with the client's certificate; None for a server without TLS."""

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
