"""Decisions and simulations as data frames, for which polars has to be installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium.engine.explanation import ranking, scored
from podium.errors import InputError

if TYPE_CHECKING:
    import polars

    from podium.engine.decision import Decision
    from podium.engine.simulate import Simulation

TEXT, TEXTS, NUMBER = "text", "texts", "number"


def decision_frame(decision: Decision) -> polars.DataFrame:
    """A row per node: the best first, then those that were rejected, and one weighted score per plugin."""
    plugins = scored(decision)
    best = dict.fromkeys(decision.ties, "tied") | {decision.node: "chosen"}
    rows: list[tuple[Any, ...]] = [
        (
            node,
            best.get(node, "feasible"),
            None,
            None,
            decision.totals.get(node),
            *(one.weighted[node] for one in plugins),
        )
        for node in ranking(decision)
    ]
    rows += [
        (node, "rejected", status.plugin, list(status.reasons), None, *[None] * len(plugins))
        for node, status in decision.rejected.items()
    ]
    text = {"node": TEXT, "status": TEXT, "plugin": TEXT, "reasons": TEXTS}
    return _frame(rows, {**text, "total": NUMBER, **{one.plugin: NUMBER for one in plugins}})


def simulation_frame(simulation: Simulation) -> polars.DataFrame:
    """A row per pod in the order they were decided; of those without a node, `message` says why."""
    rows = [
        (each.pod.namespace, each.pod.name, each.workload, each.pod.priority, each.node, each.message or None)
        for each in simulation.placements
    ]
    about = {"namespace": TEXT, "pod": TEXT, "workload": TEXT, "priority": NUMBER}
    return _frame(rows, {**about, "node": TEXT, "message": TEXT})


def _frame(rows: Sequence[tuple[Any, ...]], columns: Mapping[str, str]) -> polars.DataFrame:
    """Rows as a frame, each column of the named type."""
    try:
        import polars
    except ImportError:
        raise InputError("data frames need polars: pip install 'podium[frames]'") from None
    types: dict[str, Any] = {TEXT: polars.String, TEXTS: polars.List(polars.String), NUMBER: polars.Int64}
    return polars.DataFrame(rows, schema={name: types[kind] for name, kind in columns.items()}, orient="row")
