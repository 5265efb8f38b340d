"""Device selectors against a table of what the real scheduler makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from podium.cel import (
    V1_36,
    V1_37,
    CelError,
    Device,
    DeviceSelector,
    Environment,
    device_fields,
    functions_of,
    parse_version,
)
from podium.cel._checker import Checker
from podium.cel._parser import parse
from podium.cel._planner import Planner

GPU = Device(
    "gpu.example.com",
    {
        "model": "h100",
        "index": 3,
        "healthy": True,
        "driverVersion": parse_version("1.27.3"),
        "other.example.com/zone": "eu-1a",
        "other.example.com/pcie": parse_version("4.0.0-rc.1+b7"),
        "address": "10.1.2.3",
        "empty": "",
        "uuid": "GPU-18db0e85-99e9-c746-8531-ffeb86328b39",
    },
    {"memory": "80Gi", "cores": "108", "other.example.com/bandwidth": "1.5G", "share": "500m"},
    True,
)
NIC = Device(
    "nic.example.com",
    {"model": 7, "gpu.example.com/model": "a100", "healthy": "yes", "gpu.example.com/index": "three"},
    {"gpu.example.com/memory": "40Gi"},
)
BARE = Device("gpu.example.com", {}, {}, False)
LISTS = Device(
    "list.example.com",
    {
        "gpu.example.com/model": ["h100", "a100"],
        "gpu.example.com/index": [3, 5],
        "gpu.example.com/healthy": [True],
        "gpu.example.com/driverVersion": [parse_version("1.27.3"), parse_version("2.0.0")],
    },
    {},
)


class Row(NamedTuple):
    """A line of the table."""

    newer: str
    older: str
    cost: str
    expression: str


def _rows() -> list[Row]:
    rows = []
    for line in (Path(__file__).parent / "selectors.txt").read_text().splitlines():
        if line[:1] in ("Y", "N", "E", "C"):
            outcomes, cost = line[:14].split()
            newer, _, older = outcomes.partition("/")
            rows.append(Row(newer, older or newer[:3], cost, line[16:]))
    return rows


ROWS = _rows()


def _outcome(expression: str, environment: Environment, devices: list[Device]) -> str:
    try:
        selector = DeviceSelector(expression, environment)
    except CelError:
        return "C"
    outcome = ""
    for device in devices:
        try:
            outcome += "Y" if selector.matches_device(device) else "N"
        except CelError:
            outcome += "E"
    return outcome


def test_the_table_is_whole() -> None:
    assert len(ROWS) > 900
    assert {row.newer for row in ROWS} >= {"C", "YYYY", "NNNN", "EEEE"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.expression)
def test_selectors_do_what_the_scheduler_of_v1_37_does(row: Row) -> None:
    assert _outcome(row.expression, V1_37, [GPU, NIC, BARE, LISTS]) == row.newer


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.expression)
def test_selectors_do_what_the_scheduler_of_v1_36_does(row: Row) -> None:
    assert _outcome(row.expression, V1_36, [GPU, NIC, BARE]) == row.older


@pytest.mark.parametrize("row", [row for row in ROWS if row.cost != "-"], ids=lambda row: row.expression)
def test_evaluations_cost_what_they_cost_the_scheduler(row: Row) -> None:
    root = parse(row.expression, escaped_names=True)
    Checker(row.expression, functions_of(V1_37), device_fields(V1_37)).check(root)
    planner = Planner(counted=True, strict_optionals=True)
    run = planner.plan(root).run
    slots = [0, GPU.fields, *[None] * planner.slots]
    run(slots)
    assert slots[0] == int(row.cost)
