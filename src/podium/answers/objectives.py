"""What a configuration is tuned for: a number that should be as small as can be."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from podium.answers.measures import NODE, ZONE, fragmentation, imbalance, nodes_in_use, spread
from podium.engine import Simulation
from podium.errors import InputError
from podium.resources import CPU, MEMORY

Objective = Callable[[Simulation], float]


def fewest_nodes(simulation: Simulation) -> float:
    """How many nodes are in use."""
    return nodes_in_use(simulation.cluster)


def lowest_imbalance(simulation: Simulation) -> float:
    """The mean imbalance of cpu and memory."""
    return (imbalance(simulation.cluster, CPU) + imbalance(simulation.cluster, MEMORY)) / 2


def most_spread(simulation: Simulation) -> float:
    """How far the mean spread over zones and nodes is from 1."""
    return 1 - (spread(simulation.cluster, ZONE) + spread(simulation.cluster, NODE)) / 2


def least_fragmentation(simulation: Simulation) -> float:
    """Which share of what is free is stranded."""
    return fragmentation(simulation.cluster)


OBJECTIVES: Mapping[str, Objective] = {
    "fewest-nodes": fewest_nodes,
    "lowest-imbalance": lowest_imbalance,
    "most-spread": most_spread,
    "least-fragmentation": least_fragmentation,
}


def objective_named(name: str) -> Objective:
    """One of `OBJECTIVES`, or a Python function as `module:function`."""
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    module_name, colon, function_name = name.partition(":")
    if not colon or not module_name or not function_name:
        known = ", ".join(OBJECTIVES)
        raise InputError(f"objective {name!r} is not one of {known}, nor a function as module:function")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way; say which and how
        raise InputError(f"objective {name!r}: module {module_name!r} cannot be imported: {error}") from error
    function: Objective | None = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"objective {name!r}: module {module_name!r} has no function {function_name!r}")
    return function


def value_of(objective: Objective, simulation: Simulation) -> float:
    """The number the objective comes to; InputError if a user's function fails or gives none."""
    name = getattr(objective, "__name__", repr(objective))
    try:
        value = objective(simulation)
    except Exception as error:  # a user's function may fail in any way
        raise InputError(f"objective {name} failed: {type(error).__name__}: {error}") from error
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"objective {name} gave {value!r}; it must give a number to minimise") from None
    if number != number:
        raise InputError(f"objective {name} gave no number (NaN); it must give one to minimise")
    return number
