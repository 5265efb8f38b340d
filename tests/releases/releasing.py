"""Small worlds for old releases, in few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from builders import decide, scores
from podium.engine import Decision
from podium.engine.release import Options
from podium.model import Object, Pod

Fields = dict[str, Any]

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def policy(
    predicates: Iterable[str | Fields] | None = (), priorities: Iterable[str | Fields] | None = (), **fields: Any
) -> Fields:
    """A Policy with these predicates and priorities, each a name or a document; None leaves the list out."""
    document: Fields = {"apiVersion": "v1", "kind": "Policy", **fields}
    if predicates is not None:
        document["predicates"] = [{"name": each} if isinstance(each, str) else each for each in predicates]
    if priorities is not None:
        document["priorities"] = [{"name": each, "weight": 1} if isinstance(each, str) else each for each in priorities]
    return document


def argument(name: str, kind: str, weight: int | None = None, **fields: Any) -> Fields:
    """A predicate or, with a weight, a priority under a name of one's own."""
    return {"name": name, "argument": {kind: fields}} | ({} if weight is None else {"weight": weight})


def decide_as(
    release: str,
    objects: Iterable[Object],
    pod: Pod,
    config: Fields | None = None,
    gates: Mapping[str, bool] | None = None,
    env: Mapping[str, str] | None = None,
    **scheduler: Any,
) -> Decision:
    options = Options(feature_gates=dict(gates or {}), env=dict(env or {}))
    return decide(objects, pod, config, release=release, options=options, **scheduler)


def scored(release: str, objects: Iterable[Object], pod: Pod, priority: str | Fields, **extra: Any) -> dict[str, int]:
    """One priority's scores per node, all nodes being feasible."""
    name = priority if isinstance(priority, str) else priority["name"]
    decision = decide_as(release, objects, pod, policy((), [priority]), **extra)
    found = scores(decision, name)
    assert found is not None, decision
    return found


def failures(decision: Decision) -> dict[str, set[str]]:
    """The reasons per rejected node."""
    return {node: set(status.reasons) for node, status in decision.rejected.items()}
