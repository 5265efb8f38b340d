"""Trials on one copy of the cluster, undone one after the other, give the same history as a copy for each of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaling.scaling import CLOSED, Manifest, arrival, group, happened, task
from builders import make_node, make_pod
from cli.running import config
from cluster.facts import facts
from device_objects import make_claim, make_class, make_slice, using
from podium import Timeline, load
from podium.autoscaling import Autoscaler, read_node_groups
from podium.autoscaling._cloud_provider import CloudProvider
from podium.autoscaling._group_nodes import Member
from podium.autoscaling._only_nodes import OnlyNodes
from podium.autoscaling.trial_cluster import TrialCluster
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.loop import SchedulerLoop
from podium.model import ResourceClaim
from podium.model.objects import HOSTNAME, ZONE
from podium.timeline import TimelineResult

APPS = 6
SPREAD = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def apart(app: str, key: str) -> Manifest:
    """Pods of one app are on different nodes, or in different zones."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


KINDS: dict[str, Callable[[str], Manifest]] = {
    "plain": lambda app: {},
    "on different nodes": lambda app: apart(app, HOSTNAME),
    "in different zones": lambda app: apart(app, ZONE),
    "spread": lambda app: {"topologySpreadConstraints": [SPREAD | {"labelSelector": {"matchLabels": {"app": app}}}]},
    "important": lambda app: {"priority": 100},
    "with a port": lambda app: {"hostNetwork": True},
    "with a claim": lambda app: {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]},
    "with a scratch disk": lambda app: {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]},
}


def groups(chance: random.Random, strategy: str) -> Manifest:
    """Groups of three sizes in two zones, one of them with devices, perhaps with images on their nodes."""
    images = [{"names": ["i"], "sizeBytes": 500_000_000}] if chance.random() < 0.3 else []
    found = []
    for zone, cpu in (("a", 2), ("b", 4), ("a", 8)):
        size = {"cpu": str(cpu), "memory": "16Gi", "pods": "110"}
        template = {"metadata": {"labels": {ZONE: zone}}, "status": {"allocatable": size, "images": images}}
        found.append(group(f"g{cpu}", template=template, maxSize=12, pricePerHour=cpu * 0.1 + 0.02))
    found[1]["resourceSlices"] = [{"driver": "gpu.example.com", "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}]
    quick = {"scaleDownUnneededTime": "60s", "scaleDownDelayAfterAdd": "30s", "maxDrainParallelism": 2}
    return {"strategy": strategy, "groups": found, **(quick if strategy != "karpenter" else {"budgets": []})}


def random_events(chance: random.Random, pods: int = 36) -> list[Manifest]:
    """Pods of several kinds that come within five minutes and run for some minutes."""
    kinds = [chance.choice([*KINDS]) for _ in range(APPS)]
    events = []
    for number in range(pods):
        app = chance.randrange(APPS)
        made = task(
            f"p{number:03}", chance.choice((1, 1, 2)), labels={"app": f"a{app}"}, **KINDS[kinds[app]](f"a{app}")
        )
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
        if kinds[app] == "with a port":
            made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
        if kinds[app] == "with a claim":
            made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        events.append(arrival(round(chance.uniform(0, 300), 1), made, round(chance.uniform(60, 500), 1)))
    return sorted(events, key=lambda event: float(event["time"]))


REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
THERE: list[Manifest] = [
    CLOSED,
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [REQUEST]}}},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "a0", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "a0"}}},
    },
]


def simulated(folder: Path, seed: int, strategy: str) -> TimelineResult:
    chance = random.Random(seed)
    file = folder / "groups.yaml"
    file.write_text(yaml.safe_dump(groups(chance, strategy)))
    settings = config(percentageOfNodesToScore=chance.choice((0, 0, 40)))
    timeline = Timeline(load(THERE), random_events(chance), settings)
    Autoscaler(timeline, read_node_groups(str(file)))
    return timeline.run(1200)


def try_plainly(patch: pytest.MonkeyPatch) -> None:
    """Make a copy of the cluster for each trial, try every removal, and look at every node again in every scan."""

    def attempt(self: TrialCluster, change: Callable[[TrialCluster], bool], *, keep: bool) -> TrialCluster | None:
        twin = self.copy()
        return twin if change(twin) else None

    members = CloudProvider.members

    def members_anew(self: CloudProvider) -> list[Member]:
        self._known, self._grouped = {}, (-1, [])
        return members(self)

    patch.setattr(TrialCluster, "attempt", attempt)
    patch.setattr(OnlyNodes, "keep", lambda self, node, pods: False)
    patch.setattr(CloudProvider, "members", members_anew)
    patch.setattr(CloudProvider, "_scheduler_on", lambda self, cluster: self._loop.scheduler_on(cluster))


