"""Measures of a placement (packing, imbalance, spread, fragmentation), and conditions on them like `pending > 0`."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Floats, Mask
from podium.errors import InputError
from podium.model import Node
from podium.model.objects import PRICE_PER_HOUR, ZONE
from podium.model.pod import belongs_to_node
from podium.model.resources import CPU, MEMORY
from podium.model.selectors import repels
from podium.workloads import workload_of

NODE = "node"
"""Means the nodes themselves where a label key is expected."""


@dataclass(frozen=True, slots=True)
class Measures:
    """The numbers of one placement; docs/answers.md says what each means."""

    pods: int
    """The number of pods on nodes."""
    pending: int
    """The number of pods without a node."""
    nodes: int
    nodes_in_use: int
    cost_per_hour: float
    """The cost of the nodes in use; 0 if no node has a price."""
    cpu_utilisation: float
    memory_utilisation: float
    cpu_imbalance: float
    memory_imbalance: float
    zone_spread: float
    node_spread: float
    fragmentation: float
    stranded_cpu: int
    """In milli-cpu."""
    stranded_memory: int
    """In bytes."""
    largest_cpu: int
    """In milli-cpu."""
    largest_memory: int
    """In bytes."""

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain data, by their names."""
        return {_camel(name): value for name, value in asdict(self).items()}


def measure(cluster: Cluster, pending: int | None = None) -> Measures:
    """All measures of a cluster; `pending` defaults to the number of its pending pods."""
    in_use = rows_in_use(cluster)
    placed = workloads(cluster)
    left_over, largest = stranded(cluster), largest_fit(cluster)
    return Measures(
        pods=sum(1 for _ in cluster.placed()),
        pending=len(cluster.pending) if pending is None else pending,
        nodes=cluster.node_count,
        nodes_in_use=int(in_use.sum()),
        cost_per_hour=cost_per_hour(cluster) if has_prices(cluster) else 0.0,
        cpu_utilisation=mean_utilisation(cluster, CPU, in_use),
        memory_utilisation=mean_utilisation(cluster, MEMORY, in_use),
        cpu_imbalance=imbalance(cluster, CPU),
        memory_imbalance=imbalance(cluster, MEMORY),
        zone_spread=spread(cluster, ZONE, placed),
        node_spread=spread(cluster, NODE, placed),
        fragmentation=fragmentation(cluster),
        stranded_cpu=left_over.cpu,
        stranded_memory=left_over.memory,
        largest_cpu=largest.cpu,
        largest_memory=largest.memory,
    )


# -- packing and imbalance -----------------------------------------------------------------------------------------


def rows_in_use(cluster: Cluster) -> Mask:
    """Whether each node, in the order of `cluster.nodes`, has a pod that does not belong to its node."""
    used = {name for pod, name in cluster.placed() if not belongs_to_node(pod)}
    return np.fromiter((name in used for name in cluster.nodes.names), np.bool_, cluster.node_count)


def nodes_in_use(cluster: Cluster) -> int:
    """How many nodes have a pod that does not belong to its node."""
    return int(rows_in_use(cluster).sum())


def has_prices(cluster: Cluster) -> bool:
    """Whether any node has the price label."""
    return any(PRICE_PER_HOUR in cluster.node(name).metadata.labels for name in cluster.nodes.names)


def cost_per_hour(cluster: Cluster) -> float:
    """The cost of the nodes in use per hour, from their price label; a node without the label costs 1."""
    names = [name for name, used in zip(cluster.nodes.names, rows_in_use(cluster), strict=True) if used]
    return math.fsum(node_price(cluster.node(name)) for name in names)


def node_price(node: Node) -> float:
    """What a node costs per hour, from its price label; 1 without the label."""
    text = node.metadata.labels.get(PRICE_PER_HOUR, "1")
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 <= price < math.inf:
        raise InputError(f"node {node.name}: label {PRICE_PER_HOUR} is {text!r}; it needs a number from 0 on")
    return price


def utilisation(cluster: Cluster, resource: str) -> Floats:
    """The requested share of a resource on each node; 0 if a node offers none."""
    offered = cluster.nodes.allocatable(resource)
    return np.divide(cluster.nodes.requested(resource), offered, out=np.zeros(len(offered)), where=offered > 0)


def mean_utilisation(cluster: Cluster, resource: str, in_use: Mask) -> float:
    """The mean utilisation of the nodes in use: how well they are packed."""
    return _mean(utilisation(cluster, resource)[in_use])


def imbalance(cluster: Cluster, resource: str) -> float:
    """The standard deviation of utilisation over the nodes that offer the resource: 0 if all are equally full."""
    shares = utilisation(cluster, resource)[cluster.nodes.allocatable(resource) > 0]
    return float(shares.std()) if len(shares) else 0.0


# -- spread --------------------------------------------------------------------------------------------------------


class WorkloadKey(NamedTuple):
    """A workload by namespace and name: `shop`, `Deployment/web`."""

    namespace: str
    name: str


Workloads = Mapping[WorkloadKey, Counter[str]]
"""The number of pods of each workload on each node."""


