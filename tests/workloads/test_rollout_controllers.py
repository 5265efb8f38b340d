"""What the controllers of workloads do next while they roll out a change, pod by pod, with pods that are not ready."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from answers.test_rollout import Fields, daemon_set, numbered, owned, stateful_set
from cli.running import node
from podium.manifests import Objects, load
from podium.model import Object, Pod
from podium.workloads.expansion import Expansion
from podium.workloads.rollout_controllers import Controller, DaemonSetController, StatefulSetController
from podium.workloads.scaling import is_ready


class Stage:
    """A cluster that only remembers: pods are ready as they are, and stay on their way out until `settle`."""

    def __init__(self, objects: Objects, unready: Iterable[str]) -> None:
        self.expansion, self.now = Expansion(objects), 0.0
        self._ready = {pod.name for pod in objects.of(Pod) if is_ready(pod)} - set(unready)
        self._leaving: set[str] = set()

    def create(self, made: Iterable[Object]) -> list[Pod]:
        return [item for item in made if isinstance(item, Pod)]

    def delete(self, pod: Pod) -> None:
        self._ready.discard(pod.name)
        self._leaving.add(pod.key)

    def is_ready(self, pod: Pod) -> bool:
        return pod.name in self._ready

    def is_leaving(self, key: str) -> bool:
        return key in self._leaving

    def seen(self, pod: Pod) -> Pod:
        return replace(pod, status=replace(pod.status, phase="Running"))

    def settle(self, ready: Iterable[Pod]) -> None:
        """Let deleted pods be gone and others become ready."""
        self._leaving.clear()
        self._ready.update(pod.name for pod in ready)


def synced(controller: Controller) -> tuple[str, str]:
    """Where it deletes pods and where it makes some, of those of DaemonSets by node and of others by ordinal."""
    controller.deleted, controller.created = [], []
    controller.sync()
    return " ".join(map(_place, controller.deleted)), " ".join(map(_place, controller.created))


def _place(pod: Pod) -> str:
    affinity = pod.spec.affinity
    if pod.metadata.controller is not None and pod.metadata.controller.kind == "StatefulSet":
        return pod.name.removeprefix("db-")
    if pod.spec.node_name or affinity is None or affinity.node_affinity is None:
        return pod.spec.node_name
    assert affinity.node_affinity.required is not None
    (term,) = affinity.node_affinity.required.node_selector_terms
    return term.match_fields[0].values[0]


# -- DaemonSets ------------------------------------------------------------------------------------------------------

CLOSED = [{"key": "closed", "effect": "NoSchedule"}]


def daemons(unready: str = "", closed: str = "", **strategy: Any) -> tuple[DaemonSetController, Stage]:
    """A DaemonSet with pods `agent-1x` to `agent-3x` on nodes 1 to 3, whose image is to be changed."""
    pods = [owned("DaemonSet", "agent", f"agent-{on}x", on) for on in "123"]
    nodes = [node(name, **({"taints": CLOSED} if name in closed else {})) for name in "123"]
    before = load([*nodes, daemon_set(**strategy), *pods])
    (applied,) = load([*nodes, daemon_set(**strategy), *pods], daemon_set(image="j", **strategy)).applied
    stage = Stage(before, [f"agent-{on}x" for on in unready])
    return DaemonSetController(applied, stage), stage


@pytest.mark.parametrize(
    ("unready", "closed", "strategy", "deleted", "created"),
    [
        ("", "", {"maxUnavailable": 1}, "1", ""),
        ("", "", {"maxUnavailable": 2}, "1 2", ""),
        ("2", "", {"maxUnavailable": 1}, "2", ""),
        ("2", "", {"maxUnavailable": 2}, "2 1", ""),
        ("23", "", {"maxUnavailable": 1}, "2 3", ""),
        ("", "", {"maxUnavailable": 0, "maxSurge": 1}, "", "1"),
        ("2", "", {"maxUnavailable": 0, "maxSurge": 1}, "", "2 1"),
        ("", "3", {"maxUnavailable": 0, "maxSurge": 1}, "3", "1"),
        ("1", "3", {"maxUnavailable": 0, "maxSurge": 1}, "", "1 2"),
        ("3", "3", {"maxUnavailable": 0, "maxSurge": 1}, "3", "1"),
    ],
    ids=[
        "one may be missing",
        "two may be missing",
        "one that is not ready goes first",
        "and counts as missing",
        "all that are not ready go",
        "one may be there twice",
        "one that is not ready does not count",
        "a node that it is not meant for is left",
        "but not while others are missing",
        "or at once if the pod there is not ready",
    ],
)
def test_what_a_daemon_set_does_first(unready: str, closed: str, strategy: Fields, deleted: str, created: str) -> None:
    controller, _ = daemons(unready, closed, **strategy)
    assert synced(controller) == (deleted, created)


def test_a_daemon_set_goes_on_to_the_next_node_once_a_pod_is_ready() -> None:
    controller, stage = daemons(maxUnavailable=1)
    assert synced(controller) == ("1", "")
    stage.settle([])
    assert synced(controller) == ("", "1")
    assert synced(controller) == ("", "")
    stage.settle(pod for pod, _ in controller.pods())
    assert synced(controller) == ("2", "")


def test_a_daemon_set_that_surges_deletes_the_old_pod_once_the_new_one_is_ready() -> None:
    controller, stage = daemons(maxUnavailable=0, maxSurge=1)
    assert synced(controller) == ("", "1")
    assert synced(controller) == ("", "")
    stage.settle(pod for pod, is_new in controller.pods() if is_new)
    assert synced(controller) == ("1", "2")


# -- StatefulSets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "unready", "deleted"),
    [
        ("OrderedReady", "", "2"),
        ("OrderedReady", "2", "2"),
        ("OrderedReady", "1", "2"),
        ("OrderedReady", "12", ""),
        ("OrderedReady", "0", ""),
        ("Parallel", "12", "2 1"),
    ],
    ids=[
        "from the end",
        "though it is not ready",
        "though one below is not ready",
        "not if neither is",
        "not while one that stays is not ready",
        "all at once",
    ],
)
def test_how_a_stateful_set_shrinks(policy: str, unready: str, deleted: str) -> None:
    cluster = [node("n1"), stateful_set(3, policy=policy), *numbered("n1", "n1", "n1")]
    (applied,) = load(cluster, stateful_set(1, policy=policy)).applied
    stage = Stage(load(cluster), [f"db-{number}" for number in unready])
    assert synced(StatefulSetController(applied, stage, several_at_once=False)) == (deleted, "")
