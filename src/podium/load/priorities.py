"""Pod priorities from PriorityClasses, as the Priority admission plugin sets them on creation."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from podium.objects import Object, ObjectMeta, Pod, PriorityClass

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"

BUILT_IN = {
    name: PriorityClass(metadata=ObjectMeta(name=name), value=value)
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
}
"""The classes every cluster has."""

_NO_CLASS = PriorityClass()


class Priorities:
    """Gives pods the priority of their class; remembers the classes it did not find."""

    def __init__(self, objects: Iterable[Object]) -> None:
        classes = [obj for obj in objects if type(obj) is PriorityClass]
        self.classes = BUILT_IN | {each.name: each for each in classes}
        # Several defaults are a race in the cluster; the API server takes the lowest.
        self.default = min((c for c in classes if c.global_default), key=lambda c: c.value, default=_NO_CLASS)
        self.missing: dict[str, None] = {}

    def resolve(self, pod: Pod) -> Pod:
        """The pod with a priority; one that has a priority already, as in a dump of a cluster, stays as it is."""
        spec = pod.spec
        if spec.priority is not None:
            return pod
        chosen = self._class_of(pod)
        policy = spec.preemption_policy or chosen.preemption_policy or PREEMPT_LOWER_PRIORITY
        name = spec.priority_class_name or chosen.name
        return replace(
            pod,
            spec=replace(spec, priority=chosen.value, preemption_policy=policy, priority_class_name=name),
        )

    def _class_of(self, pod: Pod) -> PriorityClass:
        name = pod.spec.priority_class_name
        if not name:
            return self.default
        found = self.classes.get(name)
        if found is None:
            self.missing.setdefault(name)
            return _NO_CLASS
        return found

    @property
    def warnings(self) -> list[str]:
        """One line per class that pods name and the input does not have."""
        return [
            f"PriorityClass {name} is not in the input: priority 0 assumed for the pods that name it"
            for name in self.missing
        ]
