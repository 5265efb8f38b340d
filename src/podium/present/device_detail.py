"""Devices in words: which ones a pod gets, and why a node cannot give them. Worked out when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from podium.cluster import Cluster
from podium.engine.decision import Decision
from podium.framework import Framework
from podium.model import Pod
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.dynamic_resources.pod_claims import ClaimError, claims_of
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.dynamic_resources.requests import Option
from podium.plugins.dynamic_resources.search_results import KnownSearches
from podium.plugins.dynamic_resources.shortage import Shortage, Tally, shortage_on
from podium.wording import counted

_ATTRIBUTE_IS = re.compile(r'\s*device\.attributes\["[^"]*"\]\.(\w+)\s*==\s*("[^"]*"|\w+)\s*')
_LONGEST = 60


def device_details(cluster: Cluster, framework: Framework, pod: Pod, decision: Decision) -> dict[str, str]:
    """A sentence for each node that has not the devices a pod asks for.

    The cluster must be as it was when the pod was decided.
    """
    plugin = framework.plugins.get(DynamicResources.name)
    rejected = {n: s for n, s in decision.rejected.items() if plugin is not None and s.plugin == plugin.name}
    if not isinstance(plugin, DynamicResources) or not rejected:
        return {}
    try:
        claims = claims_of(pod, cluster.store)
    except ClaimError:
        return {}
    info, rules = cluster.info_of(pod), plugin.release_rules
    devices = PodDevices(pod, info, claims, cluster, rules, KnownSearches(), 0)
    found = {}
    for node, status in rejected.items():
        if DynamicResources.REASON_NOT_AVAILABLE in status.reasons:
            found[node] = _elsewhere(devices, node)
        elif shapes := devices.shapes_on(node):
            found[node] = _sentence(shortage_on(cluster, rules, shapes, cluster.rows[node]), node)
    return found


def devices_given(details: Mapping[str, Any]) -> str:
    """A sentence about the devices that a pod gets on its node; empty if it gets none."""
    parts = []
    for claim, results in (details.get("allocations") or {}).items():
        by_request: dict[str, list[str]] = {}
        for result in results:
            text = f"{result['pool']}/{result['device']}"
            if result.get("consumedCapacity"):
                text += f" ({', '.join(f'{amount} {name}' for name, amount in result['consumedCapacity'].items())})"
            elif result.get("adminAccess"):
                text += " (for administration)"
            by_request.setdefault(result["request"], []).append(text)
        got = "; ".join(f"{', '.join(devices)} for {request}" for request, devices in by_request.items())
        if got:
            parts.append(f"claim {claim} gets {got}")
    return f"{'. '.join(part[:1].upper() + part[1:] for part in parts)}." if parts else ""


def _elsewhere(devices: PodDevices, node: str) -> str:
    names = [claim.key for claim in devices.unavailable_on(node)]
    return f"{', '.join(names)}: the devices it has cannot be used on {node}" if names else ""


def _sentence(shortage: Shortage, node: str) -> str:
    if shortage.is_together:
        wanted = ", ".join(_wants(tally.option) for tally in shortage.tallies)
        about = f" with {', '.join(shortage.constraints)} as the constraints want it" if shortage.constraints else ""
        return f"{wanted}: each alone could be had on {node}, together{about} not"
    sentence = "; ".join(f"{_wants(tally.option)}: {_numbers(tally, node)}" for tally in shortage.tallies)
    return f"{sentence}; resource pool {shortage.problem}" if shortage.problem else sentence


def _wants(option: Option) -> str:
    """`r0 wants 2 of class gpu with model h100`."""
    number = "all" if option.is_all else str(option.count)
    such = [_condition(expression) for expression in option.expressions]
    such += [f"{amount.text} of {name}" for name, amount in option.capacity.items()]
    with_such = f" with {' and '.join(such)}" if such else ""
    return f"{option.name} wants {number} of class {option.class_name}{with_such}"


def _condition(expression: str) -> str:
    found = _ATTRIBUTE_IS.fullmatch(expression)
    if found:
        return f"{found[1]} {found[2].strip(chr(34))}"
    short = " ".join(expression.split())
    return short if len(short) <= _LONGEST else f"{short[: _LONGEST - 3]}..."


def _numbers(tally: Tally, node: str) -> str:
    """`8 devices on gpu-b1, 5 in use, 2 other model, 1 left`."""
    if not tally.there:
        return f"no devices of that class on {node}"
    attributes = [found[1] for each in tally.option.expressions if (found := _ATTRIBUTE_IS.fullmatch(each))]
    other = f"other {' or '.join(dict.fromkeys(attributes))}" if attributes else "not selected"
    parts = ((tally.in_use, "in use"), (tally.unselected, other), (tally.full, "full"), (tally.tainted, "tainted"))
    said = [f"{number} {what}" for number, what in parts if number]
    return ", ".join([f"{counted(tally.there, 'device')} on {node}", *said, f"{tally.left} left"])
