"""Pods that run, pods that want their place, and what preemption says about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from builders import HOSTNAME, make_node, make_object, make_pod
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.model import Node, Object, Pod
from podium.model.pod import PodCondition

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T09:00:00Z"
APP, PROTECTED, FREE = {"app": "web"}, {"app": "protected"}, {"app": "free"}
PORT = [{"containerPort": 80, "hostPort": 8080}]


def small(name: str, **fields: Any) -> Node:
    """A node of 2 cpus."""
    return make_node(name, cpu="2", **fields)


def running(
    name: str,
    node: str,
    *,
    cpu: str = "1",
    priority: int = 0,
    started: str | None = "2026-01-01T00:00:00Z",
    **fields: Any,
) -> Pod:
    """A pod that started on a node."""
    pod = make_pod(name, node=node, requests={"cpu": cpu}, priority=priority, **fields)
    return replace(pod, status=replace(pod.status, start_time=started))


def preempted(pod: Pod) -> Pod:
    """The pod while it terminates because the scheduler preempted it."""
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    metadata = replace(pod.metadata, deletion_timestamp="2026-01-02T00:00:00Z")
    return replace(pod, metadata=metadata, status=replace(pod.status, conditions=[condition]))


def nominated(pod: Pod, node: str) -> Pod:
    """The pod with a nomination in its status."""
    return replace(pod, status=replace(pod.status, nominated_node_name=node))


def preemptor(name: str = "new", *, cpu: str = "1", priority: int = 100, **fields: Any) -> Pod:
    """A pending pod that may evict the others."""
    return make_pod(name, requests={"cpu": cpu}, priority=priority, **fields)


def budget(name: str, labels: dict[str, str] | None, allowed: int = 0, *, disrupted: Iterable[str] = ()) -> Object:
    """A PodDisruptionBudget for pods with these labels; None for one without a selector."""
    selector = {} if labels is None else {"selector": {"matchLabels": labels}}
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")}
    return make_object("PodDisruptionBudget", name, namespace="default", spec=selector, status=status)


def scheduler_on(objects: Iterable[Object], config: dict[str, Any] | None = None, **settings: Any) -> Scheduler:
    return Scheduler(Cluster.from_objects(objects), config, **{"tie_break": "first", **settings})


def preempt(objects: Iterable[Object], pod: Pod, config: dict[str, Any] | None = None, **settings: Any) -> Decision:
    """What is decided about the pod on these objects, with preemption; the smallest name wins a tie."""
    return scheduler_on(objects, config, **settings).decide(pod, preempt=True)


def victims_by_node(decision: Decision) -> dict[str, list[str]]:
    """The victims on every candidate, the most important first."""
    return {found.node: [victim.name for victim in found.victims] for found in decision.candidates}


def on_a(name: str, **fields: Any) -> Pod:
    return running(name, "a", **fields)


def spared(*pods: Pod, want: str, budgets: Sequence[Object] = (), **fields: Any) -> list[str]:
    """The victims on a node of 4 cpus with these pods, for a pod that wants some of the cpus."""
    node = make_node("a", cpu="4", labels={HOSTNAME: "a"})
    return victims_by_node(preempt([node, *pods, *budgets], preemptor(cpu=want, **fields)))["a"]
