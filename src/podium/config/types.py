"""The effective scheduler configuration: defaults applied, plugins expanded, validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

EXTENSION_POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)

MAX_NODE_SCORE = 100
"""The highest score of a plugin for a node, before its weight."""
DEFAULT_EXTENDER_TIMEOUT = 5.0
"""Seconds, when the configuration has no httpTimeout."""

KnownPlugins = Mapping[str, frozenset[str]]
"""The available plugins, each with the extension points it implements."""


class PluginRef(NamedTuple):
    """A plugin at an extension point. The weight matters at `score` only, and is 0 elsewhere."""

    name: str
    weight: int = 0


@dataclass(frozen=True, kw_only=True)
class TLSConfig:
    """The TLS settings of an extender. Keys and certificates never appear in its repr."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = field(default=b"", repr=False)
    key_data: bytes = field(default=b"", repr=False)
    ca_data: bytes = field(default=b"", repr=False)


class ManagedResource(NamedTuple):
    """A resource that an extender counts; pods that request none of its resources are not sent to it."""

    name: str
    ignored_by_scheduler: bool = False


@dataclass(frozen=True, kw_only=True)
class ExtenderConfig:
    """An HTTP extender. An empty verb means that the extender does not take part; `http_timeout` is in seconds."""

    url_prefix: str = ""
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls_config: TLSConfig | None = None
    http_timeout: float = DEFAULT_EXTENDER_TIMEOUT
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One scheduler name: the plugins that run at each extension point, in order, and their arguments.

    `args` has typed arguments for in-tree plugins that take any, and raw documents for other plugins.
    `percentage_of_nodes_to_score` overrides the configuration's if it is not None.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    points: dict[str, tuple[PluginRef, ...]]
    args: dict[str, object]


class ClientConnection(NamedTuple):
    """The limits of requests to the API server: per second, and in a burst. No limit below 0."""

    kubeconfig: str = ""
    qps: float = 50.0
    burst: int = 100


class LeaderElection(NamedTuple):
    """How several schedulers elect a leader. Times are in seconds."""

    leader_elect: bool = True
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    resource_name: str = ""
    resource_namespace: str = ""


@dataclass(frozen=True, kw_only=True)
class KubeSchedulerConfiguration:
    """The effective configuration. `percentage_of_nodes_to_score` 0 means adaptive.

    Extenders are in the order they are called: the ignorable ones last.
    """

    profiles: tuple[Profile, ...]
    percentage_of_nodes_to_score: int = 0
    parallelism: int = 16
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    extenders: tuple[ExtenderConfig, ...] = ()
    old_release: str = ""
    """The release before v1.29 that it is for; empty for current releases."""
    client_connection: ClientConnection = field(default=ClientConnection(), compare=False)
    leader_election: LeaderElection = field(default=LeaderElection(), compare=False)
    """Like `client_connection`, it concerns the process: configurations that differ only in these decide the same."""
