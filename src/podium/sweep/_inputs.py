"""The inputs of a sweep's runs: loaded and checked once, and sent once to every worker."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source, spec_from_loader
from pathlib import Path
from typing import Any

from podium import __version__
from podium.answers.compare import NODE_GROUP_NUMBERS, TIMELINE_NUMBERS
from podium.answers.measures import Measures
from podium.answers.trials import function_named
from podium.autoscaling import NodeGroups, read_node_groups
from podium.cluster import Cluster
from podium.cluster_input import ClusterInput
from podium.config.plugin_args import readers
from podium.config.profiles import V1, with_argument, with_weight
from podium.engine.release import CURRENT, release_of
from podium.errors import ConfigError, InputError, os_problem
from podium.framework import Registry, ScorePlugin
from podium.input_files import open_input
from podium.manifests import Objects, load, load_documents
from podium.plugins import IN_TREE
from podium.rules import NEWEST_RULES
from podium.sweep._spec import SEED, Point, SweepSpec
from podium.timeline import TimelineEvents, read_timeline
from podium.traces import FORMATS, Trace, read_trace
from podium.traces.trace import event_line

SEED_OF_RUN = "$seed"
"""The text in a configuration that is replaced by the seed of the run."""


def configured(document: Mapping[str, Any] | None, settings: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
    """Apply settings to a configuration, for every profile; None for the default configuration.

    Settings are named `weight.PLUGIN` or `args.PLUGIN.FIELD`, with more field names for nested fields.
    """
    if document is None and not settings:
        return None
    found: dict[str, Any] = _with_seed(dict(document or {"apiVersion": V1}), seed)
    found.setdefault("kind", "KubeSchedulerConfiguration")
    if settings:
        profiles, version = found.get("profiles") or [{}], str(found.get("apiVersion"))
        found["profiles"] = [_with_settings(profile or {}, settings, version) for profile in profiles]
    return found


def _with_settings(profile: dict[str, Any], settings: Mapping[str, Any], api_version: str) -> dict[str, Any]:
    for name, value in settings.items():
        what, plugin, *fields = name.split(".")
        if what == "weight":
            profile = with_weight(profile, plugin, value, api_version)
        else:
            profile = with_argument(profile, plugin, fields, value)
    return profile


def _with_seed(value: Any, seed: int) -> Any:
    if isinstance(value, dict):
        return {key: _with_seed(inner, seed) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_seed(inner, seed) for inner in value]
    return seed if value == SEED_OF_RUN else value


Sources = Mapping[str, bytes]
"""Python files by name."""


def sources_of(folder: Path) -> Sources:
    """The Python files of a folder, which the sweep's functions and plugins may import."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.py"))}


def _file_digest(file: Path) -> bytes:
    with open_input(file) as opened:
        return hashlib.file_digest(opened, "sha256").digest()


