"""A small sweep that tests write themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from cli.running import node, pod, written

SWEEP: dict[str, Any] = {
    "cluster": "cluster.json",
    "minimize": "nodes_in_use",
    "axes": {
        "args.NodeResourcesFit.scoringStrategy.type": ["LeastAllocated", "MostAllocated"],
        "weight.NodeResourcesFit": [1, 50],
        "seed": {"from": 1, "to": 2},
    },
}
STRATEGY, WEIGHT = "args.NodeResourcesFit.scoringStrategy.type", "weight.NodeResourcesFit"


def write_sweep(folder: Path, **fields: Any) -> str:
    """A sweep over three nodes and four pods; fields that are None are left out."""
    written(folder / "cluster.json", *(node(f"n{n}") for n in range(3)), *(pod(f"p{n}") for n in range(4)))
    document = {name: value for name, value in (SWEEP | fields).items() if value is not None}
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return str(path)


def write_module(folder: Path, text: str) -> None:
    """A module of the user's own, next to the sweep."""
    (folder / "own_study.py").write_text(text)
