"""Loads sources into typed objects: reads, decodes, checks, applies defaults, sets priorities, and reports missing
objects.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count as numbers
from typing import NamedTuple, TypeVar, overload

from msgspec import Raw
from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests._devices import FLAT_VERSIONS, from_flat_version, missing_claims, refused_fields
from podium.manifests._pod_groups import V1_36, from_v1_36, missing_groups, other_schedulers
from podium.manifests.apply import Applied, apply
from podium.manifests.checks import check, invalid_name, refused_by_api_server
from podium.manifests.decode import (
    SCHEDULER_CONFIGURATION,
    Entry,
    NoKindError,
    decode,
    effective_namespace,
    entries,
    full_name,
    is_sure_to_be_known,
    object_name,
    plain,
    refuse_null_containers,
    refuse_unknown_version,
    refuse_wrong_times,
    type_of,
    unknown_fields,
    unknown_kind,
)
from podium.manifests.defaults import Priorities, StoredPods, default_object, generated_suffix
from podium.manifests.files import (
    LARGE,
    MOST_SEARCHED,
    STDIN,
    VALUES,
    GuessError,
    Source,
    read_documents,
    refuse_duplicate_keys,
)
from podium.manifests.yaml_documents import unrendered
from podium.memory import collector_paused
from podium.model import (
    KINDS,
    Affinity,
    LabelSelector,
    Namespace,
    Node,
    Object,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    StorageClass,
)
from podium.model.objects import TEMPLATED, storage_class_of
from podium.wording import counted, listed

_MOST_NAMED = 3


def first_few(names: Iterable[str]) -> str:
    """`a, b, c and 7 more`, in the order given."""
    return listed(list(names), _MOST_NAMED)


_SPREAD_OWNERS = {kind.__name__: kind for kind in (ReplicaSet, ReplicationController, StatefulSet)}


def missing_references(objects: Iterable[Object]) -> list[str]:
    """One line for each kind of reference to a missing object, with its name and what is assumed instead."""
    objects = list(objects)
    pods = [obj for obj in objects if type(obj) is Pod and not obj.finished]
    return [
        *_missing_nodes(objects, pods),
        *_missing_namespaces(objects, pods),
        *_missing_owners(objects, pods),
        *missing_storage(objects),
        *missing_claims(objects, pods),
        *missing_groups(objects, pods),
    ]


def _missing_nodes(objects: list[Object], pods: list[Pod]) -> Iterator[str]:
    known = {obj.name for obj in objects if type(obj) is Node}
    lost = [pod for pod in pods if pod.spec.node_name and pod.spec.node_name not in known]
    if lost:
        nodes = dict.fromkeys(pod.spec.node_name for pod in lost)
        yield (
            f"Node {first_few(nodes)} {_is_not(nodes)} in the input: {counted(len(lost), 'pod')} bound there, such as "
            f"{lost[0].key}, left out of the cluster"
        )


def _missing_namespaces(objects: list[Object], pods: list[Pod]) -> Iterator[str]:
    selecting = next((pod for pod in pods if pod.spec.affinity and _selects_namespaces(pod.spec.affinity)), None)
    if selecting is None:
        return
    known = {obj.name for obj in objects if type(obj) is Namespace}
    missing = dict.fromkeys(pod.namespace for pod in pods if pod.namespace not in known)
    if missing:
        yield (
            f"Namespace {first_few(missing)} {_is_not(missing)} in the input: assumed to have no labels for the "
            f"namespaceSelector of pods such as {selecting.key}"
        )


def _selects_namespaces(affinity: Affinity) -> bool:
    """Whether the labels of namespaces matter for this affinity."""
    sides = [side for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if side is not None]
    required = [term for side in sides for term in side.required]
    preferred = [weighted.pod_affinity_term for side in sides for weighted in side.preferred]
    return any(_looks_at_labels(term.namespace_selector) for term in (*required, *preferred))


def _looks_at_labels(selector: LabelSelector | None) -> bool:
    # An empty selector selects every namespace, whatever its labels.
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def _missing_owners(objects: list[Object], pods: list[Pod]) -> Iterator[str]:
    """Pending pods without constraints of their own are spread by the selector of their owner, which may be missing."""
    known = {(kind, obj.key) for obj in objects if (kind := type(obj).__name__) in _SPREAD_OWNERS}
    missing: dict[str, Pod] = {}
    for pod in pods:
        owner = pod.metadata.controller if not pod.spec.node_name else None
        if owner is None or owner.kind not in _SPREAD_OWNERS or pod.spec.topology_spread_constraints:
            continue
        key = f"{pod.namespace}/{owner.name}"
        if (owner.kind, key) not in known:
            missing.setdefault(f"{owner.kind} {key}", pod)
    if missing:
        yield (
            f"{first_few(missing)} {_is_not(missing)} in the input: default spreading of the pods owned, such as "
            f"{next(iter(missing.values())).key}, goes by services alone"
        )


def _is_not(names: Collection[str]) -> str:
    return "is not" if len(names) == 1 else "are not"


_AS_THERE = "as in a cluster without them"


def missing_storage(objects: Iterable[Object]) -> list[str]:
    """One line for each missing kind of storage object: how much depends on it, and what is assumed instead."""
    objects = list(objects)
    users = _claims_of_pods(objects)
    if not users.named and not users.ephemeral:
        return []
    claims = {obj.key: obj for obj in objects if type(obj) is PersistentVolumeClaim}
    used = [claims[key] for key in {**users.named, **users.ephemeral} if key in claims]
    return [
        *_missing_claims(users.named, claims),
        *_missing_volumes(used, {obj.name for obj in objects if type(obj) is PersistentVolume}),
        *_missing_classes(used, {obj.name for obj in objects if type(obj) is StorageClass}),
    ]


class _Users(NamedTuple):
    """The claims that pods use, as namespace/name, each with the first pod that uses it."""

    named: dict[str, Pod]
    ephemeral: dict[str, Pod]
    """Claims of ephemeral volumes. They may be missing: Kubernetes creates them for the pods that need them."""


def _claims_of_pods(objects: list[Object]) -> _Users:
    users = _Users({}, {})
    for pod in objects:
        if type(pod) is Pod and pod.spec.volumes and not pod.finished:
            for volume in pod.spec.volumes:
                if volume.persistent_volume_claim is not None:
                    users.named.setdefault(f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}", pod)
                elif volume.ephemeral is not None:
                    users.ephemeral.setdefault(f"{pod.key}-{volume.name}", pod)
    return users


def _missing_claims(users: dict[str, Pod], known: Collection[str]) -> Iterator[str]:
    missing = [key for key in users if key not in known]
    if missing:
        such = f"pods that use them, such as {users[missing[0]].key}, fit on no node, {_AS_THERE}"
        if not known:
            yield f"no PersistentVolumeClaims in the input: {counted(len(missing), 'claim')} missing; {such}"
        else:
            yield f"PersistentVolumeClaim {first_few(missing)} not in the input: {such}"


def _missing_volumes(used: list[PersistentVolumeClaim], known: Collection[str]) -> Iterator[str]:
    lost = [claim for claim in used if claim.spec.volume_name and claim.spec.volume_name not in known]
    if lost:
        such = (
            f"{counted(len(lost), 'bound claim')}, such as {lost[0].key}, without a volume; pods that use them fit on "
            f"no node, {_AS_THERE}"
        )
        if not known:
            yield f"no PersistentVolumes in the input: {such}"
        else:
            names = dict.fromkeys(claim.spec.volume_name for claim in lost)
            yield f"PersistentVolume {first_few(names)} not in the input: {such}"


def _missing_classes(used: list[PersistentVolumeClaim], known: Collection[str]) -> Iterator[str]:
    """Only claims that are not bound yet need their class."""
    lost = [
        claim
        for claim in used
        if not claim.spec.volume_name and storage_class_of(claim) and storage_class_of(claim) not in known
    ]
    if lost:
        such = (
            f"{counted(len(lost), 'unbound claim')}, such as {lost[0].key}, cannot be bound; pods that use them fit on "
            f"no node, {_AS_THERE}"
        )
        if not known:
            yield f"no StorageClasses in the input: {such}"
        else:
            yield f"StorageClass {first_few(dict.fromkeys(map(storage_class_of, lost)))} not in the input: {such}"


T = TypeVar("T", bound=Object)


class Objects(Sequence[Object]):
    """Typed objects in input order, immutable.

    `warnings` are one line each; `ignored` counts the kinds that scheduling does not read; `scheduler_config` is the
    input's KubeSchedulerConfiguration, undecoded, or None; `namespace` is the namespace of names without one, None for
    any; `unknown` are the warnings about names that Kubernetes does not know; `applied` are the objects that a later
    source changes, and `unchanged` counts those that it only repeats.
    """

    __slots__ = ("_objects", "applied", "ignored", "namespace", "scheduler_config", "unchanged", "unknown", "warnings")

    def __init__(
        self,
        objects: Iterable[Object] = (),
        *,
        warnings: Iterable[str] = (),
        ignored: Mapping[str, int] | None = None,
        scheduler_config: object | None = None,
        namespace: str | None = None,
        unknown: Iterable[str] = (),
        applied: Iterable[Applied] = (),
        unchanged: int = 0,
    ) -> None:
        self._objects = tuple(objects)
        self.applied = tuple(applied)
        self.unchanged = unchanged
        self.unknown = tuple(unknown)
        self.warnings = tuple(warnings)
        self.ignored = dict(ignored or {})
        self.scheduler_config = scheduler_config
        self.namespace = namespace

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects)

    @overload
    def __getitem__(self, index: int) -> Object: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Object, ...]: ...
    def __getitem__(self, index: int | slice) -> Object | tuple[Object, ...]:
        return self._objects[index]

    def __repr__(self) -> str:
        return f"<Objects: {len(self)}, {len(self.warnings)} warnings>"

    def of(self, kind: type[T]) -> list[T]:
        """The objects of one kind, in input order."""
        return [obj for obj in self._objects if type(obj) is kind]

    def replaced(
        self, objects: Iterable[Object], warnings: Iterable[str] = (), applied: Iterable[Applied] | None = None
    ) -> Objects:
        """The same load with other objects, additional warnings, and other changes if given."""
        new = [warning for warning in warnings if warning not in self.warnings]
        return Objects(
            objects,
            warnings=(*self.warnings, *new),
            ignored=self.ignored,
            scheduler_config=self.scheduler_config,
            namespace=self.namespace,
            unknown=self.unknown,
            applied=self.applied if applied is None else applied,
            unchanged=self.unchanged,
        )


def load(*sources: Source, strict: bool = False) -> Objects:
    """Load every object that scheduling reads from files, directories, stdin (`-`), dicts or lists of dicts.

    Objects come back in input order, as the API server would store them. An object that an earlier source also has is
    applied over it, as `kubectl apply` does; twice in one source is an error. InputError, one line, for input that
    cannot be used or has no objects at all. Kinds and fields that no release of Kubernetes knows are warnings, with
    `strict` errors. In JSON of more than 1 MiB only objects without a UID are searched for them, as the API server
    drops unknown fields, and only the first 1,000 of each kind.
    """
    with collector_paused():
        # Standard input can be read only once.
        loading = _Loading(guesses=STDIN not in sources, strict=strict)
        try:
            objects = loading.all_objects(sources)
        except (InputError, GuessError):
            if not loading.has_guessed:
                raise
            loading = _Loading(guesses=False, strict=strict)
            objects = loading.all_objects(sources)
        if not objects:
            raise InputError(_nothing_found(sources, loading.ignored))
        return assemble(
            objects,
            [*loading.unknown, *loading.warnings, *other_schedulers(loading.other_groups)],
            ignored=loading.ignored,
            scheduler_config=loading.scheduler_config,
            unknown=loading.unknown,
            applied=loading.applied.values(),
            unchanged=loading.unchanged,
        )


def assemble(
    objects: list[Object],
    warnings: Sequence[str] = (),
    *,
    ignored: Mapping[str, int] | None = None,
    scheduler_config: object | None = None,
    namespace: str | None = None,
    unknown: Sequence[str] = (),
    applied: Iterable[Applied] = (),
    unchanged: int = 0,
) -> Objects:
    """Combine stored objects to one input: set the priorities of pods, and warn about missing objects."""
    priorities = Priorities(objects)
    for position, obj in enumerate(objects):
        if type(obj) is Pod and obj.spec.priority is None:
            objects[position] = priorities.resolve(obj)
        elif type(obj) is PodGroup and obj.spec.priority is None:
            objects[position] = priorities.resolve_group(obj)
    return Objects(
        objects,
        warnings=[*warnings, *priorities.warnings, *missing_references(objects)],
        ignored=ignored,
        scheduler_config=scheduler_config,
        namespace=namespace,
        unknown=unknown,
        applied=applied,
        unchanged=unchanged,
    )


RELEASED_AFTER = 4096
"""How many objects are decoded before the memory of their text is freed."""


class _Seen(NamedTuple):
    """An object of the input: where it was first found, and its current state."""

    first: Object
    obj: Object
    file: str
    source: int
    entry: Entry | None
    """The entry as written; kept for workloads, which a later source may change."""


class _Loading:
    """The state of a load, over all sources."""

    def __init__(self, *, guesses: bool, strict: bool) -> None:
        """With `guesses`, a file that looks like a large list is read as one; GuessError if it is something else.

        With `strict`, names that Kubernetes does not know are errors.
        """
        self._guesses = guesses
        self._strict = strict
        self.has_guessed = False
        """Whether results, including errors, may be due to a wrong guess."""
        self.warnings: list[str] = []
        self.unknown: list[str] = []
        self.ignored: Counter[str] = Counter()
        self.other_groups: set[str] = set()
        """The API groups of the ignored objects."""
        self.scheduler_config: object | None = None
        self.generated: Counter[tuple[str, str, str]] = Counter()
        self.seen: dict[tuple[str, str, str], _Seen] = {}
        self.applied: dict[tuple[str, str, str], Applied] = {}
        self._repeated: set[tuple[str, str, str]] = set()
        self._source, self._sources = 0, 0
        self.configured_in = ""
        self.pods = StoredPods()
        self._searched: Counter[str] = Counter()
        """The number of objects without a UID of each kind in large files."""

    @property
    def unchanged(self) -> int:
        """How many objects a later source repeats unchanged."""
        return len(self._repeated - self.applied.keys())

    def all_objects(self, sources: tuple[Source, ...]) -> list[Object]:
        self._sources, found = len(sources), list[Object]()
        for self._source, source in enumerate(sources):
            found += self._objects(source)
        if len(sources) == 1:
            return found
        stored = {id(seen.first): seen.obj for seen in self.seen.values() if seen.obj is not seen.first}
        return [stored.get(id(obj), obj) for obj in found]

    def _objects(self, source: Source) -> Iterator[Object]:
        number, ignored = numbers(1), self.ignored.copy()
        for document in read_documents(source, guess=self._guesses):
            self.has_guessed |= document.listed is not None
            try:
                for entry in entries(document):
                    if next(number) % RELEASED_AFTER == 0:
                        document.release()
                    try:
                        obj = self._object(entry)
                    except InputError as error:
                        raise _with_cause(error, entry) from None
                    if obj is not None:
                        yield obj
            except NoKindError as error:
                if not document.found or document.listed is not None:
                    raise
                self.warnings.append(f"{error}; skipped")
        only = self.ignored - ignored
        if next(number) == only.total() + 1 and self._sources > 1 and isinstance(source, str | os.PathLike):
            self.warnings.append(_nothing_found((source,), only))

    def _object(self, entry: Entry) -> Object | None:
        kind = type_of(entry.kind, entry.api_version)
        if kind is None:
            self._other(entry)
            return None
        value, text = _manifest(entry), entry.value
        if value is not None:
            self._check_names(entry, value)
        if entry.api_version in FLAT_VERSIONS:
            entry = entry._replace(value=from_flat_version(entry.kind, plain(entry)))
        if entry.kind == "PodGroup" and entry.api_version == V1_36:
            entry = entry._replace(value=from_v1_36(plain(entry)))
        obj = decode(entry, kind)
        if not obj.metadata.name:
            obj = self._named(obj, entry)
        # The API server has accepted objects with a UID in a large dump; dicts are the caller's responsibility.
        manifest = value is not None or not (obj.metadata.uid or entry.document.file == VALUES)
        if manifest and isinstance(text, Raw) and value is None:
            self._searched[entry.kind] += 1
            if self._searched[entry.kind] <= MOST_SEARCHED:
                self._check_text(entry, text)
        problems = list[str | InputError]()
        try:
            if manifest:
                refuse_wrong_times(obj)
                problems += filter(None, [invalid_name(obj)])
            obj = self._stored(obj, problems.append if manifest else None)
        except InputError as error:
            name = full_name(entry.kind, obj.metadata.namespace, obj.metadata.name)
            raise error.at(f"{entry.document.file}: {name}") from None
        for problem in (*problems, *refused_fields(obj)):
            name = full_name(entry.kind, obj.metadata.namespace, obj.metadata.name)
            if unrendered(str(problem)):
                raise InputError(str(problem))
            self._unknown(f"{entry.document.file}: {name}: {problem}; the API server would refuse it")
        return obj if self._is_new(obj, entry) else None

    def _stored(self, obj: Object, on_refused: Callable[[InputError], None] | None) -> Object:
        """The object as the API server would store it; InputError with the field path if it would refuse it.

        For a manifest, `on_refused` is called with fields that the API server would refuse but the scheduler does not
        need.
        """
        if isinstance(obj, Pod):
            return self.pods.stored(obj, on_refused)
        check(obj, manifest=on_refused is not None)
        if on_refused is not None and (problem := refused_by_api_server(obj)) is not None:
            on_refused(problem)
        return default_object(obj)

    def _check_names(self, entry: Entry, value: object) -> None:
        """InputError for an unknown version; a warning, or with `strict` an error, for unknown fields."""
        where = f"{entry.document.file}: {object_name(entry.kind, value)}"
        try:
            refuse_unknown_version(entry.kind, entry.api_version)
            refuse_null_containers(value)
        except InputError as error:
            raise error.at(where) from None
        for problem in unknown_fields(entry.kind, value):
            self._unknown(f"{where}: {problem}")

    def _check_text(self, entry: Entry, text: Raw) -> None:
        """Check the names of an object in a large file, whose text was not searched for duplicate keys."""
        if not is_sure_to_be_known(entry.kind, entry.api_version, text):
            refuse_duplicate_keys(bytes(text), entry.document.where)
            self._check_names(entry, plain(entry._replace(value=text)))

    def _unknown(self, problem: str) -> None:
        if self._strict:
            raise InputError(problem)
        self.unknown.append(problem)

    def _other(self, entry: Entry) -> None:
        if entry.kind != SCHEDULER_CONFIGURATION:
            problem = unknown_kind(entry.kind, entry.api_version) if entry.document.file != VALUES else None
            if problem is not None:
                self._unknown(f"{entry.document.file}: {object_name(entry.kind, plain(entry))}: {problem}")
            # Some groups have kinds with names that scheduling reads in other groups: batch.volcano.sh has a Job.
            group = entry.api_version.rpartition("/")[0]
            self.other_groups.add(group)
            if entry.kind == "CompositePodGroup":
                name = object_name(entry.kind, plain(entry))
                self.warnings.append(f"{entry.document.file}: {name}: groups of groups are not modelled; left out")
            self.ignored[f"{entry.kind}.{group}" if entry.kind in KINDS else entry.kind] += 1
            return
        if self.configured_in:
            raise InputError(
                f"a second {SCHEDULER_CONFIGURATION}, the first is in {self.configured_in}; keep one", entry.where
            )
        self.configured_in = entry.document.file
        self.scheduler_config = plain(entry)

    def _named(self, obj: Object, entry: Entry) -> Object:
        """Give an object without a name the name that the API server would generate from its prefix."""
        prefix = obj.metadata.generate_name
        if not prefix:
            raise InputError(f"{entry.kind} has no metadata.name; give it one", entry.where)
        namespace = effective_namespace(entry.kind, obj.metadata.namespace)
        while True:
            self.generated[entry.kind, namespace, prefix] += 1
            number = self.generated[entry.kind, namespace, prefix]
            name = prefix + generated_suffix(entry.kind, namespace, prefix, number)
            if (entry.kind, namespace, name) not in self.seen:
                return replace(obj, metadata=replace(obj.metadata, name=name))

    def _is_new(self, obj: Object, entry: Entry) -> bool:
        """Record an object; if an earlier source has it, it is applied over that.

        InputError if this source has another object of the same name, unless both are equal.
        """
        key = (entry.kind, obj.metadata.namespace, obj.metadata.name)
        file, seen = entry.document.file, self.seen.get(key)
        if seen is None:
            kept = entry if self._source + 1 < self._sources and isinstance(obj, TEMPLATED) else None
            self.seen[key] = _Seen(obj, obj, file, self._source, kept)
            return True
        if seen.source != self._source:
            self._apply(key, seen, obj, entry)
            return False
        both = f"twice in {file}" if seen.file == file else f"in {seen.file} and in {file}"
        if seen.obj != obj or isinstance(obj, Pod | Node):
            raise InputError(f"{entry.kind} {obj.key} is {both}; keep one of them")
        self.warnings.append(f"{entry.kind} {obj.key} is {both}, the same: used once")
        return False

    def _apply(self, key: tuple[str, str, str], seen: _Seen, obj: Object, entry: Entry) -> None:
        old, new = plain(seen.entry) if seen.entry is not None else None, plain(entry)
        assert isinstance(new, dict)
        try:
            stored, paths = apply(seen.obj, obj, old if isinstance(old, dict) else None, new)
        except InputError as error:
            raise error.at(f"{entry.document.file}: {full_name(entry.kind, obj.namespace, obj.name)}") from None
        self._repeated.add(key)
        kept = entry if seen.entry is not None else None
        self.seen[key] = _Seen(seen.first, stored, entry.document.file, self._source, kept)
        if paths:
            known = self.applied.get(key)
            paths = tuple(dict.fromkeys((*(known.paths if known else ()), *paths)))
            self.applied[key] = Applied(seen.first, stored, paths)


def _manifest(entry: Entry) -> object | None:
    """The value of an object in a file that is not large, else None.

    Building values for all objects of a dump would take longer than reading it.
    """
    if entry.document.file == VALUES or entry.document.listed is not None:
        return None
    text = entry.document.value
    return None if isinstance(text, Raw) and len(memoryview(text)) > LARGE else plain(entry)


def _with_cause(error: InputError, entry: Entry) -> InputError:
    """Extend an error about an object by its likely cause: a template to render, or a misspelt field."""
    if problem := unrendered(str(error)):
        return InputError(problem, entry.where)
    value = plain(entry)
    fields = unknown_fields(entry.kind, value) if type_of(entry.kind, entry.api_version) else ()
    cause = unrendered(str(value)) or next(iter(fields), None)
    return error if cause is None or cause in str(error) else InputError(f"{error}; {cause}")


def _nothing_found(sources: tuple[Source, ...], ignored: Mapping[str, int]) -> str:
    names = ", ".join(dict.fromkeys(_name(source) for source in sources)) or VALUES
    others = ", ".join(f"{number:,} {kind}" for kind, number in ignored.items())
    only = f"; only {others}" if others else ""
    return f"{names}: no objects that scheduling reads, such as nodes and pods{only}"


def _name(source: Source) -> str:
    if isinstance(source, str | os.PathLike):
        return "stdin" if source == STDIN else os.fspath(source)
    return VALUES
