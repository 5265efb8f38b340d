"""Decisions are explained as they were made, whatever happened since."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from builders import make_node, make_pod
from podium.cluster import Cluster
from podium.engine import Decision
from podium.framework import Status
from podium.live import decision_history
from podium.live.decision_history import Decided, DecisionHistory
from podium.loop import Bind, Event, EventType, SchedulerLoop, Unschedulable
from podium.model import Object, Pod


class Story:
    """A loop whose every decision is also made in full, just before."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        nodes = [make_node(f"n{number}", cpu=str(4 + number % 3)) for number in range(6)]
        self.loop = SchedulerLoop(Cluster.from_objects(nodes), tie_break="random", seed=seed)
        self.history = DecisionHistory(self.loop)
        self.decisions: dict[str, Decision] = {}
        self.now = 0.0

    def happens(self, kind: EventType, item: Object) -> None:
        event = Event(kind, item)
        self.history.happens(event)
        self.loop.handle(event, self.now)

    def pod_comes(self, number: int) -> None:
        self.happens(EventType.ADD, make_pod(f"p{number}", requests={"cpu": f"{self.draw.randrange(1, 25) * 100}m"}))

    def decides(self) -> None:
        while self.loop.has_work(self.now):
            before = {queued.key: self.loop.scheduler.decide(queued.pod) for queued in self.loop.queue}
            for each in self.loop.run_one(self.now):
                if isinstance(each, Bind):
                    self.history.decided(each.pod, Decided(self.now, each.attempts, each.node))
                    self.history.placed(self.loop.assumed[each.pod.key][1])
                elif isinstance(each, Unschedulable):
                    self.history.decided(each.pod, Decided(self.now, 1, message=each.message))
                else:
                    continue
                self.decisions[each.pod.key] = before[each.pod.key]

    def cluster_changes(self) -> None:
        """Nodes grow, come and go; pods are reported as bound, end, or turn out not to be bound."""
        kind = self.draw.randrange(5)
        if kind == 0:
            self.happens(EventType.UPDATE, make_node(f"n{self.draw.randrange(6)}", cpu=str(self.draw.randrange(4, 9))))
        elif kind == 1:
            self.happens(EventType.DELETE, make_node(f"n{self.draw.randrange(6)}"))
        elif self.loop.assumed:
            assumed = self.draw.choice(list(self.loop.assumed.values()))[1]
            if kind == 2:
                self.history.taken_back(assumed)
                self.loop.bind_failed(assumed.pod.key, Status.error("it failed"), self.now)
            else:
                bound = replace(assumed.pod, spec=replace(assumed.pod.spec, node_name=assumed.node))
                self.happens(EventType.UPDATE, bound)
        elif kind == 3 and self.loop.pods:
            self.happens(EventType.DELETE, self.draw.choice(list(self.loop.pods.values())))

    def then(self, key: str) -> Decision | None:
        found = self.history.scheduler_then(key)
        return None if found is None else found[0].decide(found[1])


@pytest.mark.parametrize("seed", range(4))
def test_decisions_are_as_they_were(seed: int) -> None:
    story = Story(seed)
    for number in range(40):
        story.pod_comes(number)
        story.decides()
        story.cluster_changes()
        story.now += 0.5
    assert len(story.decisions) >= 30
    for key, decision in story.decisions.items():
        then, last = story.then(key), story.history.last(key)
        assert then is not None
        assert last is not None
        assert (then.totals, dict(then.rejected)) == (decision.totals, dict(decision.rejected))
        assert (then.node or "") == last.node


def test_what_is_too_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_history, "MOST_UNDOABLE_CHANGES", 4)
    monkeypatch.setattr(decision_history, "MOST_REMEMBERED_DECISIONS", 3)
    story = Story(0)
    for number in range(4):
        story.pod_comes(number)
        story.decides()

    assert story.history.last("default/p0") is None
    assert story.then("default/p1") is None
    assert story.then("default/p3") is not None


def test_a_pod_that_is_gone_can_be_asked_for() -> None:
    story = Story(0)
    story.pod_comes(0)
    story.decides()
    story.happens(EventType.DELETE, story.loop.pods["default/p0"])

    then = story.then("default/p0")
    assert then is not None
    assert then.node == story.decisions["default/p0"].node or then.node in story.decisions["default/p0"].ties


def test_pods_with_the_same_name_are_told_apart() -> None:
    story = Story(0)
    story.pod_comes(0)
    story.decides()
    first = story.loop.pods["default/p0"]
    story.happens(EventType.DELETE, first)
    other: Pod = make_pod("p0", requests={"cpu": "30"})
    story.happens(EventType.ADD, other)
    story.decides()

    then = story.then("default/p0")
    assert then is not None
    assert then.node is None
