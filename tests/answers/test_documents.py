"""docs/answers.md names every field of the documents that answers write, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answers.losing import nodes, web
from podium.answers import Way, audit, compare, drain, fail, upgrade, worst_nodes
from podium.answers.measures import Measures
from podium.cluster import Cluster
from podium.present import comparison as comparison_report
from podium.present import disruption as disruption_report
from podium.present import upgrade as upgrade_report

PAGE = (Path(__file__).parents[2] / "docs" / "answers.md").read_text(encoding="utf-8")


def cluster() -> Cluster:
    return Cluster.from_objects([*nodes("a1 a2"), web("w", "a1")])


def documented(kind: str) -> set[str]:
    rows = re.findall(r"^\| ([\w, ]+) \| (`.*?) \|", PAGE, re.MULTILINE)
    return {name for kinds, names in rows if kind in kinds.split(", ") for name in re.findall(r"`(\w+)`", names)}


DOCUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "Comparison": lambda: comparison_report.to_document(compare(Way(cluster=cluster()), Way(cluster=cluster()))),
    "Drain": lambda: disruption_report.to_document(drain(cluster(), ["a1"])),
    "Failure": lambda: {
        **disruption_report.to_document(fail(cluster(), ["a1"])),
        **disruption_report.to_document(worst_nodes(cluster(), 1)),
    },
    "Audit": lambda: disruption_report.audit_document(audit(cluster())),
    "Upgrade": lambda: upgrade_report.to_document(upgrade(cluster(), before="v1.33")),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_fields_are_documented(kind: str) -> None:
    document = DOCUMENTS[kind]()

    assert document["kind"] == kind
    assert documented(kind) == document.keys() - {"apiVersion", "kind"}


def test_measures_are_documented() -> None:
    table = PAGE.partition("| measure |")[2].partition("\n\n")[0]

    assert set(re.findall(r"`(\w+)`", table)) == set(Measures.__slots__)
