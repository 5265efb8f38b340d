"""Reads the inputs that several commands share: objects, a configuration, the user's plugins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.cli.options import AUTO, ClusterSource, Deciding, ScenarioSource, Source, WhichRelease
from podium.cli.output import NODE_DOMAIN, remark, warn
from podium.errors import InputError
from podium.lookup import find_pod, with_added_objects, with_priority_and_profile
from podium.manifests import Objects, load
from podium.model import Node, Object, Pod
from podium.model.quantity import parse_quantity
from podium.wording import counted
from podium.workloads.first_pods import first_pods, named_after

if TYPE_CHECKING:
    from podium.answers import NodeTemplate
    from podium.answers.scenario import Scenario
    from podium.cluster_input import ClusterInput
    from podium.config import KubeSchedulerConfiguration
    from podium.engine.release import AnyRelease, Options, Release
    from podium.engine.scheduler import SchedulerOptions
    from podium.framework import Registry
    from podium.manifests import Objects
    from podium.workloads.missing_owners import OwnersFor


MOST_WARNINGS = 40
"""The maximum number of warnings shown for one input."""

FILE_ENDINGS = (".yaml", ".yml", ".json", ".gz")


def read_size(text: str, option: str) -> int:
    """A number of bytes, `4Gi`; it needs to be above 0."""
    try:
        size = parse_quantity(text)
    except InputError:
        size = Fraction(0)
    if size <= 0:
        raise InputError(f"{option} {text!r} must be a size above 0, such as 512Mi")
    return int(size)


class Templates(NamedTuple):
    """The pods to add more of, and the objects of the cluster including those of their files."""

    pods: list[Pod]
    objects: Objects


def read_templates(names: Iterable[str], objects: Objects, source: Source, profile: str | None = None) -> Templates:
    """The pods in files, one for each workload; or the pods or workloads with these names in the input.

    Their priority classes are those of the input.
    """
    found: list[Pod] = []
    for name in names:
        if name != "-" and not Path(name).exists() and not name.endswith(FILE_ENDINGS):
            found.append(named_after(find_pod(objects, name, None).pod, name.rpartition("/")[2]))
        else:
            objects_of_file = load(name, strict=source.strict)
            _warn_of(objects_of_file.unknown, source)
            found += first_pods(objects_of_file, name)
            objects = with_added_objects(objects, objects_of_file)
    return Templates([with_priority_and_profile(pod, objects, profile) for pod in found], objects)


def read_node(text: str, source: Source) -> NodeTemplate:
    """The node in a file, `FILE`, or with a price each, `FILE=PRICE`; other objects of the file come with each node."""
    from podium.answers import NodeTemplate

    file, equals, price = text.rpartition("=")
    if not equals or Path(text).exists():
        file, price = text, "1"
    objects = load(file, strict=source.strict)
    _warn_of(objects.unknown, source)
    nodes = objects.of(Node)
    if len(nodes) != 1:
        raise InputError(f"has {len(nodes)} nodes; a template is one", file)
    try:
        number = float(price)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise InputError(f"the price {price!r} of a node must be a number above 0", file)
    return NodeTemplate(nodes[0], number, tuple(item for item in objects if not isinstance(item, Node)))


def read_cluster(source: Source, deciding: Deciding, *needed: OwnersFor) -> tuple[Objects, SchedulerOptions]:
    """The objects of a cluster and the options for deciding; prints warnings about the objects.

    `needed` is what the answer needs the owners of pods for.
    """
    registry = registry_with(deciding.plugins)
    given = read_input(source)
    objects = given.settled
    mention(objects, source)
    mention_missing_owners(given, source, *needed)
    return in_scenario(source, deciding, objects, scheduler_options(deciding, objects, registry))


def in_scenario(
    source: Source, deciding: Deciding, objects: Objects, settings: SchedulerOptions
) -> tuple[Objects, SchedulerOptions]:
    """The objects after the steps of the scenario that is asked for, and its options; as they are without one."""
    if not isinstance(source, ScenarioSource) or source.scenario is None:
        return objects, settings
    from podium.answers.applied_scenario import apply_scenario

    scenario = read_scenario_file(source.scenario)
    given = find_config(deciding.config, objects, settings.release)
    found = apply_scenario(scenario, objects, given.document, settings)
    remark(f"scenario: {scenario.title}")
    return found.objects, found.options


def read_scenario_file(file: str) -> Scenario:
    """The scenario in a file."""
    from podium.answers.scenario import read_scenario
    from podium.manifests import load_documents

    documents = list(load_documents(file))
    if len(documents) != 1:
        raise InputError(f"has {len(documents)} documents; a scenario is one", file)
    return read_scenario(documents[0][1], file)


def scheduler_options(deciding: Deciding, objects: Objects, registry: Registry) -> SchedulerOptions:
    """The options for deciding: the configuration of a file or among the objects, and the release asked for."""
    from podium.engine.scheduler import SchedulerOptions

    release = choose_release(deciding, objects)
    config = read_config(deciding.config, objects, registry, release)
    return SchedulerOptions(config=config, **deciding.keywords(registry, release))


def read_input(source: ClusterSource, *, needs_nodes: bool = True) -> ClusterInput:
    """The objects of all files together, or of a live cluster if there are no files.

    Without nodes they are an error, unless nodes can come later: `needs_nodes` is off, and no files are no objects.
    """
    from podium.cluster_input import ClusterInput
    from podium.errors import InputError

    if source.files and (source.kubeconfig or source.context):
        raise InputError("-f reads files and --context a cluster; leave one of the two out")
    if source.files or not (needs_nodes or source.is_given):
        found = ClusterInput.read(*source.files, strict=source.strict, needs_nodes=needs_nodes)
    else:
        from podium.cli.live import read_live

        found = ClusterInput(read_live(source.kubeconfig, source.context), strict=source.strict)
    _note_short_names(found.objects)
    return found


def _note_short_names(objects: Objects) -> None:
    """Let tables leave out the common suffix of node names."""
    from podium.model import Node
    from podium.present.text import common_domain

    NODE_DOMAIN.set(common_domain([node.name for node in objects.of(Node)]))


def mention(objects: Objects, source: Source, *, assume_volumes: bool | None = None) -> None:
    """Print the warnings of loading; with `assume_volumes`, missing storage is not mentioned.

    It is None if the command has no such option, which is then not recommended.
    """
    from podium.manifests import missing_storage
    from podium.wording import counted

    about_storage = missing_storage(objects) if assume_volumes is not None else []
    warnings = [warning for warning in objects.warnings if not assume_volumes or warning not in about_storage]
    advised = [f"{each}; --assume-volumes ignores storage" if each in about_storage else each for each in warnings]
    _warn_of(advised, source)
    if source.verbose:
        mention_ignored(f"{counted(len(objects), 'object')} read", objects.ignored)


def _warn_of(warnings: Sequence[str], source: Source) -> None:
    if source.no_warn:
        return
    for warning in warnings[:MOST_WARNINGS]:
        warn(warning)
    if len(warnings) > MOST_WARNINGS:
        warn(f"{counted(len(warnings) - MOST_WARNINGS, 'more warning')}, not shown")


def mention_missing_owners(given: ClusterInput, source: Source, *needed: OwnersFor) -> None:
    """Print what the answer lacks because workloads are not in the input; with --strict that is an error."""
    _warn_of(given.missing_owners(*needed), source)


def mention_ignored(what: str, ignored: Mapping[str, int]) -> None:
    """Print how much was read, and which kinds of objects scheduling does not read."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(ignored.items()))
    remark(f"{what}; not read by scheduling: {kinds or 'none'}")


