"""What a run comes to, in numbers: the columns of its row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from podium.answers.measures import measure
from podium.engine import Simulation
from podium.errors import InputError
from podium.manifests.located import is_number
from podium.sweep.functions import function_named
from podium.timeline import TimelineResult

Numbers = dict[str, float]


def measured(result: Simulation | TimelineResult, functions: Sequence[str]) -> Numbers:
    """The numbers of a result: those of the user's functions, after a few that every run has."""
    numbers = (
        _of_timeline(result) if isinstance(result, TimelineResult) else _of_simulation(result, brief=bool(functions))
    )
    for name in functions:
        numbers |= _asked(name, result)
    return numbers


def _of_simulation(simulation: Simulation, *, brief: bool) -> Numbers:
    pending = len(simulation.pending)
    if brief:
        return {"placed": len(simulation.placed), "pending": pending}
    found = measure(simulation.cluster, pending)
    return {"placed": len(simulation.placed), **{_snake(name): value for name, value in found.to_dict().items()}}


def _of_timeline(result: TimelineResult) -> Numbers:
    waits = sorted(result.pending_times.values())
    events = Counter(record["event"] for record in result.log)
    spans = [
        (sample, after.time - sample.time) for sample, after in zip(result.samples, result.samples[1:], strict=False)
    ]
    total = sum(span for _, span in spans)
    found = {
        "placed": sum(1 for life in result.lives if life.bound is not None),
        "pending": len(result.unplaced),
        "evictions": events["evict"],
        "mean_wait": sum(waits) / len(waits) if waits else 0.0,
        "longest_wait": waits[-1] if waits else 0.0,
        "p95_wait": waits[int(0.95 * (len(waits) - 1))] if waits else 0.0,
        "end": result.end,
    }
    if result.scaling is not None:
        scaling = result.scaling
        found |= {"cost": scaling["cost"], "node_hours": scaling["nodeHours"]}
        found |= {"nodes_added": scaling["added"], "nodes_removed": scaling["removed"]}
    for resource in ("cpu", "memory"):
        used = sum(sample.utilisation(resource) * span for sample, span in spans)
        found[f"{resource}_utilisation"] = used / total if total else 0.0
    return found


def _asked(name: str, result: Simulation | TimelineResult) -> Numbers:
    """What a user's function says: a number, or several by name."""
    try:
        answer: Any = function_named(name)(result)
    except Exception as error:  # a user's function may fail in any way
        raise InputError(f"measure {name} failed: {type(error).__name__}: {error}") from error
    numbers = answer if isinstance(answer, Mapping) else {name.partition(":")[2]: answer}
    for column, value in numbers.items():
        if not is_number(_plain(value)):
            raise InputError(f"measure {name} gave {value!r} for {column}; it must give a number")
    return {str(column): _plain(value) for column, value in numbers.items()}


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's."""
    return value.item() if hasattr(value, "item") else value


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
