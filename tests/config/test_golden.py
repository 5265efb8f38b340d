"""The configurations that the real kube-scheduler v1.36 was given, and whether it took them."""

from __future__ import annotations

import gzip
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from podium.errors import ConfigError

from .documents import parsed

GOLDEN = Path(__file__).parent.parent / "golden" / "configurations.jsonl.gz"


def recorded() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("record", recorded(), ids=lambda record: record["case"]["name"])
def test_is_accepted_as_recorded(record: dict[str, Any]) -> None:
    expected = nullcontext() if record["expect"]["accepted"] else pytest.raises(ConfigError)
    with expected:
        parsed(record["case"]["config"])