def workloads(cluster: Cluster) -> Workloads:
    """The pods of each workload per node, without pods that belong to their node and pods without a workload."""
    found: dict[WorkloadKey, Counter[str]] = {}
    for pod, node in cluster.placed():
        if pod.metadata.controller is not None and not belongs_to_node(pod):
            found.setdefault(WorkloadKey(pod.namespace, workload_of(pod)), Counter())[node] += 1
    return found


def domains(cluster: Cluster, key: str) -> dict[str, str]:
    """The domain of each node: its value of a label, or with `NODE` its name; nodes without the label are left out."""
    if key == NODE:
        return {name: name for name in cluster.rows}
    labels = {name: cluster.node(name).metadata.labels.get(key) for name in cluster.rows}
    return {name: value for name, value in labels.items() if value is not None}


def in_domains(nodes: Mapping[str, int], domain_of: Mapping[str, str]) -> Counter[str]:
    """Turn counts per node into counts per domain."""
    counts: Counter[str] = Counter()
    for node, count in nodes.items():
        if node in domain_of:
            counts[domain_of[node]] += count
    return counts


def evenness(counts: Iterable[int], domain_count: int) -> float:
    """How evenly pods are spread over domains: 1 as evenly as possible, 0 if all are in one domain.

    It measures how far the fullest domain, whose failure costs most, exceeds the minimum possible.
    """
    counts = list(counts)
    pods, most = sum(counts), max(counts, default=0)
    least = -(-pods // domain_count) if domain_count else pods
    return 1.0 if pods == least else 1 - (most - least) / (pods - least)


def spread(cluster: Cluster, key: str, placed: Workloads | None = None) -> float:
    """The mean evenness, over the values of a label or the nodes, of all workloads with more than one pod.

    1 if there is no workload with more than one pod. `placed` are the cluster's workloads, if the caller has them
    already.
    """
    domain_of = domains(cluster, key)
    domain_count = len(set(domain_of.values()))
    counts = [in_domains(nodes, domain_of) for nodes in (workloads(cluster) if placed is None else placed).values()]
    even = [evenness(each.values(), domain_count) for each in counts if sum(each.values()) > 1]
    return _mean(np.array(even)) if even else 1.0


# -- fragmentation -------------------------------------------------------------------------------------------------


class Room(NamedTuple):
    """An amount of cpu (milli) and of memory (bytes)."""

    cpu: int
    memory: int


def largest_fit(cluster: Cluster) -> Room:
    """The largest plain pod that still fits on some node.

    It requests cpu and memory in the cluster's overall proportion, and tolerates no taint.
    """
    cpu, memory = _free_shares(cluster)
    takes = np.fromiter(_taking_plain_pods(cluster), np.bool_, cluster.node_count)
    takes &= cluster.nodes.requested("pods") < cluster.nodes.allocatable("pods")
    share = float(np.minimum(cpu, memory)[takes].max(initial=0.0))
    return Room(*(int(share * total) for total in _totals(cluster)))


def stranded(cluster: Cluster) -> Room:
    """The free cpu and memory that cannot be used because the node lacks the other of the two.

    Cpu and memory are needed in the cluster's overall proportion; what a node has of one of them beyond that is
    stranded.
    """
    cpu, memory = _free_shares(cluster)
    usable = np.minimum(cpu, memory)
    shares = (float((free - usable).sum()) for free in (cpu, memory))
    return Room(*(round(share * total) for share, total in zip(shares, _totals(cluster), strict=True)))


def fragmentation(cluster: Cluster) -> float:
    """The share of the free resources that is stranded: 0 if cpu and memory are free in proportion on every node."""
    cpu, memory = _free_shares(cluster)
    free = float(cpu.sum() + memory.sum())
    return float(np.abs(cpu - memory).sum()) / free if free else 0.0


def _free_shares(cluster: Cluster) -> tuple[Floats, Floats]:
    """Each node's free cpu and memory as shares of the cluster's allocatable."""
    shares = []
    for resource, total in zip((CPU, MEMORY), _totals(cluster), strict=True):
        free = cluster.nodes.allocatable(resource) - cluster.nodes.requested(resource)
        shares.append(np.maximum(free, 0) / max(total, 1))
    return shares[0], shares[1]


def _totals(cluster: Cluster) -> Room:
    return Room(*(int(cluster.nodes.allocatable(resource).sum()) for resource in (CPU, MEMORY)))


def _taking_plain_pods(cluster: Cluster) -> Iterator[bool]:
    for info in cluster.nodes:
        spec = info.node.spec
        yield not spec.unschedulable and not any(map(repels, spec.taints))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


LONGEST_CONDITION = 200
_PERCENTAGE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
SHARES = frozenset(
    (
        *("agreement", "cpu_utilisation", "memory_utilisation", "cpu_imbalance", "memory_imbalance"),
        *("zone_spread", "node_spread", "fragmentation"),
    )
)
"""The measures that can be compared with a percentage; the others are counts or amounts."""

_COMPARE: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_COMPUTE: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """Comparisons of measures, numbers and percentages, joined by `and`, `or` and `not`; no other code is ever run."""

    text: str
    _expression: ast.expr

    @classmethod
    def parse(cls, text: str, names: Collection[str]) -> Condition:
        """Parse a condition on values with these names; InputError with the problem if it is invalid."""
        if len(text) > LONGEST_CONDITION:
            raise InputError(f"condition {text[:40]!r}... is longer than {LONGEST_CONDITION} characters")
        such = f"write one such as '{next(iter(names), 'pending')} > 0'"
        try:
            expression = ast.parse(_PERCENTAGE.sub(r"(\1 / 100)", text.strip()), mode="eval").body
        except (SyntaxError, ValueError):
            raise InputError(f"condition {text!r} cannot be read; {such}") from None
        if not isinstance(expression, ast.Compare | ast.BoolOp) and not _is_not(expression):
            raise InputError(f"condition {text!r} compares nothing; {such}")
        _Evaluation(text, dict.fromkeys(names, 1.0), is_trial=True).truth(expression)
        return cls(text, expression)

    def holds(self, values: Mapping[str, float]) -> bool:
        """Whether it holds for these values; InputError if it divides by zero."""
        return _Evaluation(self.text, values).truth(self._expression)

    def explained(self, values: Mapping[str, float]) -> str:
        """The values that it compares, as they are compared: `pending is 4, agreement is 25.9%`."""
        nodes = list(ast.walk(self._expression))
        names = [ast.unparse(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)]
        shares = {name for node in nodes if isinstance(node, ast.Compare) for name in _compared_with_percentages(node)}
        return ", ".join(
            f"{name} is {values[name]:.1%}" if name in shares else f"{name} is {values[name]:.6g}"
            for name in dict.fromkeys(names)
            if name in values
        )


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _is_percentage(node: ast.expr) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and ast.unparse(node.right) == "100" and isinstance(node.left, ast.Constant)


def _compared_with_percentages(node: ast.Compare) -> list[str]:
    """The measures that a comparison compares with a percentage."""
    parts = (node.left, *node.comparators)
    named = [ast.unparse(part) for part in parts if isinstance(part, ast.Name | ast.Attribute)]
    return named if any(map(_is_percentage, parts)) else []


class _Evaluation:
    def __init__(self, text: str, values: Mapping[str, float], *, is_trial: bool = False) -> None:
        """In a trial the values mean nothing, and every part is evaluated: what is wrong in one is wrong on good days,
        too.
        """
        self._text, self._values, self._is_trial = text, values, is_trial

    def truth(self, node: ast.expr) -> bool:
        """Whether it holds. As in Python, the parts after the one that decides are not evaluated."""
        match node:
            case ast.BoolOp():
                parts: Iterable[bool] = map(self.truth, node.values)
                parts = list(parts) if self._is_trial else parts
                return all(parts) if isinstance(node.op, ast.And) else any(parts)
            case ast.UnaryOp(op=ast.Not()):
                return not self.truth(node.operand)
            case ast.Compare():
                return self._compared(node)
        raise self._refused(node, "where a comparison should be")

    def _compared(self, node: ast.Compare) -> bool:
        parts = (node.left, *node.comparators)
        numbers = [self.number(part) for part in parts]
        for name in _compared_with_percentages(node):
            if name.rpartition(".")[2] not in SHARES:
                share = next(ast.unparse(each.left) for each in parts if _is_percentage(each))
                of = f"{share}% * pods" if "pods" in self._values else "a number"
                raise InputError(f"condition {self._text!r}: {name} is not a share; compare it with {of}")
        compare = [_COMPARE.get(type(op)) for op in node.ops]
        if None in compare:
            raise InputError(f"condition {self._text!r}: compare with >, >=, <, <=, == or !=")
        pairs = zip(compare, numbers, numbers[1:], strict=False)
        return all(test is not None and test(one, other) for test, one, other in pairs)

    def number(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as value):
                return float(value)
            case ast.UnaryOp(op=ast.USub()):
                return -self.number(node.operand)
            case ast.BinOp() if type(node.op) in _COMPUTE:
                return self._computed(node)
            case ast.Name() | ast.Attribute(value=ast.Name()):
                return self._value(ast.unparse(node))
        raise self._refused(node, "where a number should be")

    def _computed(self, node: ast.BinOp) -> float:
        one, other = self.number(node.left), self.number(node.right)
        try:
            return _COMPUTE[type(node.op)](one, other)
        except ZeroDivisionError:
            by = ast.unparse(node.right)
            is_always_zero = not any(isinstance(part, ast.Name) for part in ast.walk(node.right))
            if self._is_trial and not is_always_zero:
                return 1.0
            such = f"'{ast.unparse(node.left)} > 0.1 * {by}'"
            instead = "" if is_always_zero else f", which is 0; multiply instead, such as {such}"
            raise InputError(f"condition {self._text!r} divides by {by}{instead}") from None

    def _value(self, name: str) -> float:
        if name not in self._values:
            known = ", ".join(key for key in self._values if "." not in key)
            raise InputError(f"condition {self._text!r}: {name!r} is not measured; there are {known}")
        return self._values[name]

    def _refused(self, node: ast.expr, where: str) -> InputError:
        return InputError(f"condition {self._text!r}: {ast.unparse(node)!r} {where}")
