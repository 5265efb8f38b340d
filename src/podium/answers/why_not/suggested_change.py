"""Single changes: what they say, how large they are, and what they do to a situation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replace_data
from typing import Any

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration, PluginRef
from podium.engine import Decision, Scheduler
from podium.engine.release import CURRENT, AnyRelease
from podium.framework import Registry
from podium.model import ContainerImage, Node, Pod, Taint, Toleration
from podium.plugins.node_unschedulable import CORDONED
from podium.wording import joined


class Situation:
    """A pod without a node, a cluster of its own, and a configuration; every change to them can be undone."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        config: KubeSchedulerConfiguration,
        registry: Registry,
        release: AnyRelease = CURRENT,
    ) -> None:
        self.cluster = cluster.fork()
        self.cluster.remove(pod)
        self.pod, self.config, self.registry, self.release = pod, config, registry, release
        self._schedulers: list[tuple[KubeSchedulerConfiguration, Scheduler]] = []
        self._undo: list[Callable[[], object]] = []
        self.decisions = 0
        """How many were made."""

    def decide(self) -> Decision:
        """Where the pod goes as things are."""
        self.decisions += 1
        return self._scheduler().decide(self.pod)

    def _scheduler(self) -> Scheduler:
        """A scheduler of the configuration; the first one is kept, the others serve a change of configuration."""
        for config, scheduler in self._schedulers:
            if config is self.config:
                return scheduler
        made = Scheduler(self.cluster, self.config, registry=self.registry, release=self.release, tie_break="first")
        for _, scheduler in self._schedulers[1:]:
            scheduler.close()
        self._schedulers = [*self._schedulers[:1], (self.config, made)]
        return made

    def args_of(self, plugin: str) -> object:
        """The arguments of a plugin in the pod's profile; None where it has none."""
        name = self.pod.spec.scheduler_name
        return next((each.args.get(plugin) for each in self.config.profiles if each.scheduler_name == name), None)

    def close(self) -> None:
        for _, scheduler in self._schedulers:
            scheduler.close()

    @contextmanager
    def trial_workers(self, changes: Iterable[Change]) -> Iterator[Situation]:
        """With these changes, for the length of the block."""
        before = len(self._undo)
        try:
            for change in changes:
                change.apply(self)
            yield self
        finally:
            while len(self._undo) > before:
                self._undo.pop()()

    # -- what changes do -------------------------------------------------------------------------------------------

    def edit_pod(self, edit: Callable[[Pod], Pod]) -> None:
        """Change the pod that is to be decided."""
        before = self.pod
        self._undo.append(lambda: setattr(self, "pod", before))
        self.pod = edit(before)

    def edit_config(self, edit: Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration]) -> None:
        before = self.config
        self._undo.append(lambda: setattr(self, "config", before))
        self.config = edit(before)

    def edit_node(self, name: str, edit: Callable[[Node], Node]) -> None:
        before = self.cluster.node(name)
        self._undo.append(lambda: self.cluster.update(before))
        self.cluster.update(edit(before))

    def edit_running(self, key: str, edit: Callable[[Pod], Pod]) -> None:
        """Change a pod that is on a node."""
        found = self.cluster.find_pod(key)
        if found is not None:
            before = found[0]
            self._undo.append(lambda: self.cluster.update(before))
            self.cluster.update(edit(before))

    def evict(self, key: str) -> None:
        found = self.cluster.find_pod(key)
        if found is not None:
            before = found[0]
            self._undo.append(lambda: self.cluster.add(before))
            self.cluster.remove(before)


EACH = 10
"""What every change costs: two small ones are more than a large one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: a sentence that says what to do, and the doing."""

    kind: str
    text: str
    on: tuple[str, ...]
    """What is changed: `node/name`, `pod/namespace/name` or `profile/name`."""
    size: int
    """How much of a change it is, to put smaller ones first."""
    apply: Callable[[Situation], None] = field(compare=False, repr=False)

    @property
    def cost(self) -> int:
        return EACH + self.size

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "on": list(self.on), "text": self.text}


# -- to a node -----------------------------------------------------------------------------------------------------


def uncordon(node: str) -> Change:
    def edit(before: Node) -> Node:
        taints = [taint for taint in before.spec.taints if taint.key != CORDONED.key]
        return replace(before, spec=replace(before.spec, unschedulable=False, taints=taints))

    return Change("uncordon", f"uncordon {node}", (f"node/{node}",), 0, lambda to: to.edit_node(node, edit))


def remove_taint(node: str, taint: Taint) -> Change:
    def edit(before: Node) -> Node:
        return replace(before, spec=replace(before.spec, taints=[each for each in before.spec.taints if each != taint]))

    text = f"remove the taint {taint_text(taint)} from {node}"
    return Change("remove-taint", text, (f"node/{node}",), 1, lambda to: to.edit_node(node, edit))


