"""Pods and nodes to make more of: files, or names of what is in the input."""

from __future__ import annotations

import math
from pathlib import Path

from msgspec.structs import replace

from podium.answers import NodeTemplate
from podium.cli.finding import find_pod
from podium.errors import InputError
from podium.load import Objects, expand_workloads, load, workload_of
from podium.load.priorities import Priorities
from podium.objects import Node, Pod

FILE_ENDINGS = (".yaml", ".yml", ".json", ".gz")


def read_pods(name: str, objects: Objects, profile: str | None = None) -> list[Pod]:
    """The pods of a file, of its workloads the first one each; or the pod or workload of that name in the input.

    Their priority classes are those of the input.
    """
    if name != "-" and not Path(name).exists() and not name.endswith(FILE_ENDINGS):
        found = [_named_after(find_pod(objects, name, None)[0], name.rpartition("/")[2])]
    else:
        found = _pods_of_file(name)
    priorities = Priorities(objects)
    return [_as_of(pod, priorities, profile) for pod in found]


def _named_after(pod: Pod, name: str) -> Pod:
    """A workload's pod under the workload's name: more of them will be numbered."""
    return replace(pod, metadata=replace(pod.metadata, name=name))


def _pods_of_file(file: str) -> list[Pod]:
    pods = expand_workloads(load(file)).of(Pod)
    if not pods:
        raise InputError("no pod and no workload that makes pods in it", file)
    first: dict[tuple[str, str], Pod] = {}
    for pod in pods:
        first.setdefault((pod.namespace, workload_of(pod)), pod)
    return list(first.values())


def _as_of(pod: Pod, priorities: Priorities, profile: str | None) -> Pod:
    """The pod with the priority that its class has in the input, and the profile that is to decide it."""
    if pod.spec.priority_class_name in priorities.classes:
        unset = replace(pod.spec, priority=None, preemption_policy=None)
        pod = priorities.resolve(replace(pod, spec=unset))
    return replace(pod, spec=replace(pod.spec, scheduler_name=profile or pod.spec.scheduler_name))


def read_node(text: str) -> NodeTemplate:
    """The node of a file, `FILE`, or with a price each, `FILE=PRICE`."""
    file, equals, price = text.rpartition("=")
    if not equals or Path(text).exists():
        file, price = text, "1"
    nodes = load(file).of(Node)
    if len(nodes) != 1:
        raise InputError(f"has {len(nodes)} nodes; a template is one", file)
    try:
        number = float(price)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise InputError(f"the price {price!r} of a node must be a number above 0", file)
    return NodeTemplate(nodes[0], number)