class SentModules(MetaPathFinder, ExecutionLoader):
    """Imports the files that were sent to this process from memory, so that a killed worker leaves no files behind."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if f"{fullname}.py" in self._sources else None

    def get_source(self, fullname: str) -> str:
        return decode_source(self._sources[f"{fullname}.py"])

    def get_filename(self, fullname: str) -> str:
        """The file name in tracebacks."""
        return f"{fullname}.py"


def make_importable(sources: Sources) -> None:
    """Make the files that were sent to this process importable; they replace those of an earlier sweep."""
    others = [finder for finder in sys.meta_path if not isinstance(finder, SentModules)]
    sys.meta_path[:] = [SentModules(sources), *others]
    for name in sources:
        sys.modules.pop(Path(name).stem, None)


def import_from(folder: Path, sources: Sources) -> None:
    """Import modules from a folder; modules of these names that were imported from elsewhere are imported again."""
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    for name in sources:
        loaded = sys.modules.get(Path(name).stem)
        if loaded is not None and getattr(loaded, "__file__", None) != str(folder / name):
            del sys.modules[Path(name).stem]
    importlib.invalidate_caches()


FIXED = ""
"""The label of a value that is the same in all runs."""
DIGEST_LENGTH = 32
"""Hexadecimal digits."""
SETTINGS = ("args.", "weight.")
"""The prefixes of axes that change the configuration."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The loaded inputs, by name and label. They are sent to other processes, so all of it can be pickled."""

    clusters: Mapping[str, Objects]
    traces: Mapping[str, Objects]
    events: Mapping[str, TimelineEvents]
    node_groups: Mapping[str, NodeGroups]
    configs: Mapping[str, Mapping[str, Any] | None]
    sources: Sources
    digest: str
    """A digest of what all runs share: the version, the user's functions and plugins, and how long a timeline is."""
    contents: Mapping[tuple[str, str], str]
    """A digest of the contents of the files of each value, by name and label."""
    _built: dict[tuple[str, str], Cluster] = field(default_factory=dict)

    def objects(self, cluster: str, trace: str) -> Objects:
        """The objects at the beginning of a run; none if the events add everything."""
        both = [found for found in (self.clusters.get(cluster), self.traces.get(trace)) if found is not None]
        if len(both) == 1:
            return both[0]
        return Objects(item for found in both for item in found)

    def built(self, cluster: str, trace: str) -> Cluster:
        """The cluster of a run with the pods of workloads, built once."""
        if (cluster, trace) not in self._built:
            self._built[cluster, trace] = ClusterInput(self.objects(cluster, trace)).cluster()
        return self._built[cluster, trace]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_built": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        make_importable(self.sources)


class _Loading:
    """Reads the files that a sweep names; every error names the field of the sweep."""

    def __init__(self, spec: SweepSpec) -> None:
        self.spec = spec
        self._noted: dict[tuple[str, str], list[bytes]] = {}

    def named(self, name: str) -> Iterator[tuple[str, tuple[str | int, ...], Any]]:
        """Every value of a name, fixed or of an axis: its label, its place in the sweep file, and the value."""
        if name in self.spec.fixed:
            yield FIXED, (name,), self.spec.fixed[name]
        for axis in self.spec.space.axes:
            if axis.name == name:
                yield from ((label, ("axes", name, label), value) for label, value in axis.values.items())

    def note(self, where: tuple[str | int, ...], text: bytes) -> None:
        """Note what a value of the sweep file stands for, such as the contents of its file."""
        key = (str(where[1]), str(where[2])) if len(where) > 1 else (str(where[0]), FIXED)
        self._noted.setdefault(key, []).append(text)

    def path(self, given: object, where: tuple[str | int, ...]) -> str:
        if not isinstance(given, str) or not given:
            self.spec.document.refuse(where, f"is {given!r}; it needs the path of a file")
        path = self.spec.path(given)
        if "$" in path:
            self.spec.document.refuse(where, f"{given} names an environment variable that is not set")
        self._read(path, where)
        return path

    def _read(self, path: str, where: tuple[str | int, ...]) -> None:
        """Note the contents of a file, or of all files of a directory."""
        try:
            files = sorted(Path(path).rglob("*")) if os.path.isdir(path) else [Path(path)]
            for file in files:
                if file.is_file() or not file.is_dir():
                    self.note(where, _file_digest(file))
        except OSError as error:
            self.spec.document.refuse(where, f"{path}: {os_problem(error)}")
        except ValueError as error:
            self.spec.document.refuse(where, f"is not the path of a file: {error}")

    def clusters(self) -> dict[str, Objects]:
        found = {}
        for label, where, value in self.named("cluster"):
            paths = [self.path(each, where) for each in (value if isinstance(value, list) else [value])]
            if not paths:
                self.spec.document.refuse(where, "is empty; it needs a file")
            found[label] = ClusterInput.read(*paths, needs_nodes=False).settled
        return found

    def traces(self) -> dict[str, Trace]:
        found = {}
        for label, where, value in self.named("trace"):
            if not isinstance(value, Mapping) or len(value) != 1:
                self.spec.document.refuse(where, "needs a format and its files, such as `openb: [nodes.csv, pods.csv]`")
            ((kind, files),) = value.items()
            if kind not in FORMATS:
                self.spec.document.refuse(where, f"format {kind!r} is unknown; use {', '.join(FORMATS)}")
            self.note(where, repr(kind).encode())
            paths = [self.path(each, where) for each in (files if isinstance(files, list) else [files])]
            try:
                found[label] = read_trace(kind, paths)
            except InputError as error:
                raise self.spec.document.error(where, str(error)) from None
        return found

    def events(self) -> dict[str, TimelineEvents]:
        return {label: read_timeline(self.path(value, where)) for label, where, value in self.named("events")}

    def node_groups(self) -> dict[str, NodeGroups]:
        return {label: read_node_groups(self.path(value, where)) for label, where, value in self.named("nodeGroups")}

    def configs(self) -> dict[str, Mapping[str, Any] | None]:
        found: dict[str, Mapping[str, Any] | None] = {}
        for label, where, value in self.named("config"):
            if isinstance(value, Mapping):
                self.note(where, repr(value).encode())
                found[label] = value
                continue
            documents = list(load_documents(self.path(value, where)))
            if len(documents) != 1 or not isinstance(documents[0][1], Mapping):
                self.spec.document.refuse(where, f"{value} needs to be one KubeSchedulerConfiguration")
            found[label] = documents[0][1]
        return found

    @property
    def contents(self) -> dict[tuple[str, str], str]:
        """A digest of what was noted, by name and label."""
        return {key: _digest(*texts) for key, texts in self._noted.items()}


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:DIGEST_LENGTH]


