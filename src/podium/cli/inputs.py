"""What several commands read: objects, a configuration, plugins of the user's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from podium.answers import NodeTemplate
from podium.cli.output import remark, warn
from podium.errors import InputError
from podium.manifests import Objects, expand_workloads, load, workload_of
from podium.manifests.stored_pods import Priorities
from podium.model import Node, Object, Pod
from podium.wording import listed

if TYPE_CHECKING:
    from podium.config import KubeSchedulerConfiguration
    from podium.engine.release import AnyRelease, Options, Release
    from podium.framework import Registry
    from podium.manifests import Objects


MOST_SUGGESTED = 5


def find_pod(objects: Objects, name: str, namespace: str | None) -> tuple[Pod, Objects]:
    """The pod of that name (`name` or `namespace/name`), and the objects it is one of.

    A workload's name stands for the first pod it would make, if the input has none of its pods.
    """
    wanted_namespace, _, wanted = name.rpartition("/")
    if namespace and wanted_namespace and namespace != wanted_namespace:
        raise InputError(f"pod {name!r} is not in namespace {namespace!r}; leave one of the two out")
    within = wanted_namespace or namespace or objects.namespace
    found = _named(objects, wanted, within)
    if not found:
        objects = expand_workloads(objects)
        found = _named(objects, wanted, within) or _first_of_workload(objects, wanted, within)
    if len(found) > 1:
        keys = listed([pod.key for pod in found], MOST_SUGGESTED)
        raise InputError(f"pod {name!r} is in several namespaces: {keys}; say which with -n")
    if not found:
        raise InputError(
            f"pod {f'{within}/{wanted}' if within else wanted!r} is not in the input{_hint(objects, wanted)}"
        )
    return found[0], objects


def _named(objects: Objects, name: str, namespace: str | None) -> list[Pod]:
    return [pod for pod in _within(objects, namespace) if pod.name == name]


def _first_of_workload(objects: Objects, name: str, namespace: str | None) -> list[Pod]:
    first: dict[tuple[str, str], Pod] = {}
    for pod in _within(objects, namespace):
        workload = workload_of(pod)
        if workload.partition("/")[2] == name and not pod.finished:
            first.setdefault((pod.namespace, workload), pod)
    return list(first.values())


def _within(objects: Objects, namespace: str | None) -> Iterable[Pod]:
    return (pod for pod in objects.of(Pod) if namespace in (None, "", pod.namespace))


def _hint(objects: Objects, wanted: str) -> str:
    pods = objects.of(Pod)
    if not pods:
        return ", which has no pods at all"
    names = {pod.name: pod.key for pod in pods}
    close = get_close_matches(wanted, names, n=MOST_SUGGESTED, cutoff=0.5)
    close = close or [name for name in names if wanted in name][:MOST_SUGGESTED]
    return f"; did you mean {listed([names[name] for name in close], MOST_SUGGESTED)}?" if close else ""


FILE_ENDINGS = (".yaml", ".yml", ".json", ".gz")


def read_pods(name: str, objects: Objects, profile: str | None = None) -> list[Pod]:
    """The pods of a file, of its workloads the first one each; or the pod or workload of that name in the input.

    Their priority classes are those of the input.
    """
    if name != "-" and not Path(name).exists() and not name.endswith(FILE_ENDINGS):
        found = [_named_after(find_pod(objects, name, None)[0], name.rpartition("/")[2])]
    else:
        found = _pods_of_file(name)
    priorities = Priorities(objects)
    return [_as_of(pod, priorities, profile) for pod in found]


def _named_after(pod: Pod, name: str) -> Pod:
    """A workload's pod under the workload's name: more of them will be numbered."""
    return replace(pod, metadata=replace(pod.metadata, name=name))


def _pods_of_file(file: str) -> list[Pod]:
    pods = expand_workloads(load(file)).of(Pod)
    if not pods:
        raise InputError("no pod and no workload that makes pods in it", file)
    first: dict[tuple[str, str], Pod] = {}
    for pod in pods:
        first.setdefault((pod.namespace, workload_of(pod)), pod)
    return list(first.values())


def _as_of(pod: Pod, priorities: Priorities, profile: str | None) -> Pod:
    """The pod with the priority that its class has in the input, and the profile that is to decide it."""
    if pod.spec.priority_class_name in priorities.classes:
        unset = replace(pod.spec, priority=None, preemption_policy=None)
        pod = priorities.resolve(replace(pod, spec=unset))
    return replace(pod, spec=replace(pod.spec, scheduler_name=profile or pod.spec.scheduler_name))


def read_node(text: str) -> NodeTemplate:
    """The node of a file, `FILE`, or with a price each, `FILE=PRICE`."""
    file, equals, price = text.rpartition("=")
    if not equals or Path(text).exists():
        file, price = text, "1"
    nodes = load(file).of(Node)
    if len(nodes) != 1:
        raise InputError(f"has {len(nodes)} nodes; a template is one", file)
    try:
        number = float(price)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise InputError(f"the price {price!r} of a node must be a number above 0", file)
    return NodeTemplate(nodes[0], number)


def read_objects(files: Sequence[str], kubeconfig: str | None = None, context: str | None = None) -> Objects:
    """The objects of all files together, or of a live cluster if there are no files; a cluster needs nodes."""
    from podium.errors import InputError
    from podium.manifests import load
    from podium.model import Node

    if not files:
        from podium.cli.live import read_live

        return read_live(kubeconfig, context)
    if kubeconfig or context:
        raise InputError("-f reads files and --context a cluster; leave one of the two out")
    objects = load(*dict.fromkeys(files))
    if not objects.of(Node):
        raise InputError(f"no node in {', '.join(files)}: get them with `kubectl get nodes -o json`")
    return objects


def mention(objects: Objects, *, verbose: bool, assume_volumes: bool = False) -> None:
    """What was noticed while loading; with `assume_volumes`, missing storage is no matter."""
    from podium.manifests import missing_storage

    of_no_matter = missing_storage(objects) if assume_volumes else []
    for warning in objects.warnings:
        if warning not in of_no_matter:
            warn(warning)
    if verbose:
        mention_ignored(f"{len(objects)} objects read", objects.ignored)


def mention_ignored(what: str, ignored: Mapping[str, int]) -> None:
    """How much was read, and which kinds of objects were left out because scheduling does not read them."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(ignored.items()))
    remark(f"{what}; not read by scheduling: {kinds or 'none'}")


