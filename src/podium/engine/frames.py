"""Decisions and simulations as data frames, for which polars has to be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.explanation import ranking, scored
from podium.errors import InputError

if TYPE_CHECKING:
    import polars

    from podium.engine.decision import Decision
    from podium.engine.simulate import Simulation


def decision_frame(decision: Decision) -> polars.DataFrame:
    """A row per node: the best first, then those that were rejected, and one weighted score per plugin."""
    pl = _polars()
    plugins = scored(decision)
    status = dict.fromkeys(decision.ties, "tied") | {decision.node: "chosen"}
    rows: list[tuple[Any, ...]] = [
        (node, status.get(node, "feasible"), None, None, decision.totals.get(node))
        + tuple(one.weighted[node] for one in plugins)
        for node in ranking(decision)
    ]
    rows += [
        (node, "rejected", status.plugin, list(status.reasons), None, *[None] * len(plugins))
        for node, status in decision.rejected.items()
    ]
    text = {"node": pl.String, "status": pl.String, "plugin": pl.String, "reasons": pl.List(pl.String)}
    numbers = dict.fromkeys(("total", *(one.plugin for one in plugins)), pl.Int64)
    return pl.DataFrame(rows, schema={**text, **numbers}, orient="row")


def simulation_frame(simulation: Simulation) -> polars.DataFrame:
    """A row per pod in the order they were decided; of those without a node, `message` says why."""
    pl = _polars()
    rows = [
        (each.pod.namespace, each.pod.name, each.workload, each.pod.priority, each.node, each.message or None)
        for each in simulation.placements
    ]
    schema = {"namespace": pl.String, "pod": pl.String, "workload": pl.String, "priority": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, "node": pl.String, "message": pl.String}, orient="row")


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise InputError("data frames need polars: pip install 'podium[frames]'") from None
    return polars