def load_inputs(spec: SweepSpec) -> Inputs:
    """Load and check everything that a sweep names; raises an InputError for what cannot be used."""
    loading = _Loading(spec)
    sources = sources_of(spec.folder) if spec.names_functions else {}
    functions = spec.plugins, spec.prepare, spec.measures, sorted(sources.items()), _packages(spec)
    traces = loading.traces()
    events = loading.events()
    if spec.is_timeline:
        events |= {label: _events(trace) for label, trace in traces.items()}
    inputs = Inputs(
        clusters=loading.clusters(),
        traces={label: load(list(t.beginning)) if spec.is_timeline else t.objects() for label, t in traces.items()},
        events=events,
        node_groups=loading.node_groups(),
        configs=loading.configs(),
        sources=sources,
        digest=_digest(__version__, spec.is_timeline, spec.until, functions),
        contents=loading.contents,
    )
    _check(spec, inputs)
    return inputs


def _packages(spec: SweepSpec) -> list[bytes]:
    """The Python files of the packages next to the sweep that its functions and plugins are in."""
    modules = (name.partition(":")[0] for name in (*spec.plugins, spec.prepare, *spec.measures))
    folders = {spec.folder / module.partition(".")[0] for module in modules if module}
    return [path.read_bytes() for folder in sorted(folders) for path in sorted(folder.rglob("*.py"))]


def run_digest(spec: SweepSpec, inputs: Inputs, point: Point) -> str:
    """A digest of everything that a run depends on: what all runs share, its point, and the contents of its files."""
    values = []
    for name in sorted({*spec.fixed, *point}):
        label = point.get(name, FIXED)
        values.append((name, label, inputs.contents.get((name, label)) or repr(setting(spec, point, name))))
    return _digest(inputs.digest, values)


def _events(trace: Trace) -> TimelineEvents:
    lines = [event_line(event, is_record=trace.is_record) for event in trace.events]
    return read_timeline(lines) if lines else TimelineEvents((), is_record=trace.is_record)


def registry_of(spec: SweepSpec) -> Registry:
    """The in-tree plugins and the sweep's own."""
    return IN_TREE.with_installed(spec.plugins)


