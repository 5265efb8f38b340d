"""docs/output.md names every field of the documents, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from builders import make_node, make_pod
from podium.answers.explanation import explain_pod
from podium.answers.simulation import simulate
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.present import explanation, simulation

PAGE = (Path(__file__).parents[2] / "docs" / "output.md").read_text(encoding="utf-8")


def documented(section: str) -> set[str]:
    """The fields in the first table of a section."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return {name for row in re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}


def cluster() -> Cluster:
    return Cluster.from_objects([make_node("a"), make_node("b"), make_pod("web")])


def explained() -> dict[str, Any]:
    return explanation.to_document(explain_pod(Scheduler(cluster()), make_pod("web")))


def simulated() -> dict[str, Any]:
    return simulation.to_document(simulate(cluster()))


@pytest.mark.parametrize(("kind", "document"), [("Explanation", explained), ("Simulation", simulated)])
def test_fields_are_documented(kind: str, document: Any) -> None:
    assert documented(kind) == document().keys() - {"apiVersion", "kind"}


def test_fields_of_decisions_are_documented() -> None:
    pods = (make_pod("web"), make_pod("big", requests={"cpu": "64"}), make_pod("other", scheduler_name="x"))
    fields = {name for pod in pods for name in Scheduler(cluster()).decide(pod).to_dict()}

    assert documented("Decisions") == fields | {"absent"}
