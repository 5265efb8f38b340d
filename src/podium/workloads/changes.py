"""The pods of a workload that a later file changes: which pods are deleted, and which ReplicaSets stay."""

from __future__ import annotations

from collections.abc import Iterable

from podium.manifests.apply import Applied
from podium.manifests.loading import Objects
from podium.model.meta import Object
from podium.model.objects import DaemonSet, Deployment, ReplicaSet, ReplicationController, StatefulSet
from podium.model.pod import Pod
from podium.workloads.daemon_sets import should_run, target_node, with_daemon_tolerations
from podium.workloads.deployments import (
    added_replica_set,
    current_replica_set,
    deployed_pods,
    find_replica_set,
    replica_sets_of,
    scaled_sizes,
)
from podium.workloads.expansion import Expansion
from podium.workloads.owners import active, ordinal_of, owned_by
from podium.workloads.rolling_updates import ON_DELETE
from podium.workloads.scaling import first_to_go, newest_time, scaled_workload
from podium.workloads.stateful_sets import condemned_pods


def with_changes_carried_out(objects: Objects) -> Objects:
    """The objects after the changes of later files are carried out: pods of an old template are gone.

    The new pods come with `expand_workloads`. Pods beyond a workload's replicas are gone as well.
    """
    if not objects.applied:
        return objects
    expansion, gone, changed = Expansion(objects), set[str](), dict[int, Object]()
    now = newest_time(objects.of(Pod))
    added: list[Object] = []
    for applied in objects.applied:
        match applied.after:
            case Deployment():
                replaced = _Deployed(applied, expansion, now)
                gone |= {pod.key for pod in replaced.gone}
                changed |= {id(before): after for before, after in replaced.replica_sets}
                added += replaced.added
            case StatefulSet():
                gone |= {pod.key for pod in _leaving_stateful_set(applied, expansion)}
            case DaemonSet():
                gone |= {pod.key for pod in _leaving_daemon_set(applied, expansion)}
            case ReplicaSet() | ReplicationController() as controller:
                pods = active(expansion.owned(controller, Pod))
                surplus = len(pods) - controller.spec.replicas
                gone |= {pod.key for pod in first_to_go(pods, pods, surplus, now)}
    kept = [changed.get(id(obj), obj) for obj in objects if not (type(obj) is Pod and obj.key in gone)]
    return objects.replaced([*kept, *added])


class _Deployed:
    """The result for a changed Deployment: the pods that are deleted, and its ReplicaSets afterwards."""

    def __init__(self, applied: Applied, expansion: Expansion, now: float) -> None:
        deployment, before = applied.after, applied.before
        assert isinstance(deployment, Deployment)
        assert isinstance(before, Deployment)
        sets = replica_sets_of(deployment, expansion)
        self.gone: list[Pod] = []
        self.added: list[Object] = []
        self.replica_sets: list[tuple[ReplicaSet, ReplicaSet]] = []
        pods = deployed_pods(deployment, sets, expansion)
        wanted = deployment.spec.replicas
        if applied.changes_template and not deployment.spec.paused:
            new = find_replica_set(deployment, sets, changed=True)
            self.gone = [pod for pod in pods if new is None or not owned_by(pod, new)]
            self._scale([each for each in sets if each is not new], 0)
            if new is None:
                self.added.append(added_replica_set(deployment, expansion))
            else:
                self._scale([new], wanted)
        elif sets and before.spec.replicas == wanted:
            return
        elif len(sizes := scaled_sizes(deployment, sets)) > 1:
            for each in sets:
                own = active(expansion.owned(each, Pod))
                size = sizes.get(each.name, 0)
                self.gone += first_to_go(own, active(pods), len(own) - size, now)
                self._scale([each], size)
        elif sets:
            current = next((each for each in sets if each.name in sizes), None) or current_replica_set(sets)
            own = active(expansion.owned(current, Pod))
            others = len(active(pods)) - len(own)
            self.gone = first_to_go(own, active(pods), len(own) + others - wanted, now)
            self._scale([current], max(wanted - others, 0))
        else:
            self.gone = first_to_go(active(pods), active(pods), len(active(pods)) - wanted, now)

    def _scale(self, sets: Iterable[ReplicaSet], replicas: int) -> None:
        for each in sets:
            scaled = scaled_workload(each, replicas)
            assert isinstance(scaled, ReplicaSet)
            self.replica_sets.append((each, scaled))


def _leaving_stateful_set(applied: Applied, expansion: Expansion) -> list[Pod]:
    """The pods of a StatefulSet beyond its replicas, and those that it updates: from the partition on."""
    stateful_set = applied.after
    assert isinstance(stateful_set, StatefulSet)
    pods = expansion.owned(stateful_set, Pod)
    strategy = stateful_set.spec.update_strategy
    replaces = applied.changes_template and strategy.type != ON_DELETE
    gone = {pod.key: pod for pod in condemned_pods(stateful_set, pods)}
    if replaces:
        first = stateful_set.spec.ordinals.start + strategy.rolling_update.partition
        gone |= {pod.key: pod for pod in pods if ordinal_of(pod) >= first}
    return list(gone.values())


def _leaving_daemon_set(applied: Applied, expansion: Expansion) -> list[Pod]:
    """The pods that a DaemonSet updates, and those on nodes that are no longer eligible."""
    daemon_set = applied.after
    assert isinstance(daemon_set, DaemonSet)
    pods = expansion.owned(daemon_set, Pod)
    if applied.changes_template and daemon_set.spec.update_strategy.type != ON_DELETE:
        return pods
    template = with_daemon_tolerations(daemon_set.spec.template)
    meant_for = {node.name for node in expansion.nodes if should_run(template, node)}
    return [pod for pod in pods if target_node(pod) not in meant_for]
