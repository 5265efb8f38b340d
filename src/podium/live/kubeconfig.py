"""Which API server to ask and as whom: kubeconfig files merged as kubectl merges them, or the pod's service account."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml
from msgspec.structs import replace

from podium.errors import InputError

DEFAULT_FILE = "~/.kube/config"
DEFAULT_NAMESPACE = "default"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
IN_CLUSTER = "in-cluster"
"""The name of the context that a pod's service account stands for."""


class _Entry(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of a kubeconfig. Its repr names no values: some of them are secrets."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of a kubeconfig>"


class ClusterEntry(_Entry, frozen=True):
    """Where an API server is, and how to know it is the right one."""

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
    """A command that prints credentials, as the managed clusters use."""

    command: str
    api_version: str = ""
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False


class UserEntry(_Entry, frozen=True):
    """Who to be: any of these, or nobody."""

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
    """Kubeconfig files taken together: of what several files say, the first counts."""

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
        """How to reach the cluster of a context, by default the current one; InputError if that cannot be told."""
        where, name = _listed(map(str, self.paths)), context or self.current
        if not name:
            raise InputError(f"no current-context; say which with --context: {_listed(self.contexts)}", where)
        chosen = self.contexts.get(name)
        if chosen is None:
            raise InputError(f"no context {name!r}; there is {_listed(self.contexts)}", where)
        cluster, user = self.clusters.get(chosen.cluster), self.users.get(chosen.user)
        if cluster is None or not cluster.server:
            raise InputError(f"context {name!r} is of cluster {chosen.cluster!r}, which has no server there", where)
        if user is None and chosen.user:
            raise InputError(f"context {name!r} is of user {chosen.user!r}, who is not there", where)
        return Access(name, cluster, user or UserEntry(), chosen.namespace or DEFAULT_NAMESPACE)


def find_access(
    kubeconfig: str | None = None, context: str | None = None, *, service_account: str = SERVICE_ACCOUNT
) -> Access:
    """The API server to ask: of the file given, else of KUBECONFIG, else of the default file, else around this pod."""
    paths = _paths(kubeconfig)
    if paths:
        return Kubeconfig(paths).access(context or "")
    if not context and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(Path(service_account))
    looked_in = os.environ.get("KUBECONFIG") or DEFAULT_FILE
    raise InputError(
        f"no kubeconfig: {looked_in} is not there; give files with -f, or name a kubeconfig with --kubeconfig"
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
        raise InputError((error.strerror or str(error)).lower(), str(path)) from None
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
        problem = (error.strerror or str(error)).lower()
        raise InputError(f"{problem}; does the pod mount its service account's token?", str(account)) from None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    cluster = ClusterEntry(server=server, certificate_authority=str(account / "ca.crt"))
    return Access(IN_CLUSTER, cluster, UserEntry(token_file=str(account / "token")), namespace or DEFAULT_NAMESPACE)


def _cluster_in(cluster: ClusterEntry, directory: Path) -> ClusterEntry:
    return replace(cluster, certificate_authority=_absolute(cluster.certificate_authority, directory))


def _user_in(user: UserEntry, directory: Path) -> UserEntry:
    """The user with every file where it is: relative names are relative to the kubeconfig."""
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
