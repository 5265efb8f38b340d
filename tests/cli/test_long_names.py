"""Nodes with long names: tables leave out what all names end with, and stay within 80 columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.example.fleet import fleet_text
from podium.present.text import common_domain, leaving_out, wrapped

from .running import run

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
    assert not [line for line in lines if "ip-1.." in line or "..l" in line]


def test_wide_tables_and_documents_have_whole_names(fleet: Path) -> None:
    for output in ("wide", "json", "csv"):
        assert f"{NODE}{DOMAIN}" in run("drain", NODE, "-f", fleet, "-o", output).stdout