def _check(spec: SweepSpec, inputs: Inputs) -> None:
    """Refuse functions, plugins and configurations that cannot be used, before anything runs."""
    _check_goal(spec)
    import_from(spec.folder.resolve(), inputs.sources)
    prepare = [("prepare", spec.prepare)] if spec.prepare else []
    for field_name, name in (*prepare, *(("measures", each) for each in spec.measures)):
        try:
            function_named(name)
        except InputError as error:
            raise spec.document.error((field_name,), str(error)) from None
    try:
        registry = registry_of(spec)
    except InputError as error:
        raise spec.document.error(("plugins",), error.message) from None
    _check_settings(spec, registry)
    for where, point in _one_at_a_time(spec):
        document = document_of(spec, inputs, point)
        if document is None:
            continue
        release = str(setting(spec, point, "release", CURRENT))
        try:
            release_of(release).set_up(document, registry=registry)
        except (ConfigError, InputError) as error:
            file = setting(spec, point, "config")
            problem = f"{file}: {error}" if isinstance(file, str) and where[-2:-1] != ("release",) else str(error)
            raise spec.document.error(where, problem) from None


def _check_settings(spec: SweepSpec, registry: Registry) -> None:
    """Refuse axes of settings that no plugin has."""
    for name in spec.space.names:
        if not name.startswith(SETTINGS):
            continue
        what, plugin = name.split(".")[:2]
        if plugin not in registry:
            spec.document.refuse(("axes", name), f"plugin {plugin!r} does not exist; is it missing in `plugins`?")
        if what == "weight" and not issubclass(registry[plugin], ScorePlugin):
            spec.document.refuse(("axes", name), f"plugin {plugin!r} does not score, so its weight has no effect")
        if what == "args" and plugin in IN_TREE and plugin not in readers(NEWEST_RULES):
            spec.document.refuse(("axes", name), f"plugin {plugin!r} takes no arguments")


def _check_goal(spec: SweepSpec) -> None:
    """Refuse a goal that no run measures. A goal that only the user's functions may measure is checked after a run."""
    if spec.measures:
        return
    has_groups = "nodeGroups" in spec.fixed or "nodeGroups" in spec.space.names
    of_timeline = (*TIMELINE_NUMBERS, *(NODE_GROUP_NUMBERS if has_groups else ()))
    check_goal(spec, of_timeline if spec.is_timeline else ("placed", *(each.name for each in fields(Measures))))


def check_goal(spec: SweepSpec, measures: Iterable[str]) -> None:
    """Refuse a goal that is none of these measures."""
    known, goal = [*measures], spec.goal.measure
    if goal not in known:
        field_name = "maximize" if spec.goal.is_highest else "minimize"
        spec.document.refuse((field_name,), f"no run has a measure {goal!r}; they have {', '.join(known)}")


def _one_at_a_time(spec: SweepSpec) -> Iterator[tuple[tuple[str | int, ...], Point]]:
    """Points that together use every value: the first has every axis' first value, the others differ from it in one
    axis.

    Each comes with the field of the sweep file that is wrong if the point cannot be used.
    """
    labels = {axis.name: axis.extremes for axis in spec.space.axes if axis.name != SEED}
    first = {name: values[0] for name, values in labels.items()}
    # The configurations as they are written come first: settings are applied to correct ones only.
    written = {name: label for name, label in first.items() if not name.startswith(SETTINGS)}
    if "config" not in labels:
        yield ("config",), written
    yield from ((("axes", "config", label), {**written, "config": label}) for label in labels.get("config", ()))
    for name, values in labels.items():
        yield from ((("axes", name, label), {**first, name: label}) for label in values)


def setting(spec: SweepSpec, point: Point, name: str, default: Any = None) -> Any:
    """The value of a name in a run: that of its point, else the fixed one, else the default."""
    if name in point:
        return spec.space.value(point, name)
    return spec.fixed.get(name, default)


def document_of(spec: SweepSpec, inputs: Inputs, point: Point) -> dict[str, Any] | None:
    """The configuration of a run."""
    settings = {name: spec.space.value(point, name) for name in point if name.startswith(SETTINGS)}
    config = inputs.configs.get(point.get("config", FIXED))
    return configured(config, settings, int(setting(spec, point, SEED, 0)))
