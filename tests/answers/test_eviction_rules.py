"""The rules of evictions are the same wherever pods are evicted: in why-not, drain, timelines and autoscaling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.scaling import group
from builders import HOSTNAME, ZONE, affinity, make_node, make_object, make_pod, pod_term, spread
from podium.answers import Fate, drain, why_not
from podium.autoscaling import Autoscaler, read_node_groups
from podium.cluster import Cluster
from podium.model import Object, Pod
from podium.model.objects import NODE_GROUP
from podium.model.pod import belongs_to_node
from podium.timeline import Timeline

Fields = dict[str, Any]

ROOMY = make_node("c", cpu="64", labels={ZONE: "c", HOSTNAME: "c"})
DRAIN_A = {"time": 1, "event": "drain", "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}}
OWNERS: dict[str, Fields] = {
    "nobody": {},
    "ReplicaSet": {"owner": {"kind": "ReplicaSet", "name": "known"}},
    "ReplicaSet of a Deployment": {"owner": {"kind": "ReplicaSet", "name": "deployed"}},
    "ReplicaSet that is not in the input": {"owner": {"kind": "ReplicaSet", "name": "unknown"}},
    "StatefulSet that is not in the input": {"owner": {"kind": "StatefulSet", "name": "db"}},
    "operator": {"owner": {"kind": "Rollout", "name": "web"}},
    "Job": {"owner": {"kind": "Job", "name": "sum"}},
    "DaemonSet": {"owner": {"kind": "DaemonSet", "name": "agent"}},
    "node": {"owner": {"kind": "Node", "name": "a"}},
    "kubelet": {"mirror": True},
}


def evicted_by_drain(objects: Iterable[Object], *, until: float = 200.0) -> set[str]:
    """The pods that a timeline evicts because node a is drained."""
    result = Timeline(objects, [DRAIN_A], tie_break="first").run(until)
    return {record["pod"] for record in result.log if record["event"] == "evict" and record["reason"] == "drain"}


def scaled_down(objects: Iterable[Object]) -> set[str]:
    """The pods that an autoscaler evicts from the nodes of its group."""
    timeline = Timeline(objects, [{**DRAIN_A, "event": "uncordon"}], tie_break="first")
    with TemporaryDirectory() as folder:
        file = Path(folder, "groups.yaml")
        settings = {"skipNodesWithSystemPods": False, "scaleDownUtilizationThreshold": 1}
        file.write_text(yaml.safe_dump({**settings, "groups": [group()]}))
        Autoscaler(timeline, read_node_groups(str(file)))
    result = timeline.run(1200.0)
    return {record["pod"] for record in result.log if record["event"] == "evict"}


# -- pods that belong to their node ------------------------------------------------------------------------------------

PORTS = [{"containerPort": 80, "hostPort": 80}]
WEB = {"app": "web"}
ASKING: dict[str, Fields] = {
    "cpu": {"requests": {"cpu": "4"}},
    "port": {"ports": PORTS},
    "anti-affinity": {"affinity": affinity(required=[pod_term(ZONE, WEB)], anti=True)},
    "web": {"labels": WEB},
    "spread": {"labels": WEB, "topology_spread_constraints": [spread(ZONE, WEB)]},
}
running = st.tuples(st.sampled_from(list(OWNERS)), st.sampled_from(list(ASKING)[:4]))


@given(st.lists(running, min_size=1, max_size=5), st.sampled_from(list(ASKING)))
def test_pods_that_belong_to_their_node_are_never_evicted(there: list[tuple[str, str]], asks: str) -> None:
    pods = []
    for number, (owner, what) in enumerate(there):
        fields = {**ASKING[what], "requests": {"cpu": "500m"}}
        pods.append(make_pod(f"p{number}", node="a", **fields, **OWNERS[owner]))
    belonging = {pod.key for pod in pods if belongs_to_node(pod)}
    of_group = make_node("a", labels={ZONE: "a", HOSTNAME: "a", NODE_GROUP: "pool"})
    cluster = Cluster.from_objects([of_group, make_node("b", labels={ZONE: "b"}, unschedulable=True), *pods])

    answer = why_not(cluster, make_pod("asking", **ASKING[asks]), "a", most=30)
    changes = [change for suggestion in answer.suggestions for change in suggestion.changes]
    suggested = {each.removeprefix("pod/") for change in changes if change.kind == "evict" for each in change.on}
    cluster = Cluster.from_objects([of_group, ROOMY, *pods])
    drained = drain(cluster, ["a"])

    assert not belonging & suggested
    assert {pod.pod for pod in drained.pods if pod.fate is Fate.STAYS} == belonging
    assert not belonging & evicted_by_drain([of_group, ROOMY, *pods])
    assert not belonging & scaled_down([of_group, ROOMY, *pods])


# -- budgets -----------------------------------------------------------------------------------------------------------

bounds = st.one_of(
    st.just({}),
    st.builds(
        lambda bound, value: {bound: value}, st.sampled_from(["minAvailable", "maxUnavailable"]), st.integers(0, 4)
    ),
    st.builds(
        lambda bound, value: {bound: value},
        st.sampled_from(["minAvailable", "maxUnavailable"]),
        st.sampled_from(["0%", "30%", "50%", "100%"]),
    ),
)
selectors = st.sampled_from([{"matchLabels": WEB}, {"matchLabels": {"app": "db"}}, {}])
policies = st.sampled_from([{}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}])
budgets = st.lists(st.builds(lambda *parts: parts, selectors, bounds, policies), max_size=2)
protected = st.fixed_dictionaries(
    {
        "app": st.sampled_from(["web", "web", "db"]),
        "node": st.sampled_from(["a", "a", "b"]),
        "owner": st.sampled_from(list(OWNERS)),
        "ready": st.sampled_from([None, True, False]),
        "deleted": st.sampled_from([False, False, False, True]),
    }
)


def workloads(pods: Iterable[Pod], fewer: int) -> list[Object]:
    """The controllers that are in the input; `fewer` is how many pods less they want than they have."""
    owned = Counter(pod.metadata.controller.name for pod in pods if pod.metadata.controller and not pod.terminating)
    template = {"metadata": {"labels": WEB}, "spec": {"containers": [{"name": "main", "image": "app"}]}}

    def workload(kind: str, name: str, owner: Fields | None = None, pods_of: str = "") -> Object:
        replicas = max(owned[pods_of or name] - fewer, 0)
        spec = {"replicas": replicas, "selector": {"matchLabels": WEB}, "template": template}
        return make_object(kind, name, namespace="default", owner=owner, spec=spec)

    deployment = workload("Deployment", "web", pods_of="deployed")
    deployed = workload("ReplicaSet", "deployed", {"kind": "Deployment", "name": "web"})
    return [workload("ReplicaSet", "known"), deployment, deployed]


@given(st.lists(protected, min_size=1, max_size=7), budgets, st.integers(0, 1), st.booleans())
def test_a_drain_evicts_the_same_pods_now_and_in_a_timeline(
    given_pods: list[Fields], given_budgets: list[tuple[Fields, ...]], fewer: int, is_reachable: bool
) -> None:
    has_bare = any(not OWNERS[each["owner"]] for each in given_pods)
    pods = [
        make_pod(
            f"{each['app']}-{number}",
            labels={"app": each["app"]},
            node=each["node"],
            # Which of two pods without a controller goes is a matter of time while others get ready.
            ready=True if has_bare else each["ready"],
            deleted=each["deleted"],
            phase="Running",
            **OWNERS[each["owner"]],
        )
        for number, each in enumerate(given_pods)
    ]
    made = [
        make_object(
            "PodDisruptionBudget", f"b{number}", namespace="default", spec={"selector": selector, **rest, **policy}
        )
        for number, (selector, rest, policy) in enumerate(given_budgets)
    ]
    taints = (
        [] if is_reachable else [f"node.kubernetes.io/unreachable=:{effect}" for effect in ("NoExecute", "NoSchedule")]
    )
    objects = [make_node("a"), make_node("b", taints=taints), ROOMY, *workloads(pods, fewer), *pods, *made]

    drained = drain(Cluster.from_objects(objects), ["a"])
    moved = {pod.pod for pod in drained.of(Fate.MOVES, Fate.PENDING, Fate.LOST, Fate.RETURNS)}

    assert evicted_by_drain(objects) == moved
