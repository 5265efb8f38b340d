"""Which pod is meant by a name, and pods to make more of."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests import Objects, expand_workloads, workload_of
from podium.manifests.stored_pods import Priorities
from podium.model import Pod
from podium.wording import listed

MOST_SUGGESTED = 5


def find_pod(objects: Objects, name: str, namespace: str | None) -> tuple[Pod, Objects]:
    """The pod of that name (`name` or `namespace/name`), and the objects it is one of.

    A workload's name stands for the first pod it would make, if the input has none of its pods.
    """
    wanted_namespace, _, wanted = name.rpartition("/")
    if namespace and wanted_namespace and namespace != wanted_namespace:
        raise InputError(f"pod {name!r} is not in namespace {namespace!r}; leave one of the two out")
    within = wanted_namespace or namespace or objects.namespace
    found = _named(objects, wanted, within)
    if not found:
        objects = expand_workloads(objects)
        found = _named(objects, wanted, within) or _first_of_workload(objects, wanted, within)
    if len(found) > 1:
        keys = listed([pod.key for pod in found], MOST_SUGGESTED)
        raise InputError(f"pod {name!r} is in several namespaces: {keys}; say which with -n")
    if not found:
        raise InputError(
            f"pod {f'{within}/{wanted}' if within else wanted!r} is not in the input{_hint(objects, wanted)}"
        )
    return found[0], objects


def _named(objects: Objects, name: str, namespace: str | None) -> list[Pod]:
    return [pod for pod in _within(objects, namespace) if pod.name == name]


def _first_of_workload(objects: Objects, name: str, namespace: str | None) -> list[Pod]:
    first: dict[tuple[str, str], Pod] = {}
    for pod in _within(objects, namespace):
        workload = workload_of(pod)
        if workload.partition("/")[2] == name and not pod.finished:
            first.setdefault((pod.namespace, workload), pod)
    return list(first.values())


def _within(objects: Objects, namespace: str | None) -> Iterable[Pod]:
    return (pod for pod in objects.of(Pod) if namespace in (None, "", pod.namespace))


def _hint(objects: Objects, wanted: str) -> str:
    pods = objects.of(Pod)
    if not pods:
        return ", which has no pods at all"
    names = {pod.name: pod.key for pod in pods}
    close = get_close_matches(wanted, names, n=MOST_SUGGESTED, cutoff=0.5)
    close = close or [name for name in names if wanted in name][:MOST_SUGGESTED]
    return f"; did you mean {listed([names[name] for name in close], MOST_SUGGESTED)}?" if close else ""


def named_after(pod: Pod, name: str) -> Pod:
    """A workload's pod under the workload's name: more of them will be numbered."""
    return replace(pod, metadata=replace(pod.metadata, name=name))


def first_pods(objects: Objects, where: str) -> list[Pod]:
    """The pods among objects, and of each workload the first pod it would make."""
    pods = expand_workloads(objects).of(Pod)
    if not pods:
        raise InputError("no pod and no workload that makes pods in it", where)
    first: dict[tuple[str, str], Pod] = {}
    for pod in pods:
        first.setdefault((pod.namespace, workload_of(pod)), pod)
    return list(first.values())


def as_more_of(pod: Pod, objects: Objects, profile: str | None) -> Pod:
    """The pod with the priority that its class has among the objects, and the profile that is to decide it."""
    priorities = Priorities(objects)
    if pod.spec.priority_class_name in priorities.classes:
        unset = replace(pod.spec, priority=None, preemption_policy=None)
        pod = priorities.resolve(replace(pod, spec=unset))
    return replace(pod, spec=replace(pod.spec, scheduler_name=profile or pod.spec.scheduler_name))
