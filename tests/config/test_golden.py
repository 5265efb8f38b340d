"""The configurations that the real kube-scheduler was given, and whether it took them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from podium.engine.release import release_of
from podium.errors import ConfigError
from podium.recorded import Record, read_records

GOLDEN = Path(__file__).parent.parent / "golden" / "configurations.jsonl.xz"
RECORDED = [(release, record) for release in ("v1.36", "v1.37") for record in read_records(str(GOLDEN), release)]


@pytest.mark.parametrize(
    ("release", "record"), RECORDED, ids=lambda each: getattr(each, "case", None) and each.case.name
)
def test_is_accepted_as_recorded(release: str, record: Record) -> None:
    assert record.expect is not None
    with nullcontext() if record.expect["accepted"] else pytest.raises(ConfigError):
        release_of(release).set_up(record.case.config)