@pytest.mark.parametrize("strategy", ["cluster-autoscaler", "karpenter"])
@pytest.mark.parametrize("seed", range(5))
def test_undone_trials_give_the_same_history(
    seed: int, strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = simulated(tmp_path, seed, strategy)
    with monkeypatch.context() as patch:
        try_plainly(patch)
        plain = simulated(tmp_path, seed, strategy)

    assert happened(fast, "scale-up")
    assert happened(fast, "scale-down")
    assert fast.log == plain.log
    assert fast == plain


def trial_of(*names: str) -> TrialCluster:
    """Nodes of two cpus with a pod of one cpu on each."""
    nodes = [make_node(name, cpu="2") for name in names]
    pods = [make_pod(f"on-{name}", node=name, requests={"cpu": "1"}) for name in names]
    return TrialCluster(Cluster.from_objects([*nodes, *pods]), Scheduler, lambda node: [])


def waiting(cpu: str) -> Any:
    return make_pod("waiting", requests={"cpu": cpu})


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("a pod is placed", lambda trial: trial.fits(waiting("1"))),
        ("a node comes, with a pod", lambda trial: [trial.add(make_node("new", cpu="4")), trial.fits(waiting("3"))]),
        ("a node goes", lambda trial: trial.remove(trial.cluster.node("b"))),
        (
            "a node comes in the place of another one, and goes",
            lambda trial: [
                trial.remove(trial.cluster.node("b")),
                trial.add(make_node("new", cpu="4")),
                trial.fits(waiting("3")),
                trial.remove(trial.cluster.node("new")),
            ],
        ),
    ],
)
@pytest.mark.parametrize("succeeds", [True, False])
def test_an_attempt_is_undone(name: str, steps: Callable[[TrialCluster], object], succeeds: bool) -> None:
    trial, untouched = trial_of("a", "b", "c"), trial_of("a", "b", "c")

    def change(tried: TrialCluster) -> bool:
        steps(tried)
        return succeeds

    assert (trial.attempt(change, keep=False) is not None) is succeeds
    assert facts(trial.cluster) == facts(untouched.cluster)
    assert trial.cluster.rows == untouched.cluster.rows
    assert trial.placed == {}


def test_a_claim_keeps_its_devices_when_an_attempt_is_undone() -> None:
    network = make_slice("network", "gpu-0", allNodes=True)
    user = make_pod("user", requests={"cpu": "1"}, resourceClaims=using("c"))
    cluster = Cluster.from_objects(
        [make_node("a", cpu="2"), make_node("b"), make_class(), network, make_claim("c"), user]
    )
    assert Scheduler(cluster, tie_break="first").schedule(user) is not None
    (claim,) = cluster.store.of(ResourceClaim)
    assert claim.status.allocation is not None
    trial = TrialCluster(cluster, Scheduler, lambda node: [])

    def change(tried: TrialCluster) -> bool:
        (name,) = (name for pod, name in tried.cluster.placed() if pod.name == "user")
        tried.remove(tried.cluster.node(name))
        return False

    assert trial.attempt(change, keep=False) is None
    assert list(trial.cluster.store.of(ResourceClaim)) == [claim]


def test_an_attempt_is_kept_if_it_succeeds() -> None:
    trial = trial_of("a", "b")

    assert trial.attempt(lambda tried: tried.fits(waiting("1")), keep=True) is trial
    assert trial.attempt(lambda tried: tried.fits(waiting("2")), keep=True) is None
    assert [pod.name for pods in trial.placed.values() for pod in pods] == ["waiting"]


def test_pods_that_fit_nowhere_else_keep_their_node() -> None:
    full = [make_pod(f"on-{name}", node=name, requests={"cpu": "2"}) for name in "ab"]
    small = make_pod("small", node="c", requests={"cpu": "1"})
    cluster = Cluster.from_objects([*(make_node(name, cpu="2") for name in "abc"), *full, small])
    only = OnlyNodes(SchedulerLoop(cluster))

    # A second pod of two cpus fits nowhere, one of one cpu on c alone.
    assert only.keep("a", [full[0]])
    assert only.keep("c", [small])
    assert not only.keep("a", [small])
    cluster.remove(full[1])
    assert not only.keep("a", [full[0]])
    assert not only.keep("c", [small])
    assert only.keep("b", [full[0]])
