"""Device pods on a cluster that went through events are decided exactly as on one built from what is left of it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_node, make_pod
from device_objects import DRIVER, exactly, made, make_claim, make_class, make_slice, using
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import DeviceTaintRule, Object, Pod, ResourceClaim, ResourceSlice
from podium.plugins.dynamic_resources._device_search import DeviceSearch
from podium.plugins.dynamic_resources._search_results import SearchResults
from podium.plugins.dynamic_resources.devices_in_use import PendingAllocation

EVENTS = 14
SEEDS = range(40)
MODELS = ("a100", "h100")


def random_device(random: Random, number: int) -> dict[str, Any]:
    device: dict[str, Any] = {
        "name": f"gpu-{number}",
        "attributes": {"model": {"string": random.choice(MODELS)}, "numa": {"int": number % 2}},
        "capacity": {"memory": {"value": random.choice(("40Gi", "80Gi"))}},
    }
    if random.random() < 0.2:
        device["allowMultipleAllocations"] = True
    if random.random() < 0.1:
        device["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    return device


def random_slice(random: Random, name: str, node: str, generation: int = 1) -> Object:
    devices = [random_device(random, number) for number in range(random.randint(1, 4))]
    where: dict[str, Any] = {"node": node}
    if random.random() < 0.15:
        where = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}
    elif random.random() < 0.1:
        where = {"allNodes": True}
    pool = {"name": name, "generation": generation, "resourceSliceCount": 1}
    return _slice(name, devices, where, pool)


def _slice(name: str, devices: list[dict[str, Any]], where: dict[str, Any], pool: dict[str, Any]) -> Object:
    node = where.get("node", "")
    others = {key: value for key, value in where.items() if key != "node"}
    return made(
        "ResourceSlice",
        name,
        {"driver": DRIVER, "pool": pool, "devices": devices, **({"nodeName": node} if node else {}), **others},
    )


def random_request(random: Random, name: str) -> dict[str, Any]:
    where = random.choice(("", f'device.attributes["{DRIVER}"].model == "{random.choice(MODELS)}"'))
    if random.random() < 0.25:
        first = {"name": "best", "deviceClassName": "gpu", "count": random.randint(1, 3)}
        return {"name": name, "firstAvailable": [first, {"name": "other", "deviceClassName": "gpu"}]}
    fields: dict[str, Any] = {}
    if random.random() < 0.15:
        fields["allocationMode"] = "All"
    if random.random() < 0.2:
        fields["capacity"] = {"requests": {"memory": "10Gi"}}
    if random.random() < 0.1:
        fields["adminAccess"] = True
    return exactly(name, count=random.randint(1, 2), where=where, **fields)


def random_claim(random: Random, name: str) -> Object:
    requests = [random_request(random, f"r{number}") for number in range(random.randint(1, 2))]
    constraints = random.choice(([], [{"matchAttribute": f"{DRIVER}/numa"}], [{"distinctAttribute": f"{DRIVER}/numa"}]))
    return make_claim(name, *requests, constraints=constraints)


class World:
    """A cluster with devices, a scheduler that has been there from the start, and what happens to them."""

    def __init__(self, seed: int, release: str) -> None:
        self.random, self.release = Random(seed), release
        objects: list[Object] = [make_class("gpu"), make_class("fast", f'device.driver == "{DRIVER}"')]
        for number in range(4):
            labels = {"disk": "ssd"} if self.random.random() < 0.5 else {}
            objects.append(make_node(f"n{number}", labels=labels))
            objects.append(random_slice(self.random, f"n{number}", f"n{number}"))
        self.cluster = Cluster.from_objects(objects)
        self.scheduler = self.scheduler_of(self.cluster)
        self.made = 0

    def scheduler_of(self, cluster: Cluster) -> Scheduler:
        return Scheduler(cluster, release=self.release, tie_break="first")

    def rebuilt(self) -> Cluster:
        cluster = self.cluster
        kept = [item for kind in cluster.store._kinds for item in cluster.store.of(kind)]
        bound = [replace(pod, spec=replace(pod.spec, node_name=node)) for pod, node in cluster.placed()]
        return Cluster.from_objects([*(cluster.node(name) for name in cluster.rows), *kept, *bound])

    def new_pod(self) -> Pod:
        self.made += 1
        claims = [f"claim-{self.made}-{number}" for number in range(self.random.randint(1, 2))]
        for name in claims:
            self.cluster.add(random_claim(self.random, name))
        return make_pod(f"pod-{self.made}", resource_claims=using(*claims))

    def happen(self) -> None:
        random, cluster = self.random, self.cluster
        match random.randrange(9):
            case 0 | 1 | 2:
                self.scheduler.place(self.new_pod())
            case 3:
                pending = list(cluster.store.of(PendingAllocation))
                if pending:
                    one = random.choice(pending)
                    cluster.remove(one)
                    if random.random() < 0.5:
                        status = replace(one.claim.status, allocation=one.allocation)
                        cluster.update(replace(one.claim, status=status))
            case 4:
                allocated = [each for each in cluster.store.of(ResourceClaim) if each.status.allocation]
                if allocated:
                    cluster.remove(random.choice(allocated))
            case 5:
                name = random.choice([each.name for each in cluster.store.of(ResourceSlice)])
                cluster.update(random_slice(random, name, name, random.randint(1, 3)))
            case 6:
                name = random.choice(list(cluster.rows))
                cluster.update(make_node(name, labels=random.choice(({}, {"disk": "ssd"}))))
            case 7:
                name = f"n{random.randrange(6)}"
                if name in cluster.rows and len(cluster.rows) > 1:
                    cluster.remove(cluster.node(name))
                elif name not in cluster.rows:
                    cluster.add(make_node(name))
            case 8:
                selector = {"device": f"gpu-{random.randrange(3)}"}
                taint = {"key": "maintenance", "effect": random.choice(("NoSchedule", "None"))}
                cluster.update(made("DeviceTaintRule", "rule", {"deviceSelector": selector, "taint": taint}))


@pytest.mark.parametrize("release", ["v1.36", "v1.37"])
@pytest.mark.parametrize("seed", SEEDS)
def test_decisions_after_events_equal_decisions_from_scratch(seed: int, release: str) -> None:
    world = World(seed, release)
    asked = [world.new_pod() for _ in range(3)]
    for _ in range(EVENTS):
        world.happen()
        fresh = world.scheduler_of(world.rebuilt())
        for pod in asked:
            assert world.scheduler.decide(pod) == fresh.decide(pod)


def test_the_worlds_are_worth_asking_about() -> None:
    world = World(1, "v1.37")
    decisions = [world.scheduler.place(world.new_pod()) for _ in range(12)]

    assert any(decision.node for decision in decisions)
    assert any(not decision.node for decision in decisions)
    assert any("consumedCapacity" in str(decision.details) for decision in decisions)
    assert not list(world.cluster.store.of(DeviceTaintRule))


def test_rows_are_not_searched_again_unless_their_devices_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    search = SearchResults._search

    def counting(self: SearchResults, searches: DeviceSearch, row: int, node_name: str, *others: Any) -> None:
        searched.append(node_name)
        search(self, searches, row, node_name, *others)

    objects: list[Object] = [make_class()]
    for number in range(5):
        objects += [make_node(f"n{number}"), make_slice(f"n{number}", "gpu-0", "gpu-1", node=f"n{number}")]
    cluster = Cluster.from_objects([*objects, *(make_claim(f"c{number}") for number in range(3))])
    scheduler = Scheduler(cluster, tie_break="first")
    monkeypatch.setattr(SearchResults, "_search", counting)

    for number in range(3):
        scheduler.schedule(make_pod(f"p{number}", resource_claims=using(f"c{number}")))

    assert len(searched) == 5 + 1 + 1
