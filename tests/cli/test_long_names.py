"""Nodes with long names: tables leave out what all names end with, and stay within 80 columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.example import fleet_text
from podium.present.text import (
    Column,
    Line,
    common_domain,
    fitting,
    leaving_out,
    styled,
    table,
    table_with_text,
    wrapped,
)

from .running import node, pod, run, written

DOMAIN = ".eu-central-1.compute.internal"

DOMAINS: dict[str, tuple[list[str], str]] = {
    "shared": (["a.x.y", "b.x.y"], ".x.y"),
    "shared in part": (["a.eu.internal", "a.us.internal"], ".internal"),
    "none": (["a", "b"], ""),
    "one has none": (["a.x", "b"], ""),
    "a single node": (["a.x.y"], ""),
    "a name that others end with": (["x.y", "a.x.y"], ".y"),
}


@pytest.mark.parametrize(("names", "domain"), DOMAINS.values(), ids=DOMAINS)
def test_what_names_share(names: list[str], domain: str) -> None:
    assert common_domain(names) == domain


def test_only_names_are_shortened() -> None:
    text = "a.x.y (b.x.y), c.x.y: kubernetes.io/hostname=a.x.y, d.x.yz, e.x.y.z."
    with leaving_out(".x.y") as left_out:
        assert wrapped(text, 200)[0].text == "a (b), c: kubernetes.io/hostname=a.x.y, d.x.yz, e.x.y.z."
        assert left_out.was_left_out
    assert wrapped(text, 200)[0].text == text


NAMES = Column("POD", ["shop/web-1", "shop/a-name-that-is-far-too-long", "shop/web-2"], right=False)
NUMBERS = Column("POINTS", ["7", "11", "1,000"])


def test_a_name_that_leaves_no_room_stands_on_a_line_of_its_own() -> None:
    assert table([NAMES, NUMBERS], 20) == [
        "POD         POINTS",
        "shop/web-1       7",
        "shop/a-name-that-is-far-too-long\n                11",
        "shop/web-2   1,000",
    ]
    assert table([NAMES, NUMBERS], 40)[2] == "shop/a-name-that-is-far-too-long      11"
    assert table([NAMES, NUMBERS])[2] == "shop/a-name-that-is-far-too-long      11"


def test_a_name_in_a_later_column_begins_where_it_fits() -> None:
    nodes = Column("NODE", ["n1", "n2", "another-name-of-26-letters"], right=False)
    assert table([NAMES, nodes, NUMBERS], 30)[1:] == [
        "shop/web-1  n1         7",
        "shop/a-name-that-is-far-too-long\n            n2        11",
        "shop/web-2\n    another-name-of-26-letters\n                   1,000",
    ]


def test_the_lines_of_a_row_share_its_style() -> None:
    rows = table([NAMES, NUMBERS], 20)
    assert styled(rows, ["bold", "", "red", ""])[2:4] == [
        Line("shop/a-name-that-is-far-too-long", "red"),
        Line("                11", "red"),
    ]


def test_text_is_wrapped_beside_a_table() -> None:
    texts = ["one word and another and a third", "", "NodeResourcesBalancedAllocation"]
    found = table_with_text([NAMES], "BECAUSE", texts, 64, ["", "red", ""], ["", "", "a remark"])
    assert [line.text for line in found] == [
        "POD         BECAUSE",
        "shop/web-1  one word and another and a third",
        "shop/a-name-that-is-far-too-long",
        "shop/web-2  NodeResourcesBalancedAllocation",
        "              a remark",
    ]
    assert found[2].style == "red"


def test_tables_that_are_cut_in_two_leave_names_whole() -> None:
    others = [Column(f"COLUMN {number}", ["1", "2", "3"]) for number in range(6)]
    rows = [row for columns in fitting([NAMES], others, 40) for row in table(columns, 40)]
    assert sum("shop/a-name-that-is-far-too-long" in row for row in rows) == 2
    assert max(len(line) for row in rows for line in row.split("\n")) <= 40


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fleet with names as a cloud gives them."""
    text = fleet_text(json=True)
    nodes = [item["metadata"]["name"] for item in json.loads(text)["items"] if item["kind"] == "Node"]
    for number, name in enumerate(nodes):
        text = text.replace(f'"{name}"', f'"ip-10-0-{number}-35{DOMAIN}"')
    file = tmp_path_factory.mktemp("fleet") / "fleet.json"
    file.write_text(text)
    return file


NODE = "ip-10-0-9-35"
COMMANDS = (
    ("explain", "search/index-9"),
    ("explain", "search/index-9", "--nodes"),
    ("why-not", "search/index-9", NODE),
    ("simulate",),
    ("capacity", "shop/web"),
    ("drain", NODE),
    ("fail", NODE),
    ("audit",),
    ("compare", "--release", "v1.33"),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_tables_leave_out_what_all_names_end_with(arguments: tuple[str, ...], fleet: Path) -> None:
    lines = run(*arguments, "-f", fleet).stdout.splitlines()

    assert lines[-1] == f"Nodes are named without {DOMAIN}"
    assert not [line for line in lines[:-1] if DOMAIN in line and "hostname=" not in line]
    assert not [line for line in lines if len(line) > 80]
    assert not [line for line in lines if ".." in line]


def test_wide_tables_and_documents_have_whole_names(fleet: Path) -> None:
    for output in ("wide", "json", "csv"):
        assert f"{NODE}{DOMAIN}" in run("drain", NODE, "-f", fleet, "-o", output).stdout


def test_a_name_and_how_often_it_is_there_stay_together() -> None:
    lines = wrapped("to general-a1 x3, general-a2 x12, general-a3", 20)

    assert [line.text for line in lines] == ["to general-a1 x3,", "general-a2 x12,", "general-a3"]


def test_of_nodes_that_are_as_near_those_that_begin_alike_come_first(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", node("ip-10-0-0-62"), node("ip-10-0-0-35"), node("ip-10-0-0-53"))

    assert "did you mean ip-10-0-0-35," in run("drain", "ip-10-0-0-36", "-f", cluster).stderr


def test_a_report_leaves_out_what_all_names_end_with(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", node(f"a{DOMAIN}"), node(f"b{DOMAIN}"), pod("web"))

    page = run("simulate", "-f", cluster, "--html", "-").stdout

    assert f"Nodes are named without {DOMAIN}. " in page
    assert page.count(DOMAIN) == 1


def test_a_name_with_a_line_break_stays_in_its_row() -> None:
    assert table([Column("NAME", ["web\nx"], right=False), Column("PODS", ["1"])]) == ["NAME   PODS", "web x     1"]
