from __future__ import annotations

import gzip
import json
import lzma
from collections import Counter
from pathlib import Path

from podium.present.upgrade import RECORDED, listed_releases, release_document, release_lines, release_rows

GOLDEN = Path(__file__).parents[1] / "golden"


def test_the_recorded_decisions_are_those_that_are_there() -> None:
    counts: Counter[str] = Counter()
    for path in GOLDEN.glob("*.jsonl.xz"):
        for line in lzma.decompress(path.read_bytes()).splitlines():
            for release, expected in json.loads(line)["releases"].items():
                counts[release] += len(expected.get("decisions") or ()) or 1
    for path in (GOLDEN / "legacy").glob("*.jsonl.gz"):
        counts[path.name.split("-")[0]] += _decisions(path)
    devices = GOLDEN / "devices"
    both = _decisions(devices / "dra.jsonl.gz") + _decisions(devices / "dra-full.jsonl.gz")
    counts["v1.36"] += both
    counts["v1.37"] += both + _decisions(devices / "v1.37-new.jsonl.gz")

    assert counts == RECORDED


def _decisions(path: Path) -> int:
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return sum(len(json.loads(line)["expect"].get("decisions") or ()) or 1 for line in lines)


def test_all_releases_and_what_they_brought() -> None:
    text = "\n".join(line.text for line in release_lines())
    assert "v1.37    v1.37.1" in text
    assert "Since v1.36" in text
    assert [each.name for each in listed_releases()][:4] == ["v1.8", "v1.14", "v1.18", "v1.29"]


def test_one_release_has_its_gates() -> None:
    text = "\n".join(line.text for line in release_lines("1.36"))
    assert "StorageCapacityScoring" in text
    assert "v1.37" not in text


def test_as_data() -> None:
    (item,) = release_document("v1.36")["items"]
    assert (item["name"], item["agree"]) == ("v1.36", RECORDED["v1.36"])
    assert release_rows("v1.36").splitlines()[0] == "release,area,name,sentence"
