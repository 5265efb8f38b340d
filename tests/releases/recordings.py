"""Recorded decisions of the old releases, decided again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine.release import Options
from podium.errors import PodiumError
from podium.manifests import load
from podium.model import Pod
from podium.releases import legacy_dict

GOLDEN = Path(__file__).parent.parent / "golden" / "legacy"

Fields = dict[str, Any]


def recordings(family: str) -> Iterator[Fields]:
    with gzip.open(GOLDEN / f"{family}.jsonl.gz") as lines:
        yield from map(json.loads, lines)


def scheduler_for(case: Fields, release: str, **scheduler: Any) -> Scheduler:
    cluster = Cluster.from_objects(load(case["objects"]) if case["objects"] else ())
    options = Options(feature_gates=case.get("featureGates") or {}, env=case.get("env") or {})
    return Scheduler(cluster, case.get("config"), release=release, options=options, tie_break="first", **scheduler)


def pods_of(case: Fields) -> list[Pod]:
    return load(case["pods"]).of(Pod)


def answer(case: Fields, release: str, **scheduler: Any) -> Fields:
    """The case decided now, in the shape it was recorded in."""
    try:
        made = scheduler_for(case, release, **scheduler)
    except PodiumError as error:
        return {"error": str(error)}
    decisions = [legacy_dict(made.place(pod)) for pod in pods_of(case)]
    return {"effective": made.setup.effective, "decisions": decisions}


def comparable(expectation: Fields) -> Fields:
    """What must agree: in which order reasons stand does not matter, nor how an error is worded."""
    if "error" in expectation:
        return {"error": "fatal" if expectation["error"].startswith("fatal:") else "refused"}
    return {"effective": expectation["effective"], "decisions": [_decision(each) for each in expectation["decisions"]]}


def _decision(decision: Fields) -> Fields:
    if decision.get("error"):
        return {"pod": decision["pod"], "error": True}
    shape = {name: value for name, value in decision.items() if value}
    for name in ("failed", "failed_predicates"):
        shape[name] = {node: set(texts) for node, texts in decision.get(name, {}).items()}
    return shape
