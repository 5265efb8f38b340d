"""Compiles pod specs: everything the scheduler derives from a spec, once for all pods with an equal spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.cluster.columns import PODS, Columns, Interned, Ints
from podium.memory import RecentlyUsed
from podium.model import Affinity, Pod, PodAffinity, PodAffinityTerm
from podium.model.pod import has_objects_of_its_own
from podium.model.resources import ALWAYS, PodResources, counts_by_release, pod_resources, resize_infeasible
from podium.model.selectors import Labels, Selector, label_selector, with_label_keys_merged
from podium.rules import Rules

T = TypeVar("T", bound=type[Any])


def hashed_once(kind: T) -> T:
    """Make a frozen dataclass compute its hash once per instance and process."""
    work_out: Callable[[object], int] = vars(kind)["__hash__"]

    def hash_of(self: Any) -> int:
        try:
            found: int = self._hash
        except AttributeError:
            found = vars(self)["_hash"] = work_out(self)
        return found

    def state_of(self: object) -> dict[str, Any]:
        # The hash of strings differs between processes.
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    type.__setattr__(kind, "__hash__", hash_of)
    type.__setattr__(kind, "__getstate__", state_of)
    return kind


@hashed_once
@dataclass(frozen=True)
class Term:
    """A pod (anti-)affinity term: pods that match `selector`, in these namespaces, share `topology_key`'s value."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str
    weight: int = 0

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Whether the term selects a pod with these labels, in a namespace with those labels."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


class Terms(NamedTuple):
    """All affinity terms of a pod, by their kind."""

    required_affinity: tuple[Term, ...] = ()
    required_anti_affinity: tuple[Term, ...] = ()
    preferred_affinity: tuple[Term, ...] = ()
    preferred_anti_affinity: tuple[Term, ...] = ()


NO_TERMS = Terms()


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


ANY_IP = "0.0.0.0"


class Ports:
    """The host ports in use: (protocol, port) -> row -> how often each address is used."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], dict[int, Counter[str]]] = {}

    def change(self, row: int, ports: Iterable[HostPort], amount: int) -> None:
        """Occupy (1) or free (-1) ports on a row."""
        for ip, protocol, port in ports:
            rows = self._used.setdefault((protocol, port), {})
            addresses = rows.setdefault(row, Counter())
            addresses[ip] += amount
            if not addresses[ip]:
                del addresses[ip]
            if not addresses:
                del rows[row]

    def conflicts(self, ports: Iterable[HostPort]) -> Iterator[int]:
        """The rows on which one of these ports is in use, possibly repeated; 0.0.0.0 overlaps every address."""
        for ip, protocol, port in ports:
            for row, addresses in self._used.get((protocol, port), {}).items():
                if ip == ANY_IP or ANY_IP in addresses or ip in addresses:
                    yield row

    def copy(self) -> Ports:
        twin = Ports()
        twin._used = {
            port: {row: addresses.copy() for row, addresses in rows.items()} for port, rows in self._used.items()
        }
        return twin


class Cohort(NamedTuple):
    """Pods that every counting question treats the same."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    terminating: bool
    terms: Terms


def _term(raw: PodAffinityTerm, pod: Pod, rules: Rules, weight: int = 0) -> Term:
    own_namespace = not raw.namespaces and raw.namespace_selector is None
    selector = raw.label_selector
    if rules.match_label_keys_in_pod_affinity:
        labels = pod.metadata.labels
        selector = with_label_keys_merged(selector, raw.match_label_keys, raw.mismatch_label_keys, labels)
    return Term(
        frozenset((pod.metadata.namespace,) if own_namespace else raw.namespaces),
        label_selector(raw.namespace_selector),
        label_selector(selector),
        raw.topology_key,
        weight,
    )


COUNTING_RULES = (
    "in_place_resize",
    "match_label_keys_in_pod_affinity",
    "pod_level_defaults_from_containers",
    "pod_level_huge_pages",
    "pod_level_resize",
    "pod_level_resources",
    "resize_compares_sums",
    "sidecar_host_ports",
    "sidecars_add_to_non_zero_requests",
)
"""The rules that compiled specs depend on."""


def _names_label_keys(pod: Pod) -> bool:
    """Whether a pod affinity term has matchLabelKeys or mismatchLabelKeys."""
    affinity = pod.spec.affinity or Affinity()
    sides = [side for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if side is not None]
    terms = [term for side in sides for term in (*side.required, *(one.pod_affinity_term for one in side.preferred))]
    return any(term.match_label_keys or term.mismatch_label_keys for term in terms)


def affinity_terms(pod: Pod, rules: Rules) -> Terms:
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS

    def required(side: PodAffinity | None) -> tuple[Term, ...]:
        return tuple(_term(raw, pod, rules) for raw in side.required) if side else ()

    def preferred(side: PodAffinity | None) -> tuple[Term, ...]:
        return tuple(_term(raw.pod_affinity_term, pod, rules, raw.weight) for raw in side.preferred) if side else ()

    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    return Terms(required(near), required(apart), preferred(near), preferred(apart))


