"""Devices as text, document and CSV: the list of a cluster, and those a pod gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium.present.decision_text import WIDTH
from podium.present.text import API_VERSION, Column, Line, styled, table, table_with_text, to_csv, wrapped
from podium.wording import counted

if TYPE_CHECKING:
    from podium.answers.devices import Devices, DeviceStatus

MOST = 20
"""How many devices are listed, unless all are asked for."""


def to_lines(found: Devices, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """How many devices of each class every node has and how many are left; then the devices that are not free.

    With `everything`, all devices are listed.
    """
    from podium.answers.devices import DeviceState

    if not found.devices:
        return [Line("No devices: the input has no ResourceSlices.")]
    free = sum(device.state in (DeviceState.FREE, DeviceState.SHARED) for device in found.devices)
    lines = wrapped(f"{counted(len(found.devices), 'device')}, {free:,} of them open for claims.", width)
    lines += [Line(line.text, "red") for problem in found.problems for line in wrapped(f"{problem}.", width)]
    lines += [Line(""), *_summary(found, width)]
    listed = [each for each in found.devices if everything or each.holders or each.state is not DeviceState.FREE]
    if listed:
        lines += [Line(""), *_list(listed if everything else listed[:MOST], width)]
    if not everything and len(listed) > MOST:
        lines.append(Line(f"and {counted(len(listed) - MOST, 'more device')}; --all shows them", "dim"))
    return lines


def _summary(found: Devices, width: int) -> list[Line]:
    from podium.answers.devices import DeviceState

    counts = found.counts()
    states = [state for state in DeviceState if any(each[state] for each in counts.values())]
    columns = [
        Column("NODE", [node or "(no node)" for node, _ in counts], right=False),
        Column("CLASS", [name for _, name in counts], right=False),
        Column("DEVICES", [f"{each.total():,}" for each in counts.values()]),
        *(Column(state.value.upper(), [f"{each[state]:,}" for each in counts.values()]) for state in states),
    ]
    return styled(table(columns, width), ["bold", *[""] * len(counts)])


def _list(devices: Sequence[DeviceStatus], width: int) -> list[Line]:
    columns = [
        Column("NODE", [each.node or "(no node)" for each in devices], right=False),
        Column("DEVICE", [_name(each) for each in devices], right=False),
        Column("STATE", [each.state.value for each in devices], right=False),
    ]
    return table_with_text(columns, "HELD BY", [_about(each) for each in devices], width)


def _name(device: DeviceStatus) -> str:
    return device.id.device if device.id.pool == device.node else f"{device.id.pool}/{device.id.device}"


def _about(device: DeviceStatus) -> str:
    """Who has a device, and what of it; the taints of one that nobody has."""
    parts = []
    for each in device.holders:
        amounts = ", ".join(f"{amount} {name}" for name, amount in each.consumed.items())
        parts.append(f"{', '.join(each.pods) or 'no pod'} ({each.claim}{f', {amounts}' if amounts else ''})")
    if device.left and device.holders:
        parts.append(f"{', '.join(f'{amount} {name}' for name, amount in device.left.items())} left")
    return "; ".join(parts) or ", ".join(device.taints)


def to_document(found: Devices) -> dict[str, Any]:
    """The devices as plain data, of kind Devices."""
    return {"apiVersion": API_VERSION, "kind": "Devices", **found.to_dict()}


def to_rows(found: Devices) -> str:
    """Every device as CSV."""
    header = ("node", "driver", "pool", "device", "classes", "state", "claims", "pods")
    rows = (
        (
            each.node,
            *each.id,
            " ".join(each.classes),
            each.state.value,
            " ".join(holder.claim for holder in each.holders),
            " ".join(pod for holder in each.holders for pod in holder.pods),
        )
        for each in found.devices
    )
    return to_csv(header, rows)


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
