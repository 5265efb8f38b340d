"""Finds the nodes and pods that a user names: by name, prefix, label or workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.errors import InputError
from podium.manifests import Objects
from podium.manifests.defaults import Priorities
from podium.model import CronJob, Node, Object, PersistentVolume, PersistentVolumeClaim, Pod
from podium.model.objects import HOSTNAME, REGION, ZONE
from podium.wording import did_you_mean, listed, near_names
from podium.workloads import expand_workloads, workload_of
from podium.workloads.first_pods import jobs_of_cron_jobs, owned_as, with_one_pod

MOST_SUGGESTED, MOST_MEANT = 5, 3
LEAST_PART = 3
"""The minimum number of characters for which names that contain them are suggested."""

SHORT_KEYS = {
    "zone": ZONE,
    "region": REGION,
    "hostname": HOSTNAME,
}
"""Short names of labels."""


def find_node(cluster: Cluster, name: str) -> str:
    """The node with this name, or the only one whose name begins with it; InputError if there is none, or several."""
    if name in cluster.rows:
        return name
    found = sorted(node for node in cluster.rows if name and node.startswith(name))
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"node {name!r} may be {listed(found, MOST_SUGGESTED)}; say which")
    raise InputError(f"node {name!r} is not in the cluster{_meant(name, {_host(node): node for node in cluster.rows})}")


def find_nodes(cluster: Cluster, wanted: Iterable[str], selectors: Iterable[str] = ()) -> list[str]:
    """The requested nodes without repetition: by name (see `find_node`), or by labels (see `nodes_matching`)."""
    found: dict[str, None] = {}
    for text in wanted:
        found.update(dict.fromkeys(nodes_matching(cluster, text) if "=" in text else [find_node(cluster, text)]))
    for text in selectors:
        found.update(dict.fromkeys(nodes_matching(cluster, text)))
    return list(found)


def nodes_matching(cluster: Cluster, selector: str) -> list[str]:
    """The nodes whose labels match `key=value,...`, ordered by name; InputError if there are none.

    `zone=`, `region=` and `hostname=` mean the usual labels, `node=` the name.
    """
    wanted = [_pair(part, selector) for part in selector.split(",")]
    found = sorted(name for name in cluster.rows if all(_value(cluster, name, key) == text for key, text in wanted))
    if not found:
        raise InputError(f"no node with {selector}{_known_values(cluster, wanted)}")
    return found


def _host(name: str) -> str:
    """A node's name without its domain, which most nodes share."""
    return name.partition(".")[0]


def _meant(name: str, known: Mapping[str, str]) -> str:
    """Suggestions for a name that does not exist: similar names, or names that contain it."""
    near = near_names(_host(name), known, MOST_MEANT)
    parts = [each for each in sorted(known) if len(name) >= LEAST_PART and name in each]
    return did_you_mean([known[each] for each in near or parts[:MOST_MEANT]])