def choose_release(wanted: WhichRelease, objects: Iterable[Object]) -> Release:
    """The release with this name, with feature gates switched; by default the newest kubelet's, which it says.

    Nodes that do not say a version that Podium has are an error with `auto`; by default the newest release decides.
    """
    from podium.engine.release import CURRENT, known_crashes, known_release_of_nodes, release_of, release_of_nodes
    from podium.rules.gates import gate_remarks, read_gates

    name, nodes = wanted.release, [item for item in objects if isinstance(item, Node)]
    if name is None or name == AUTO:
        found = release_of_nodes(nodes) if name == AUTO else known_release_of_nodes(nodes)
        if found is not None:
            remark(found.said)
        name = CURRENT if found is None else found.release
    release = release_of(name)
    if wanted.feature_gates is not None:
        release = release.with_feature_gates(read_gates(wanted.feature_gates))
    for problem in (*gate_remarks(release.name, release.feature_gates), *known_crashes(objects, release.rules)):
        warn(problem)
    return release


class ConfigSource(NamedTuple):
    """A configuration as written, None for the default, and its source."""

    document: Any
    where: str = ""
    options: Options | None = None
    """For an old release, the provider it runs with."""


def read_config(
    file: str | None, objects: Objects, registry: Registry, release: AnyRelease
) -> KubeSchedulerConfiguration | None:
    """The configuration of a file, else that among the objects; None if there is neither."""
    from podium.engine.release import crashing_resources, release_of

    config = check_config(find_config(file, objects, release), registry, release)
    chosen = release_of(release)
    if config is not None and not chosen.is_old:
        for problem in crashing_resources(objects, config, chosen.rules):
            warn(problem)
    return config


