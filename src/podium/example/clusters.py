"""The example clusters as text, ready to be written to a file."""

from __future__ import annotations

import json as json_format
from importlib.resources import files
from typing import Any

import yaml

from podium.example.fleet import fleet


class _Plain(yaml.CSafeDumper):
    """Writes what occurs twice twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def fleet_text(*, json: bool = False) -> str:
    """The fleet: see `podium.example.fleet`."""
    return _text({"apiVersion": "v1", "kind": "List", "items": fleet()}, json)


def shop_text(*, json: bool = False) -> str:
    """The small cluster that `podium demo` explains."""
    text = (files("podium.example") / "cluster.yaml").read_text()
    return _text(yaml.load(text, yaml.CSafeLoader), json) if json else text


def _text(document: dict[str, Any], json: bool) -> str:
    if json:
        return json_format.dumps(document, indent=1) + "\n"
    return yaml.dump(document, Dumper=_Plain, sort_keys=False, default_flow_style=None, width=160)