def _pair(text: str, selector: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or key.strip().endswith("!") or not value.strip():
        raise InputError(f"cannot read {selector!r}; write a label as key=value, such as zone=eu-1a or node=NAME")
    return SHORT_KEYS.get(key.strip(), key.strip()), value.strip().lstrip("=")


def _value(cluster: Cluster, name: str, key: str) -> str | None:
    return name if key == "node" else cluster.node(name).metadata.labels.get(key)


def _known_values(cluster: Cluster, wanted: Sequence[tuple[str, str]]) -> str:
    """` (zone is one of a, b)`, for the first label that no node has with the wanted value."""
    for key, value in wanted:
        known = sorted({found for name in cluster.rows if (found := _value(cluster, name, key)) is not None})
        if value not in known:
            return f"; {key} is one of {listed(known, MOST_SUGGESTED)}" if known else f"; no node has the label {key}"
    return ""


KINDS = {
    **dict.fromkeys(("pod", "pods", "po"), "Pod"),
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("replicationcontroller", "replicationcontrollers", "rc"), "ReplicationController"),
    **dict.fromkeys(("job", "jobs"), "Job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "CronJob"),
}
"""kubectl's names for kinds of workloads."""


class FoundPod(NamedTuple):
    """A pod, and the objects that contain it."""

    pod: Pod
    objects: Objects
    is_wanted: bool = True
    """False for the pod of a workload that has none now, because it is scaled to zero or suspended."""


def find_pod(objects: Objects, name: str, namespace: str | None) -> FoundPod:
    """The pod with this name (`name`, `namespace/name` or `kind/name`).

    A workload's name means its first pending pod, else its first pod, else the first that it would create.
    """
    first, _, wanted = name.rpartition("/")
    if "/" in first:
        # The API server accepts no name with a slash, but a file may have one.
        first, wanted = next(((pod.namespace, pod.name) for pod in objects.of(Pod) if pod.key == name), (first, wanted))
    # kubectl also writes kinds with their group: deployment.apps/web.
    is_namespace = first in {pod.namespace for pod in objects.of(Pod)}
    kind = "" if is_namespace else KINDS.get(first.lower().partition(".")[0], "")
    wanted_namespace = "" if kind else first
    if namespace and wanted_namespace and namespace != wanted_namespace:
        raise InputError(f"pod {name!r} is not in namespace {namespace!r}; leave one of the two out")
    within = wanted_namespace or namespace or objects.namespace
    found = _named(objects, wanted, within) if kind in ("", "Pod") else []
    is_wanted = True

    def is_due(cron_job: CronJob) -> bool:
        return kind in ("", "Pod", "Job", "CronJob") and wanted.startswith(cron_job.name)

    if not found or any(_lacks_claims(pod) for pod in found):
        objects = expand_workloads(objects, is_due)
        found = _named(objects, wanted, within) if kind in ("", "Pod") else []
        found = found or _first_of_workload(objects, wanted, within, kind)
        if not found:
            objects, is_wanted = expand_workloads(_with_pods_of(objects, wanted, within, kind), is_due), False
            found = _first_of_workload(objects, wanted, within, kind)
    if len(found) > 1:
        keys = listed([pod.key for pod in found], MOST_SUGGESTED)
        raise InputError(f"pod {name!r} is in several namespaces: {keys}; say which with -n")
    if not found:
        what = "pod" if kind in ("", "Pod") else kind
        key = f"{within}/{wanted}" if within else wanted
        raise InputError(f"{what} {key!r} is not in the input{_hint(objects, wanted, kind)}")
    return FoundPod(found[0], objects, is_wanted)


def _lacks_claims(pod: Pod) -> bool:
    """Whether claims are still to be created from templates for a pod."""
    made = {status.name for status in pod.status.resource_claim_statuses}
    return any(each.resource_claim_template_name and each.name not in made for each in pod.spec.resource_claims)


def _named(objects: Objects, name: str, namespace: str | None) -> list[Pod]:
    return [pod for pod in _within(objects, namespace) if pod.name == name]


def pods_of_workload(objects: Objects, pod: Pod, name: str) -> list[Pod]:
    """The pods of the same workload with this name, including the pod itself."""
    workload = _workload_of(pod, name)
    pods = _within(objects, pod.namespace)
    return [each for each in pods if _workload_of(each, name) == workload and not each.finished]


def _workload_of(pod: Pod, name: str) -> str:
    """`Deployment/web` or, if that is the name, the pod's ReplicaSet."""
    controller = pod.metadata.controller
    is_meant = controller is not None and (controller.kind, controller.name) == ("ReplicaSet", name)
    return f"ReplicaSet/{name}" if is_meant else workload_of(pod)


def _first_of_workload(objects: Objects, name: str, namespace: str | None, kind: str) -> list[Pod]:
    """One pod of each workload with this name: a pending pod if there is one, else the first."""
    first: dict[tuple[str, str], Pod] = {}
    cron_jobs = jobs_of_cron_jobs(objects)
    for pod in _within(objects, namespace):
        workload = _workload_of(pod, name)
        job = cron_jobs.get((pod.namespace, workload))
        of, _, found = workload.partition("/")
        if job is not None and (kind == "CronJob" or found != name):
            of, _, found = workload_of(owned_as(pod, job)).partition("/")
        if found != name or pod.finished or (kind and of != kind):
            continue
        # The Jobs of a CronJob are one workload.
        known = first.setdefault((pod.namespace, f"{of}/{found}"), pod)
        if known.spec.node_name and not pod.spec.node_name:
            first[pod.namespace, f"{of}/{found}"] = pod
    return list(first.values())


def _with_pods_of(objects: Objects, name: str, namespace: str | None, kind: str) -> Objects:
    """The objects, where a workload with this name that is scaled to zero or suspended has one pod."""
    priorities = Priorities(objects)
    return objects.replaced(
        with_one_pod(obj, priorities)
        if obj.name == name and (not kind or type(obj).__name__ == kind) and namespace in (None, "", obj.namespace)
        else obj
        for obj in objects
    )


def _within(objects: Objects, namespace: str | None) -> Iterable[Pod]:
    return (pod for pod in objects.of(Pod) if namespace in (None, "", pod.namespace))


def _hint(objects: Objects, wanted: str, kind: str) -> str:
    """Suggestions for a name: workloads as kind/name, pods as namespace/name."""
    pods, kinds = objects.of(Pod), set(KINDS.values())
    # Including workloads without pods.
    workloads = {f"{type(obj).__name__}/{obj.name}" for obj in objects if type(obj).__name__ in kinds}
    if not workloads:
        return ", which has no pods at all"
    named = (workload.partition("/") for workload in sorted(workloads.union(map(workload_of, pods))))
    known = {name: f"{of.lower()}/{name}" for of, _, name in named if of != "Pod" and kind in ("", of)}
    if kind in ("", "Pod"):
        known |= {pod.name: pod.key for pod in pods}
    return _meant(wanted, known)


def added_objects(objects: Objects, others: Objects) -> list[Object]:
    """The objects that a file of workloads adds or replaces.

    Its pods and nodes are left out, and so are claims and volumes that exist already, as they may be bound.
    """
    taken = {obj.identity for obj in objects if isinstance(obj, PersistentVolumeClaim | PersistentVolume)}
    return [obj for obj in others if not isinstance(obj, Pod | Node) and obj.identity not in taken]


def with_added_objects(objects: Objects, others: Objects) -> Objects:
    """The objects together with those that a file of workloads adds."""
    new = added_objects(objects, others)
    replaced = {obj.identity for obj in new}
    return objects.replaced([*(obj for obj in objects if obj.identity not in replaced), *new], ())


def with_priority_and_profile(pod: Pod, objects: Objects, profile: str | None) -> Pod:
    """The pod with its class's priority among the objects, and the profile that is to decide it."""
    priorities = Priorities(objects)
    if pod.spec.priority_class_name in priorities.classes:
        unset = replace(pod.spec, priority=None, preemption_policy=None)
        pod = priorities.resolve(replace(pod, spec=unset))
    return replace(pod, spec=replace(pod.spec, scheduler_name=profile or pod.spec.scheduler_name))
