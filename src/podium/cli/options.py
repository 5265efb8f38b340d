"""Options that several commands share, single or in groups: a parameter of a group's type stands for its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from podium.cli.output import NODE_DOMAIN
from podium.rules.gates import NEWEST

if TYPE_CHECKING:
    from podium.engine.release import AnyRelease
    from podium.engine.scheduler import SchedulerKeywords
    from podium.framework import Registry
    from podium.model import Object

T = TypeVar("T", bound="Object")


class TieBreak(StrEnum):
    RANDOM = "random"
    FIRST = "first"
    ROUND_ROBIN = "round-robin"


class Sampling(StrEnum):
    ALL = "all"
    UPSTREAM = "upstream"


def complete_pods(context: typer.Context, incomplete: str) -> list[str]:
    """Shell completion: the pods of the files named so far, as namespace/name or name; the shell filters them."""
    from podium.model import Pod

    pods = _objects(context, Pod)
    keys = [pod.key for pod in pods if pod.key.startswith(incomplete)]
    return keys or [pod.name for pod in pods if pod.name.startswith(incomplete)]


def complete_nodes(context: typer.Context, incomplete: str) -> list[str]:
    """Shell completion: the nodes of the files named so far whose names match."""
    from podium.model import Node

    return [node.name for node in _objects(context, Node) if node.name.startswith(incomplete)]


def _objects(context: typer.Context, kind: type[T]) -> list[T]:
    from podium.errors import PodiumError
    from podium.manifests import load

    try:
        return list(load(*context.params["files"]).of(kind)) if context.params.get("files") else []
    except PodiumError:
        return []  # the shell has nowhere to show an error; the command itself will


Files = Annotated[
    list[str],
    typer.Option(
        "-f",
        "--filename",
        metavar="FILE",
        help="YAML or JSON of Kubernetes objects, plain or gzip, a directory, or `-` for stdin; several add up, "
        "and an object of a later one is applied over that of an earlier one. "
        "Without any, the cluster of the current kubeconfig context is read.",
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option("--kubeconfig", metavar="FILE", help="Which cluster to read; by default as kubectl finds it."),
]
Context = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="The kubeconfig context to use, not the current one.")
]
Namespace = Annotated[str | None, typer.Option("-n", "--namespace", metavar="NAME", help="The pod's namespace.")]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration; by default the one in the input."),
]
Profile = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="Decide with this profile, not the pod's own.")
]
Plugins = Annotated[
    list[str],
    typer.Option("--plugin", metavar="MODULE:CLASS", help="A plugin of your own; may be given several times."),
]
Dask = Annotated[
    str | None, typer.Option("--dask", metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://HOST:8786.")
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Of the random tie-break; the same seed gives the same choices.")
]
Ties = Annotated[
    TieBreak, typer.Option("--tie-break", help="Which of several best nodes is taken; `first` is the smallest name.")
]
TiesOfRelease = Annotated[
    TieBreak | None,
    typer.Option(
        "--tie-break",
        help="Which of several best nodes is taken, by default as the release does; `first` is the smallest name.",
    ),
]
Sampled = Annotated[
    Sampling, typer.Option("--sampling", help="Evaluate all nodes, or as many as kube-scheduler would.")
]


AUTO = "auto"
"""Means the release of the nodes."""
Releases = Annotated[
    str | None,
    typer.Option(
        "--release",
        metavar="RELEASE",
        help=f"Which release of kube-scheduler decides, v1.29 to {NEWEST}; by default, or with `auto`, that of the "
        f"nodes, and {NEWEST} if they do not say theirs. For v1.8, v1.14 and v1.18 --config is a Policy, or the name "
        "of a provider.",
    ),
]
FeatureGates = Annotated[
    str | None,
    typer.Option(
        "--feature-gates", metavar="A=true,B=false", help="Feature gates to switch; `podium releases` lists them."
    ),
]
EquivalenceCache = Annotated[
    bool,
    typer.Option(
        "--equivalence-cache/--no-equivalence-cache",
        help="Whether pods of one kind share results; the decisions are the same.",
    ),
]
All = Annotated[bool, typer.Option("--all", help="Show every node, not the first ten.")]
AssumeVolumes = Annotated[
    bool, typer.Option("--assume-volumes", help="Ignore storage: assume that every volume is usable on every node.")
]
Html = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Also write a report as one HTML file, to open anywhere.")
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Also list the kinds of objects that were skipped.")]

Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse unknown kinds and fields, and invalid names, rather than warn.")
]
NoWarn = Annotated[bool, typer.Option("--no-warn", help="Do not print warnings about the input.")]
MaxInput = Annotated[
    str | None,
    typer.Option(
        "--max-input",
        metavar="SIZE",
        help="Refuse a file of more than this, unpacked, such as 512Mi; by default 4Gi, and 1Gi for gzip and pipes.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ClusterSource:
    """The cluster to read: from files, or a live cluster."""

    files: Files = field(default_factory=list)
    kubeconfig: Kubeconfig = None
    context: Context = None
    strict: Strict = False
    no_warn: NoWarn = False

    @property
    def is_given(self) -> bool:
        """Whether files or a cluster are named; without, the current context's cluster is meant."""
        return bool(self.files or self.kubeconfig or self.context)


