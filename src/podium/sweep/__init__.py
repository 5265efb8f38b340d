"""Sweeps: many runs over configurations, clusters, traces and seeds, on many processes or machines."""

from podium.answers.trials import Workers
from podium.sweep._inputs import Inputs, load_inputs
from podium.sweep._spec import SweepSpec, read_sweep
from podium.sweep._sweeping import Group, Row, Spread, SweepResult, run_count, sweep
from podium.sweep.running import dask_cluster, in_process, local_processes

__all__ = [
    "Group",
    "Inputs",
    "Row",
    "Spread",
    "SweepResult",
    "SweepSpec",
    "Workers",
    "dask_cluster",
    "in_process",
    "load_inputs",
    "local_processes",
    "read_sweep",
    "run_count",
    "sweep",
]
