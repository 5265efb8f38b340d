"""What the controller of DaemonSets does next while it rolls out a change."""

from __future__ import annotations

from collections.abc import Iterator

from podium.answers.rollout_controllers import Controller, Stage, surge_and_unavailable
from podium.manifests.apply import Applied
from podium.manifests.replacement import ON_DELETE
from podium.manifests.workloads import (
    daemon_pod,
    should_continue,
    should_run,
    target_node,
    with_daemon_tolerations,
)
from podium.model import DaemonSet, Pod


class DaemonSetController(Controller):
    """Replaces the pods of nodes: maxUnavailable of them at a time or, with maxSurge, by new pods beside the old."""

    def __init__(self, applied: Applied, stage: Stage) -> None:
        super().__init__(applied, stage)
        assert isinstance(applied.after, DaemonSet)
        self._set = applied.after
        template = with_daemon_tolerations(self._set.spec.template)
        nodes = stage.expansion.nodes
        self._meant_for = {node.name: None for node in nodes if should_run(template, node)}
        self._may_stay = {node.name for node in nodes if should_continue(template, node)}
        self._old: dict[str, Pod] = {}
        self._new: dict[str, Pod] = {}
        for pod in stage.expansion.owned(self._set, Pod):
            node = target_node(pod)
            if node is not None and not pod.finished and not pod.terminating:
                (self._old if applied.changes_template else self._new)[node] = pod
        self._surge, self._missing = surge_and_unavailable(
            self._set.spec.update_strategy, self._set, len(self._meant_for), defaults=(0, 1), up=True
        )
        self._leaving: dict[str, Pod] = {}

    def wanted(self) -> int:
        return len(self._meant_for)

    def pods(self) -> Iterator[tuple[Pod, bool]]:
        yield from ((pod, False) for pod in self._old.values())
        yield from ((pod, True) for pod in self._new.values())

    def sync(self) -> bool:
        before = len(self.created) + len(self.deleted)
        self._manage()
        if self.applied.changes_template and self._set.spec.update_strategy.type != ON_DELETE:
            if self._surge:
                self._surge_over()
            else:
                self._replace()
        return len(self.created) + len(self.deleted) > before

    def _manage(self) -> None:
        """Pods for the nodes that have none, and none for nodes that it is not meant for."""
        for node in [*self._old, *self._new]:
            if node not in self._may_stay:
                for pods in (self._old, self._new):
                    if node in pods:
                        self._drop(node, pods)
        for node in self._meant_for:
            alone = node not in self._old and node not in self._new
            if alone and (self._surge or not self._is_leaving(node)):
                self._make(node)

    def _replace(self) -> None:
        missing = 0
        candidates = []
        for node in self._nodes():
            old, new = self._old.get(node), self._new.get(node)
            if new is not None and old is None:
                missing += not self.stage.is_ready(new)
            elif old is None:
                missing += 1
            elif not self.stage.is_ready(old):
                missing += 1
                self._drop(node, self._old)
            else:
                candidates.append(node)
        for node in candidates[: max(self._missing - missing, 0)]:
            self._drop(node, self._old)

    def _surge_over(self) -> None:
        surging = 0
        candidates: list[str] = []
        for node in self._nodes():
            old, new = self._old.get(node), self._new.get(node)
            if old is None:
                continue
            if new is None:
                if not self.stage.is_ready(old):
                    if node in self._meant_for:
                        self._make(node)
                    else:
                        self._drop(node, self._old)
                elif node in self._meant_for:
                    candidates.append(node)
            elif self.stage.is_ready(new) or not self.stage.is_ready(old):
                self._drop(node, self._old)
            else:
                surging += 1
        for node in candidates[: max(self._surge - surging, 0)]:
            self._make(node)
        self._leave_unwanted_nodes()

    def _leave_unwanted_nodes(self) -> None:
        """Where it may stay but is not meant for, a pod goes once enough others are ready."""
        ready = {node for pods in (self._old, self._new) for node, pod in pods.items() if self.stage.is_ready(pod)}
        spare = len(ready) - len(self._meant_for)
        unwanted = [node for node in self._old if node not in self._meant_for]
        for node in unwanted[: max(spare, 0)]:
            self._drop(node, self._old)

    def _nodes(self) -> list[str]:
        """The controller takes nodes as they come; here they come by name."""
        return sorted({*self._meant_for, *self._old, *self._new})

    def _is_leaving(self, node: str) -> bool:
        return node in self._leaving and self.stage.is_leaving(self._leaving[node].key)

    def _make(self, node: str) -> None:
        (self._new[node],) = self._create(daemon_pod(self._set, node, self.stage.expansion))

    def _drop(self, node: str, pods: dict[str, Pod]) -> None:
        self._leaving[node] = pods.pop(node)
        self._delete(self._leaving[node])