@dataclass(frozen=True, kw_only=True)
class Source(ClusterSource):
    """The source of the objects: files, or a live cluster."""

    verbose: Verbose = False


ScenarioFile = Annotated[
    str | None,
    typer.Option(
        "--scenario",
        metavar="FILE",
        help="Ask about the cluster in a scenario: after its steps, with its release, configuration and weights.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ScenarioSource(Source):
    """The source of the objects, and a scenario to see them in."""

    scenario: ScenarioFile = None


@dataclass(frozen=True, kw_only=True)
class WhichRelease:
    """The release that decides."""

    release: Releases = None
    feature_gates: FeatureGates = None


@dataclass(frozen=True, kw_only=True)
class WithPlugins(WhichRelease):
    """The release that decides, and its plugins."""

    plugins: Plugins = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Deciding(WithPlugins):
    """The scheduler that decides."""

    config: Config = None

    @property
    def choices(self) -> SchedulerKeywords:
        """The choices that its configuration and release leave open."""
        return {}

    def keywords(self, registry: Registry, release: AnyRelease) -> SchedulerKeywords:
        """The keyword arguments of a scheduler, besides its configuration."""
        return {**self.choices, "registry": registry, "release": release}


@dataclass(frozen=True, kw_only=True)
class TiesByName(Deciding):
    """The scheduler that decides; by default ties go to the smallest name."""

    tie_break: Ties = TieBreak.FIRST
    seed: Seed = 0

    @property
    def choices(self) -> SchedulerKeywords:
        return {"tie_break": self.tie_break.value, "seed": self.seed}


@dataclass(frozen=True, kw_only=True)
class TiesByRelease(Deciding):
    """The scheduler that decides; by default ties are broken as in its release."""

    tie_break: TiesOfRelease = None
    seed: Seed = 0

    @property
    def choices(self) -> SchedulerKeywords:
        return {"tie_break": self.tie_break, "seed": self.seed}


@dataclass(frozen=True, kw_only=True)
class AllSchedulerOptions(TiesByRelease):
    """The scheduler that decides, with all options for how."""

    sampling: Sampled = Sampling.ALL
    cache: EquivalenceCache = True
    assume_volumes: AssumeVolumes = False

    @property
    def choices(self) -> SchedulerKeywords:
        return {
            "tie_break": self.tie_break,
            "seed": self.seed,
            "sampling": self.sampling.value,
            "equivalence_cache": self.cache,
            "assume_volumes": self.assume_volumes,
        }


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Replace the parameters that stand for groups by the options of the groups."""
    own = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: one.annotation for name, one in own.parameters.items() if is_dataclass(one.annotation)
    }

    @wraps(command)
    def grouped(**arguments: Any) -> Any:
        for name, group in groups.items():
            arguments[name] = group(**{each.name: arguments.pop(each.name) for each in fields(group)})
        return command(**arguments)

    expanded = [
        option
        for name, one in own.parameters.items()
        for option in (_options_of(groups[name]) if name in groups else [one.replace(kind=one.KEYWORD_ONLY)])
    ]
    vars(grouped)["__signature__"] = own.replace(parameters=expanded)
    return _reading(grouped) if any(issubclass(group, ClusterSource) for group in groups.values()) else grouped


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints, found = get_type_hints(group, include_extras=True), []
    for each in fields(group):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        found.append(_option(each.name, hints[each.name], default))
    return found


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that limits the size of every file that the command reads."""

    @wraps(command)
    def reads(*, max_input: str | None, **arguments: Any) -> Any:
        from podium.cli.inputs import read_size
        from podium.input_files import MAX_INPUT

        allowed = MAX_INPUT.set(None if max_input is None else read_size(max_input, "--max-input"))
        shown = NODE_DOMAIN.set("")
        try:
            return command(**arguments)
        finally:
            NODE_DOMAIN.reset(shown)
            MAX_INPUT.reset(allowed)

    own = inspect.signature(command)
    parameters = [*own.parameters.values(), _option("max_input", MaxInput, None)]
    vars(reads)["__signature__"] = own.replace(parameters=parameters)
    return reads