def check_config(given: ConfigSource, registry: Registry, release: AnyRelease) -> KubeSchedulerConfiguration | None:
    """The configuration as a release reads it, with warnings for ignored settings; None for the default."""
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


def find_config(file: str | None, objects: Objects, release: AnyRelease) -> ConfigSource:
    """The configuration of a release: a file or, for an old release, a provider; else that among the objects.

    Extenders are called only if the user named the file: what comes with the objects makes Podium call nobody.
    """
    from podium.config.extender_calls import is_http, without_calls
    from podium.engine.release import PROVIDERS, Options, release_of
    from podium.errors import InputError
    from podium.manifests import load_documents

    chosen = release_of(release)
    if file is None:
        document, where = objects.scheduler_config, "schedulerConfig of the input"
        if document is not None and not chosen.knows(document):
            warn(f"{where}: is not a configuration of {chosen.name}, which uses its defaults instead")
            document = None
        uncalled = without_calls(document)
        if uncalled.urls:
            warn(f"{where}: {uncalled.warning}; have them called by naming the configuration with --config")
        return ConfigSource(uncalled.document, where)
    if file in PROVIDERS and chosen.is_old:
        return ConfigSource(None, file, Options(provider=file))
    documents = list(load_documents(file))
    if len(documents) != 1:
        raise InputError(f"has {len(documents)} documents; a configuration is one {chosen.reads}", file)
    document = documents[0][1]
    if urls := [url for url in without_calls(document).urls if is_http(url)]:
        remark(f"{file}: pods and nodes are sent to {counted(len(urls), 'extender')}: {', '.join(urls)}")
    return ConfigSource(document, file)


def _mention_uncallable(config: KubeSchedulerConfiguration, where: str) -> None:
    """Warn about extenders that kube-scheduler accepts although no call can succeed."""
    from podium.config.extender_calls import public_url
    from podium.config.parse import uncallable

    for extender in uncallable(config.extenders):
        url = public_url(extender.url_prefix)
        warn(f"{where}: extenders: urlPrefix {url!r} is not an http:// or https:// URL, so every call to it fails")


def _mention_unused(registry: Registry, used: Set[str]) -> None:
    for name in registry.asked_for:
        if name not in used:
            warn(f"plugin {name} is in no profile, so it does not run: enable it in a configuration, with --config")


def registry_with(plugins: Sequence[str]) -> Registry:
    """The in-tree plugins, those of installed packages, and those named as `module:Class`, here or installed."""
    import sys

    from podium.plugins import IN_TREE

    if plugins and "" not in sys.path:
        sys.path.insert(0, "")
    return IN_TREE.with_installed(plugins)
