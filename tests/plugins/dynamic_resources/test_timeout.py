"""A search for devices ends: after the filter's timeout on all nodes together, whatever claims and selectors are."""

from __future__ import annotations

from time import process_time

import pytest

from builders import make_config, make_node, make_pod
from device_objects import DRIVER, exactly, make_claim, make_class, make_slice, using
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.model import Object

NODES, DEVICES, GROUP = 12, 72, 15
MOST_SECONDS = 15
TIMED_OUT = "timed out trying to allocate devices"


def slices(text: str = "") -> list[Object]:
    """On every node, devices of which no 16 have the same group."""
    return [
        make_slice(
            f"s{node}",
            *(
                {"name": f"d{n}", "attributes": {"group": {"string": f"g{n // GROUP}"}, "text": {"string": text}}}
                for n in range(DEVICES)
            ),
            node=f"n{node}",
        )
        for node in range(NODES)
    ]


def decided(*objects: Object, release: str) -> Decision:
    nodes = [make_node(f"n{node}") for node in range(NODES)]
    cluster = Cluster.from_objects([*nodes, make_class(), *objects])
    pod = make_pod("p", resource_claims=using("c"))
    began = process_time()
    config = make_config({"pluginConfig": [{"name": "DynamicResources", "args": {"filterTimeout": "1s"}}]})
    decision = Scheduler(cluster, config, release=release).decide(pod)
    assert process_time() - began < MOST_SECONDS
    return decision


@pytest.mark.parametrize("release", ["v1.34", "v1.37"])
def test_requests_that_fit_alone_but_not_together(release: str) -> None:
    requests = [exactly(f"r{n}") for n in range(GROUP + 1)]
    claim = make_claim("c", *requests, constraints=[{"matchAttribute": f"{DRIVER}/group"}], namespace="default")
    decision = decided(*slices(), claim, release=release)
    if release == "v1.34":
        assert {status.reasons for status in decision.rejected.values()} == {(TIMED_OUT,)}
    else:
        assert f"node n0: {TIMED_OUT}" in decision.error


@pytest.mark.parametrize("release", ["v1.34", "v1.37"])
def test_a_selector_whose_pattern_takes_long(release: str) -> None:
    where = f'device.attributes["{DRIVER}"].text.matches("(a|b|c|d|e|f|g){{1,1000}}z")'
    claim = make_claim("c", exactly(where=where), namespace="default")
    decision = decided(*slices("a" * 2_000), claim, release=release)
    if release == "v1.34":
        assert {status.reasons for status in decision.rejected.values()} == {(TIMED_OUT,)}
    else:
        assert f"node n0: {TIMED_OUT}" in decision.error


def test_a_pattern_that_ends_selects_as_it_should() -> None:
    where = f'device.attributes["{DRIVER}"].text.matches("^(a|b){{1,100}}z$")'
    claim = make_claim("c", exactly(where=where), namespace="default")
    assert decided(*slices("ab" * 20 + "z"), claim, release="v1.37").node is not None
