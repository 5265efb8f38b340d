"""Whatever happens: no pod is lost or bound twice, none is in two places, no node gets more than it has."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from bench.hour import hour_events, hour_nodes
from cluster.facts import facts
from loop.driving import with_plugins
from pod_kinds import pod_of
from podium.cluster import Cluster
from podium.framework import WAIT, CycleState, PermitPlugin, PreBindPlugin, Status
from podium.framework.status import SUCCESS
from podium.loop.cycle import SchedulerLoop
from podium.loop.events import Bind, Event, EventType, Evict, Instruction, Nominate
from podium.loop.queued_pod import WAITING_PODS
from podium.loop.snapshot import LoopSnapshot, resume, take_snapshot
from podium.model import Node, Object, Pod
from podium.model.pod import PodSchedulingGate
from podium.timeline import Timeline, resume_timeline, save_timeline
from timeline.test_timeline import at, budget, node, pod
from world import NODES, OBJECTS, UNBOUND_KINDS, Shape, shapes

NAMES = tuple(f"p{number}" for number in range(12))
KINDS = (*UNBOUND_KINDS, *("small", "large") * 8)


class Doorman(PermitPlugin, PreBindPlugin):
    """Lets pods wait whose names end in 1, lets them in with those that end in 2, and has no luck with 3."""

    name = "Doorman"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        if pod.name.endswith("2"):
            for assumed in state[WAITING_PODS]:
                state[WAITING_PODS].allow(assumed.pod.key, self.name)
        return (WAIT if pod.name.endswith("1") else SUCCESS), 20.0

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return Status.error("no luck") if pod.name.endswith("3") and node_name == "n1" else SUCCESS


OPTIONS: dict[str, Any] = with_plugins(Doorman)


class Life(RuleBasedStateMachine):
    """A loop among events, next to the plain objects it should know of. What it wants is done some time later."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = SchedulerLoop(Cluster(), **OPTIONS)
        self.now = 0.0
        self.nodes: dict[str, Node] = {}
        self.seen: set[str] = set()
        self.pods: dict[str, Pod] = {}
        self.objects: dict[tuple[type, str], Object] = {}
        self.to_do: list[Instruction] = []
        self.overcommitted: set[str] = set()
        """Nodes that somebody else may have put too much on, or that shrank."""

    def tell(self, type_: EventType, item: Object) -> None:
        self.loop.handle(Event(type_, item), self.now)

    # -- things happen -----------------------------------------------------------------------------------------------

    @initialize(given=st.lists(shapes, min_size=1, max_size=3))
    def begin(self, given: list[Shape]) -> None:
        for name, shape in zip(NODES, [Shape(), *given], strict=False):
            self.nodes[name] = shape.node(name)
            self.seen.add(name)
            self.tell(EventType.ADD, self.nodes[name])

    @rule(name=st.sampled_from(NODES), shape=shapes)
    def set_node(self, name: str, shape: Any) -> None:
        if name in self.seen or any(pod.spec.node_name == name for pod in self.pods.values()):
            self.overcommitted.add(name)
        self.seen.add(name)
        self.nodes[name] = shape.node(name)
        self.tell(EventType.UPDATE, self.nodes[name])

    @rule(name=st.sampled_from(NODES))
    def lose_node(self, name: str) -> None:
        if name in self.nodes:
            self.tell(EventType.DELETE, self.nodes.pop(name))

    @rule(kind=st.sampled_from(KINDS), priority=st.sampled_from((0, 5, 9)), number=st.integers(1, 4))
    def new_pods(self, kind: str, priority: int, number: int) -> None:
        free = [name for name in NAMES if not any(pod.name == name for pod in self.pods.values())]
        for name in free[:number]:
            self.new_pod(name, kind, priority, 1, 1)
        self.work(number)

    @rule(
        name=st.sampled_from(NAMES),
        kind=st.sampled_from(KINDS),
        priority=st.sampled_from((0, 0, 5, 9)),
        gated=st.integers(0, 9),
        mine=st.integers(0, 9),
    )
    def new_pod(self, name: str, kind: str, priority: int, gated: int, mine: int) -> None:
        made = pod_of(kind, name, scheduler="default-scheduler" if mine else "other")
        gates = [] if gated else [PodSchedulingGate(name="g")]
        made = replace(made, spec=replace(made.spec, priority=priority, scheduling_gates=gates))
        if made.key not in self.pods:
            self.pods[made.key] = made
            self.tell(EventType.ADD, made)

    @rule(name=st.sampled_from(NAMES), kind=st.sampled_from(KINDS), node_name=st.sampled_from(NODES))
    def somebody_binds(self, name: str, kind: str, node_name: str) -> None:
        made = pod_of(kind, name, node=node_name, scheduler="other")
        if made.key not in self.pods:
            self.pods[made.key] = made
            self.overcommitted.add(node_name)
            self.tell(EventType.ADD, made)

    @rule(data=st.data())
    def change_pod(self, data: st.DataObject) -> None:
        if self.pods:
            key = data.draw(st.sampled_from(sorted(self.pods)))
            current = self.pods[key]
            labels = data.draw(st.sampled_from(({"color": "green"}, {"color": "blue"}, {})))
            metadata = replace(current.metadata, labels=labels)
            self.pods[key] = replace(current, metadata=metadata, spec=replace(current.spec, scheduling_gates=[]))
            self.tell(EventType.UPDATE, self.pods[key])

    @rule(data=st.data(), finished=st.booleans())
    def lose_pod(self, data: st.DataObject, finished: bool) -> None:
        if self.pods:
            gone = self.pods.pop(data.draw(st.sampled_from(sorted(self.pods))))
            self.to_do = [instruction for instruction in self.to_do if instruction.pod.key != gone.key]
            done = replace(gone, status=replace(gone.status, phase="Succeeded"))
            self.tell(EventType.UPDATE if finished else EventType.DELETE, done if finished else gone)

    @rule(position=st.integers(0, len(OBJECTS) - 1), gone=st.booleans())
    def put(self, position: int, gone: bool) -> None:
        item = OBJECTS[position]
        if gone:
            self.objects.pop((type(item), item.key), None)
        else:
            self.objects[type(item), item.key] = item
        self.tell(EventType.DELETE if gone else EventType.UPDATE, item)

    @rule(seconds=st.sampled_from((0.1, 1.0, 3.0, 30.0, 400.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    # -- the loop works ----------------------------------------------------------------------------------------------

    @rule(turns=st.integers(1, 4))
    def work(self, turns: int) -> None:
        for _ in range(turns):
            if self.loop.has_work(self.now):
                for instruction in self.loop.run_one(self.now):
                    self.receive(instruction)

    def receive(self, instruction: Instruction) -> None:
        key = instruction.pod.key
        if isinstance(instruction, Bind):
            assert not self.pods[key].spec.node_name, "bound twice"
            assert not any(isinstance(other, Bind) and other.pod.key == key for other in self.to_do), "bound twice"
            # While a pod waits at Permit its node may go, which the API server does not mind.
            assert instruction.node in self.nodes or key.endswith("1")
            self.to_do.append(instruction)
        elif isinstance(instruction, Evict | Nominate):
            self.to_do.append(instruction)

    @rule(number=st.integers(1, 4), fails=st.integers(0, 6))
    def carry_out(self, number: int, fails: int) -> None:
        """Do the oldest things that are to be done; the API server may refuse to bind."""
        for _ in range(number):
            if self.to_do:
                self.carry_out_one(self.to_do.pop(0), fails)

    def carry_out_one(self, instruction: Instruction, fails: int) -> None:
        key = instruction.pod.key
        current = self.pods.get(key)
        if current is None:
            return
        if isinstance(instruction, Bind):
            if fails:
                self.pods[key] = replace(current, spec=replace(current.spec, node_name=instruction.node))
                self.tell(EventType.UPDATE, self.pods[key])
            else:
                for after in self.loop.bind_failed(key, Status.error("conflict"), self.now):
                    self.receive(after)
        elif isinstance(instruction, Evict):
            self.to_do = [other for other in self.to_do if other.pod.key != key]
            self.tell(EventType.DELETE, self.pods.pop(key))
        elif isinstance(instruction, Nominate) and not current.spec.node_name:
            status = replace(current.status, nominated_node_name=instruction.node)
            self.pods[key] = replace(current, status=status)
            self.tell(EventType.UPDATE, self.pods[key])

    @rule()
    def stop_and_go_on(self) -> None:
        if not self.loop.assumed and not len(self.loop.waiting):
            data = msgspec.json.encode(take_snapshot(self.loop))
            self.loop = resume(msgspec.json.decode(data, type=LoopSnapshot), **OPTIONS)

    # -- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def no_pod_is_lost_or_in_two_places(self) -> None:
        loop, queue = self.loop, self.loop.queue
        assert loop.pods == self.pods
        places: dict[str, list[str]] = {key: [] for key in self.pods}
        for name, keys in (
            ("active", (queued.pod.key for queued in queue.active)),
            ("backoff", (queued.pod.key for queued in queue.backoff)),
            ("unschedulable", (queued.pod.key for queued in queue.unschedulable)),
            ("assumed", iter(loop.assumed)),
            ("waiting", (assumed.pod.key for assumed in loop.waiting)),
        ):
            for key in keys:
                places[key].append(name)
        for key, found in places.items():
            current = self.pods[key]
            if current.spec.node_name or not loop.is_responsible(current):
                assert found == [], key
            elif not current.terminating:
                assert len(found) == 1, (key, found)
        assert set(queue.in_flight) == {assumed.pod.key for assumed in loop.waiting}

    @invariant()
    def no_node_gets_more_than_it_has(self) -> None:
        columns = self.loop.cluster.columns
        for name, row in self.loop.cluster.rows.items():
            if name not in self.overcommitted:
                requested, allocatable = columns.requested[:, row], columns.allocatable[:, row]
                assert all(requested <= allocatable), name

    def teardown(self) -> None:
        """The cluster that events led to is the one that the objects give from scratch."""
        assumed = {key: replace_node(one.pod, one.node) for key, (_, one) in self.loop.assumed.items()}
        waiting = {one.pod.key: replace_node(one.pod, one.node) for one in self.loop.waiting}
        pods = {**self.pods, **waiting, **assumed}
        rebuilt = Cluster.from_objects([*self.objects.values(), *self.nodes.values(), *pods.values()])
        assert facts(self.loop.cluster) == facts(rebuilt)


def replace_node(pod: Pod, node_name: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node_name))


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=40)


# -- simulations -----------------------------------------------------------------------------------------------------

_moments = st.floats(0, 300, allow_nan=False, width=32)
_owners = st.sampled_from(("", "ReplicaSet/web", "StatefulSet/db", "Job/sum"))
_node_names = st.sampled_from(("a", "b", "c"))
_arrivals = st.builds(
    lambda time, number, owner, priority, cpu, lifetime: at(
        time,
        "add",
        pod(f"{(owner or 'x/bare').split('/')[1]}-{number}", owner=owner, priority=priority, cpu=cpu),
        **lifetime,
    ),
    _moments,
    st.integers(0, 30),
    _owners,
    st.sampled_from((0, 5)),
    st.sampled_from(("500m", "1", "2")),
    st.sampled_from(({}, {"lifetime": 40.5}, {"lifetime": 0})),
)
_changes = st.builds(
    lambda time, verb, name, cpu: at(time, verb, node(name, cpu=cpu)),
    _moments,
    st.sampled_from(("add", "update", "delete", "fail", "cordon", "uncordon", "drain")),
    _node_names,
    st.sampled_from(("1", "4")),
)
_stories = st.lists(st.one_of(_arrivals, _arrivals, _changes), min_size=1, max_size=40)


@settings(max_examples=40)
@given(_stories, st.floats(0, 400), st.integers(0, 3))
def test_every_pod_of_a_simulation_is_accounted_for(story: list[dict[str, Any]], stop: float, seed: int) -> None:
    nodes = [at(0, "add", node(name, cpu="3")) for name in ("a", "b", "c")]
    gone = [at(0, "delete", node(name)) for name in ("b", "c")]
    events = [*nodes, *gone, at(0, "add", budget("web", "web", minAvailable=1)), *story]
    timeline = Timeline((), events, seed=seed)
    first = timeline.run(stop)
    rest = resume_timeline(save_timeline(timeline), events).run()
    whole = timeline.run()
    assert first.log_lines() + rest.log_lines() == whole.log_lines()
    assert whole.log_lines() == Timeline((), events, seed=seed).run().log_lines()
    there = [life.pod for life in whole.lives if life.ended is None]
    assert sorted(there) == sorted(timeline.loop.pods)
    for life in whole.lives:
        assert life.bound is None or life.arrived <= life.bound <= (life.ended if life.ended is not None else whole.end)
        key_is_waiting = life.bound is None and life.ended is None
        assert not key_is_waiting or timeline.loop.queue.get(life.pod) is not None
    binds = [(record["pod"], record["time"]) for record in whole.log if record["event"] == "bind"]
    assert len(binds) == sum(life.attempts > 0 for life in whole.lives)


@pytest.mark.parametrize("seed", range(3))
def test_an_hour_of_a_small_cluster_leaves_nothing_behind(seed: int) -> None:
    timeline = Timeline(hour_nodes(10), hour_events(seed, nodes=10, pods=300, failing=0.3, seconds=1200), seed=seed)
    result = timeline.run()
    assert result.unplaced == ()
    assert timeline.loop.pods == {}
    assert not timeline.loop.cluster.columns.requested.any()