def host_ports(pod: Pod, rules: Rules) -> tuple[HostPort, ...]:
    """The host ports that the pod uses: those of containers and of init containers that keep running."""
    sidecars = [container for container in pod.spec.init_containers if container.restart_policy == ALWAYS]
    return tuple(
        HostPort(port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
        for container in (*pod.spec.containers, *(sidecars if rules.sidecar_host_ports else ()))
        for port in container.ports
        if port.host_port > 0
    )


@lru_cache(maxsize=1024)
def counts_alike(one: Rules, other: Rules) -> bool:
    """Whether two releases count pods in the same way."""
    return all(getattr(one, name) == getattr(other, name) for name in COUNTING_RULES)


class PodInfo:
    """A compiled spec. Pods with the same `signature` share it, so nothing in it may depend on a single pod."""

    __slots__ = (
        "_cohorts",
        "has_own_objects",
        "labels",
        "memo",
        "namespace",
        "pod",
        "ports",
        "resources",
        "signature",
        "spec_signature",
        "terms",
        "used",
        "varies",
    )

    def __init__(self, signature: bytes, spec_signature: bytes, pod: Pod, columns: Columns, rules: Rules) -> None:
        self.signature, self.spec_signature = signature, spec_signature
        """The signature of everything scheduling reads from the pod, and that of the spec alone."""
        self.pod = pod
        """One pod with this spec; its name, uid and status have no meaning here."""
        self.namespace = pod.metadata.namespace
        self.labels = pod.metadata.labels
        self.resources: PodResources = pod_resources(pod, rules)
        self.ports = host_ports(pod, rules)
        self.terms = affinity_terms(pod, rules)
        self.varies = counts_by_release(pod) or (self.terms is not NO_TERMS and _names_label_keys(pod))
        """Whether another release may compile the spec differently."""
        self.used: Ints = used_vector(self.resources, columns)
        self.has_own_objects = has_objects_of_its_own(pod)
        """Whether the pods use objects that are named after them, so that each pod may fit differently."""
        self._cohorts: dict[bool, int] = {}
        self.memo: dict[Hashable, Any] = {}
        """Values that plugins derived from the spec, under keys of their choice."""

    def cohort(self, terminating: bool, cohorts: Interned[Cohort]) -> int:
        """The code of the pods' cohort; all forks of a cluster share the dictionary of cohorts."""
        code = self._cohorts.get(terminating)
        if code is None:
            labels = tuple(sorted(self.labels.items()))
            code = self._cohorts[terminating] = cohorts.code(Cohort(self.namespace, labels, terminating, self.terms))
        return code


def used_vector(resources: PodResources, columns: Columns) -> Ints:
    """The amounts that a pod adds to a column of `used`, for the resources known so far."""
    pairs = [(columns.resource(name), amount) for name, amount in resources.used.items()]
    requested = [0] * len(columns.resources)
    for index, amount in pairs:
        requested[index] = amount
    requested[PODS] = 1
    return np.array([resources.non_zero_cpu, resources.non_zero_memory, *requested])


_encode = msgspec.json.Encoder().encode


def _meta_signature(pod: Pod) -> bytes:
    """The parts of a pod's metadata that scheduling reads, without its name, uid, annotations and deletion
    timestamp.
    """
    meta = pod.metadata
    return _encode((meta.namespace, meta.labels, meta.owner_references))


def _spec_signature(pod: Pod) -> bytes:
    """The spec without the pod's group, and the part of the status that scheduling reads."""
    spec = pod.spec
    if spec.scheduling_group is not None:
        # The pods of all groups with one template share what is known about it.
        spec = replace(spec, scheduling_group=None)
    return _encode((spec, _held(pod)))


def _held(pod: Pod) -> tuple[object, ...] | None:
    """The status fields about resources, which can be resized in place; None if they have no effect."""
    status = pod.status
    listed = (*status.container_statuses, *status.init_container_statuses)
    held = [each for each in listed if each.resources is not None or each.allocated_resources]
    infeasible = bool(status.conditions) and resize_infeasible(pod)
    if not held and status.resources is None and not infeasible:
        return None
    return held, status.resources, status.allocated_resources, infeasible


class PodInfos:
    """The specs compiled so far by the rules of a release, by signature; shared by all forks of a cluster."""

    LIMIT = 1 << 17

    def __init__(self, columns: Columns, rules: Rules) -> None:
        self._columns, self.rules = columns, rules
        self._known: RecentlyUsed[PodInfo] = RecentlyUsed(self.LIMIT)
        self._specs: RecentlyUsed[bytes] = RecentlyUsed(self.LIMIT)
        self._last: tuple[Pod, PodInfo] | None = None

    def of(self, pod: Pod) -> PodInfo:
        if self._last is not None and _are_copies(pod, self._last[0]):
            return self._last[1]
        spec = _spec_signature(pod)
        key = _meta_signature(pod) + spec
        info: PodInfo | None = self._known[key]
        if info is None:
            spec = self._specs.get_or_make(spec, lambda: spec)
            info = self._known[key] = PodInfo(key, spec, pod, self._columns, self.rules)
        self._last = pod, info
        return info

    def counted_as(self, rules: Rules) -> PodInfos:
        """The specs compiled by the rules of another release; specs that do not depend on the release are reused."""
        infos = PodInfos(self._columns, rules)
        if counts_alike(rules, self.rules):
            infos._known, infos._specs = self._known, self._specs
            return infos
        for key, info in self._known.items():
            if not info.varies:
                infos._known[key] = info
                infos._specs[info.spec_signature] = info.spec_signature
        return infos


def _are_copies(pod: Pod, other: Pod) -> bool:
    """Whether two pods come from one template: all parts that scheduling reads are the same Python objects."""
    one, two = pod.metadata, other.metadata
    return (
        pod.spec is other.spec
        and pod.status is other.status
        and one.labels is two.labels
        and one.owner_references is two.owner_references
        and one.namespace == two.namespace
    )
