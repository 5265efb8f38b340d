"""A loop driven by hand: what is told to it, and its instructions carried out at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.framework import Plugin, Registry
from podium.loop.cycle import SchedulerLoop
from podium.loop.events import (
    Bind,
    ChangeObject,
    Event,
    EventType,
    Evict,
    Instruction,
    Nominate,
    SetCondition,
    Unschedulable,
    Wait,
)
from podium.model import Object, Pod
from podium.model.pod_groups import with_condition
from podium.plugins import IN_TREE


def with_plugins(*plugins: type[Plugin]) -> dict[str, Any]:
    """Options for a scheduler with these plugins besides its own."""
    enabled = [{"name": plugin.name} for plugin in plugins]
    return {
        "registry": Registry((*IN_TREE.values(), *plugins)),
        "config": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
        },
    }


def nominated(pod: Pod, node: str) -> Pod:
    """The pod with a node it is nominated to, as the API server reports it."""
    return replace(pod, status=replace(pod.status, nominated_node_name=node))


class Driver:
    """Carries out what a loop says: pods are bound, evicted pods are gone at once, nominations are noted."""

    def __init__(self, objects: Iterable[Object] = (), *, now: float = 0.0, **options: Any) -> None:
        config = options.pop("config", None)
        cluster = Cluster.from_objects(objects)
        self.loop = SchedulerLoop(cluster, config, now=now, **{"tie_break": "first", **options})
        self.now = now
        self.instructions: list[Instruction] = []

    def add(self, *items: Object) -> Driver:
        return self._tell(EventType.ADD, *items)

    def update(self, *items: Object) -> Driver:
        return self._tell(EventType.UPDATE, *items)

    def delete(self, *items: Object) -> Driver:
        return self._tell(EventType.DELETE, *items)

    def _tell(self, type_: EventType, *items: Object) -> Driver:
        for item in items:
            self.loop.handle(Event(type_, item), self.now)
        return self

    def pod(self, key: str) -> Pod:
        """A pod as it is known now, by namespace/name or by its name in `default`."""
        return self.loop.pods[key if "/" in key else f"default/{key}"]

    def work(self, at: float | None = None) -> list[str]:
        """Let the loop do all there is to do, and say in words what it wanted."""
        self.now = self.now if at is None else at
        said = []
        while self.loop.has_work(self.now):
            for instruction in self.loop.run_one(self.now):
                self.instructions.append(instruction)
                said.append(in_words(instruction))
                self._carry_out(instruction)
        return said

    def _carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, Bind):
            pod = self.loop.pods[instruction.pod.key]
            self.update(replace(pod, spec=replace(pod.spec, node_name=instruction.node)))
        elif isinstance(instruction, Evict):
            self.delete(instruction.pod)
        elif isinstance(instruction, ChangeObject):
            self.delete(instruction.before) if instruction.after is None else self.update(instruction.after)
        elif isinstance(instruction, SetCondition):
            self.update(with_condition(instruction.group, instruction.condition))
        elif isinstance(instruction, Nominate):
            current = self.loop.pods[instruction.pod.key]
            self.update(nominated(current, instruction.node))


def in_words(instruction: Instruction) -> str:
    name = instruction.pod.name
    match instruction:
        case Bind():
            return f"bind {name} to {instruction.node}"
        case Evict():
            return f"evict {name} for {instruction.by.name}"
        case ChangeObject():
            return f"{'delete' if instruction.after is None else 'update'} {instruction.before.name} for {name}"
        case Nominate():
            return f"nominate {name} to {instruction.node or 'nothing'}"
        case Unschedulable():
            return f"{name} failed: {', '.join(instruction.plugins) or instruction.message}"
        case SetCondition():
            return f"{instruction.group.name} is {instruction.condition.reason}: {instruction.condition.message}"
        case Wait():
            return f"{name} waits on {instruction.node} until {instruction.until:g}"
