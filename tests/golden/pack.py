"""Packs recordings of several releases into one file, with every case in it once.

    python -m tests.golden.pack OUT.jsonl.xz v1.36=FILE v1.35=FILE ...

A FILE has lines of `case` and `expect`, plain or gzip; a release may be given several times. Cases belong together by
their names and must be the same in all files. What is in OUT already stays, except for the releases that are given;
with `--only`, cases that neither OUT nor the first FILE has are left out, so that one large FILE fills several OUTs.
"""

from __future__ import annotations

import gzip
import json
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Fields = dict[str, Any]
ONLY = "--only"


def lines_of(path: Path) -> Iterator[Fields]:
    """The lines of a file, packed in whatever way its name says."""
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)
    yield from map(json.loads, unpack(path.read_bytes()).splitlines())


def pack(out: Path, recordings: list[tuple[str, Path]], *, only: bool = False) -> dict[str, int]:
    """Write the file; how many cases there are of each release."""
    was_there = out.exists()
    packed: dict[str, Fields] = {line["case"]["name"]: line for line in lines_of(out)} if was_there else {}
    for release in {release for release, _ in recordings}:
        for line in packed.values():
            line["releases"].pop(release, None)
    for place, (release, path) in enumerate(recordings):
        for line in lines_of(path):
            case, name = line["case"], line["case"]["name"]
            if name not in packed:
                if only and (place or was_there):
                    continue
                packed[name] = {"case": case, "releases": {}}
            if packed[name]["case"] != case:
                raise SystemExit(f"{path}: case {name} is another one than in the files before")
            packed[name]["releases"][release] = line["expect"]
    counts: dict[str, int] = {}
    with lzma.open(out, "wb", preset=9 | lzma.PRESET_EXTREME) as file:
        for line in packed.values():
            line["releases"] = dict(sorted(line["releases"].items()))
            for release in line["releases"]:
                counts[release] = counts.get(release, 0) + 1
            file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    return counts


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != ONLY]
    pairs = [argument.partition("=") for argument in given[1:]]
    print(given[0], pack(Path(given[0]), [(release, Path(path)) for release, _, path in pairs], only=ONLY in sys.argv))