def label_node(node: str, labels: Mapping[str, str | None]) -> Change:
    """Give a node labels, or take them away where the value is None."""

    def edit(before: Node) -> Node:
        merged = {**before.metadata.labels, **labels}
        kept = {key: value for key, value in merged.items() if value is not None}
        return replace(before, metadata=replace(before.metadata, labels=kept))

    given = [f"{key}={value}" for key, value in labels.items() if value is not None]
    taken = [key for key, value in labels.items() if value is None]
    parts = [
        *([f"label {node} {joined(given)}"] if given else []),
        *([f"remove the label {joined(taken)} from {node}"] if taken else []),
    ]
    return Change("label-node", joined(parts), (f"node/{node}",), 1 + len(labels), lambda to: to.edit_node(node, edit))


def pull_image(node: str, image: str, size: int) -> Change:
    def edit(before: Node) -> Node:
        images = [*before.status.images, ContainerImage(names=[image], size_bytes=size)]
        return replace(before, status=replace(before.status, images=images))

    return Change("pull-image", f"pull {image} on {node}", (f"node/{node}",), 2, lambda to: to.edit_node(node, edit))


def cordon(nodes: Sequence[str]) -> Change:
    def edit(before: Node) -> Node:
        return replace(before, spec=replace(before.spec, unschedulable=True))

    def apply(to: Situation) -> None:
        for node in nodes:
            to.edit_node(node, edit)

    return Change("cordon", f"cordon {joined(nodes)}", tuple(f"node/{node}" for node in nodes), 5 * len(nodes), apply)


# -- to pods that run ----------------------------------------------------------------------------------------------


def evict(pods: Sequence[Pod]) -> Change:
    def apply(to: Situation) -> None:
        for pod in pods:
            to.evict(pod.key)

    named = [f"{pod.key} (priority {pod.priority})" for pod in pods]
    return Change("evict", f"evict {joined(named)}", tuple(f"pod/{pod.key}" for pod in pods), 4 * len(pods), apply)


def edit_running(kind: str, text: str, pod: Pod, edit: Callable[[Pod], Pod]) -> Change:
    return Change(kind, text, (f"pod/{pod.key}",), 4, lambda to: to.edit_running(pod.key, edit))


# -- to the pod itself ---------------------------------------------------------------------------------------------


def edit_pod(kind: str, text: str, pod: Pod, size: int, edit: Callable[[Pod], Pod]) -> Change:
    """A change to the pod that is to be decided."""
    return Change(kind, text, (f"pod/{pod.key}",), size, lambda to: to.edit_pod(edit))


def tolerate(pod: Pod, taint: Taint) -> Change:
    operator = "Equal" if taint.value else "Exists"
    toleration = Toleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect)

    def edit(before: Pod) -> Pod:
        return replace(before, spec=replace(before.spec, tolerations=[*before.spec.tolerations, toleration]))

    return edit_pod("tolerate", f"let the pod tolerate the taint {taint_text(taint)}", pod, 2, edit)


def select_node(pod: Pod, key: str, value: str) -> Change:
    def edit(before: Pod) -> Pod:
        selector = {**(before.spec.node_selector or {}), key: value}
        return replace(before, spec=replace(before.spec, node_selector=selector))

    return edit_pod("pin", f"pin the pod: nodeSelector {key}={value}", pod, 8, edit)


def remove_gates(pod: Pod) -> Change:
    names = joined([gate.name for gate in pod.spec.scheduling_gates])

    def edit(before: Pod) -> Pod:
        return replace(before, spec=replace(before.spec, scheduling_gates=[]))

    return edit_pod("remove-gate", f"remove the scheduling gate {names} from the pod", pod, 1, edit)


def taint_text(taint: Taint) -> str:
    """`key=value:Effect`, the way kubectl takes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


# -- to the configuration ------------------------------------------------------------------------------------------


def set_weight(profile: str, plugin: str, before: int, after: int) -> Change:
    """Give a plugin another weight at Score; 0 takes it out there."""

    def edit(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        def weigh(refs: Sequence[PluginRef]) -> tuple[PluginRef, ...]:
            weighed = [PluginRef(ref.name, after) if ref.name == plugin else ref for ref in refs]
            return tuple(ref for ref in weighed if ref.name != plugin or after)

        profiles = [
            replace_data(each, points={**each.points, "score": weigh(each.points["score"])})
            if each.scheduler_name == profile
            else each
            for each in config.profiles
        ]
        return replace_data(config, profiles=tuple(profiles))

    verb = "raise" if after > before else "lower"
    text = f"{verb} {plugin}'s weight from {before} to {after}" if after else f"disable {plugin} at score"
    size = 3 + min(abs(after - before).bit_length(), 5) + (0 if after else 3)
    return Change("set-weight", text, (f"profile/{profile}",), size, lambda to: to.edit_config(edit))


def set_args(profile: str, plugin: str, text: str, args: object) -> Change:
    """Give a plugin other arguments."""

    def edit(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        profiles = [
            replace_data(each, args={**each.args, plugin: args}) if each.scheduler_name == profile else each
            for each in config.profiles
        ]
        return replace_data(config, profiles=tuple(profiles))

    return Change("set-args", text, (f"profile/{profile}",), 6, lambda to: to.edit_config(edit))