def choose_release(name: str, feature_gates: str | None, objects: Iterable[Object]) -> Release:
    """The release of a name with feature gates switched; `auto` is the newest one that a kubelet is of, and is told."""
    from podium.cli.options import AUTO
    from podium.engine.release import release_of, release_of_nodes
    from podium.rules import read_gates

    if name == AUTO:
        found = release_of_nodes(item for item in objects if isinstance(item, Node))
        remark(found.said)
        name = found.release
    release = release_of(name)
    return release.with_feature_gates(read_gates(feature_gates)) if feature_gates is not None else release


class Given(NamedTuple):
    """A configuration as it stands, None for the default one, and where it is from."""

    document: Any
    where: str = ""
    options: Options | None = None
    """For an old release, which provider it runs with."""


def read_config(
    file: str | None, objects: Objects, registry: Registry, release: AnyRelease
) -> KubeSchedulerConfiguration | None:
    """The configuration of a file, else the one among the objects; None if there is neither."""
    return check_config(find_config(file, objects, release), registry, release)


def check_config(given: Given, registry: Registry, release: AnyRelease) -> KubeSchedulerConfiguration | None:
    """What a release makes of a configuration, with warnings for what is passed over; None for the default one."""
    from podium.engine.release import release_of
    from podium.errors import InputError

    if given.document is None and given.options is None:
        _mention_unused(registry, frozenset())
        return None
    try:
        setup = release_of(release).set_up(given.document, options=given.options, registry=registry)
    except InputError as error:
        raise error.at(given.where) from None
    for warning in setup.warnings:
        warn(f"{given.where}: {warning}")
    _mention_unused(registry, {ref.name for p in setup.config.profiles for refs in p.points.values() for ref in refs})
    _mention_uncallable(setup.config, given.where)
    return setup.config


def find_config(file: str | None, objects: Objects, release: AnyRelease) -> Given:
    """What a release is configured with: a file or, of an old release, a provider; else what is among the objects."""
    from podium.engine.release import PROVIDERS, Options, release_of
    from podium.errors import InputError
    from podium.manifests import load_documents

    chosen = release_of(release)
    if file is None:
        document, where = objects.scheduler_config, "schedulerConfig of the input"
        if document is not None and not chosen.knows(document):
            warn(f"{where}: is not one of {chosen.name}, which runs with its defaults instead")
            document = None
        return Given(document, where)
    if file in PROVIDERS and chosen.is_old:
        return Given(None, file, Options(provider=file))
    documents = list(load_documents(file))
    if len(documents) != 1:
        raise InputError(f"has {len(documents)} documents; a configuration is one {chosen.reads}", file)
    return Given(documents[0][1], file)


def _mention_uncallable(config: KubeSchedulerConfiguration, where: str) -> None:
    """What kube-scheduler starts with though no call can succeed."""
    from podium.config.extenders import uncallable

    for extender in uncallable(config.extenders):
        from podium.extenders.transport import public_url

        url = public_url(extender.url_prefix)
        warn(f"{where}: extenders: urlPrefix {url!r} is not an http:// or https:// URL, so every call to it fails")


def _mention_unused(registry: Registry, used: Set[str]) -> None:
    for name in registry.asked_for:
        if name not in used:
            warn(f"plugin {name} is in no profile, so it does not run: enable it in a configuration, with --config")


def registry_with(plugins: Sequence[str]) -> Registry:
    """The in-tree plugins, those of installed packages, and those named `module:Class`, here or installed."""
    import sys

    from podium.plugins import IN_TREE

    if plugins and "" not in sys.path:
        sys.path.insert(0, "")
    return IN_TREE.with_installed(plugins)
