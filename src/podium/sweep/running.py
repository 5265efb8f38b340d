"""One run of a sweep, its measured numbers, and the workers that execute runs."""

from __future__ import annotations

import logging
import pickle
import reprlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from multiprocessing import forkserver, get_context
from types import ModuleType
from typing import Any, NamedTuple

from msgspec import Struct

from podium.answers.compare import timeline_numbers
from podium.answers.measures import measure
from podium.answers.simulation import Simulation, place_in_order
from podium.answers.trials import Workers, function_named, interrupts_held_back
from podium.autoscaling import scaled
from podium.cluster import Cluster
from podium.cluster_input import ClusterInput
from podium.engine.release import CURRENT
from podium.errors import InputError, PodiumError
from podium.manifests import Objects
from podium.manifests.located import is_number
from podium.memory import collector_paused
from podium.plugins import IN_TREE
from podium.sweep._inputs import FIXED, Inputs, document_of, registry_of, setting
from podium.sweep._spec import SEED, Point, SweepSpec
from podium.timeline import Timeline, TimelineResult

Numbers = dict[str, float]
OWN_COLUMNS = ("run", "error")
"""The columns of rows besides axes and measures."""


def measured(result: Simulation | TimelineResult, functions: Sequence[str]) -> Numbers:
    """The measures of a result: the built-in ones, then those of the user's functions."""
    numbers = timeline_numbers(result) if isinstance(result, TimelineResult) else _of_simulation(result)
    for name in functions:
        numbers |= _asked(name, result)
    return numbers


def _of_simulation(simulation: Simulation) -> Numbers:
    found = measure(simulation.cluster, len(simulation.pending))
    return {"placed": len(simulation.placed), **{_snake(name): value for name, value in found.to_dict().items()}}


def _asked(name: str, result: Simulation | TimelineResult) -> Numbers:
    """The measures that a user's function returns: one number, or several by name."""
    try:
        answer: Any = function_named(name)(result)
    except Exception as error:  # a user's function may fail in any way
        raise InputError(f"measure {name} failed: {type(error).__name__}: {error}") from error
    numbers = answer if isinstance(answer, Mapping) else {name.partition(":")[2]: answer}
    for column, value in numbers.items():
        if not _is_finite(_plain(value)):
            raise InputError(f"measure {name} gave {reprlib.repr(value)} for {column}; it must give a number")
    return {str(column): _plain(value) for column, value in numbers.items()}


def _is_finite(value: object) -> bool:
    return is_number(value) and abs(value) <= sys.float_info.max


def _plain(value: Any) -> Any:
    """Convert a NumPy number to a Python number."""
    return value.item() if hasattr(value, "item") else value


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


class RunOutcome(NamedTuple):
    """The outcome of a run: its measures, or why it failed."""

    numbers: Numbers
    error: str = ""


class SharedInputs(NamedTuple):
    """The data that all runs share."""

    spec: SweepSpec
    inputs: Inputs

    def run(self, point: Point) -> RunOutcome:
        """Execute one run. A failure is returned as an outcome, so that it does not stop the other runs."""
        try:
            numbers = measured(self._result(point), self.spec.measures)
            for name in (*OWN_COLUMNS, *point):
                if name in numbers:
                    raise InputError(f"a measure is named {name!r}, as another column is; give it another name")
            return RunOutcome(numbers)
        except PodiumError as error:
            return RunOutcome({}, str(error))
        except Exception as error:  # a plugin of the user's may fail in any way
            return RunOutcome({}, f"{type(error).__name__}: {error}")

    def _result(self, point: Point) -> Simulation | TimelineResult:
        spec, seed = self.spec, int(setting(self.spec, point, SEED, 0))
        cluster, trace = point.get("cluster", FIXED), point.get("trace", FIXED)
        options: dict[str, Any] = {
            "config": document_of(spec, self.inputs, point),
            "registry": registry_of(spec),
            "release": str(setting(spec, point, "release", CURRENT)),
            "tie_break": setting(spec, point, "tieBreak"),
            "seed": seed,
        }
        if spec.is_timeline:
            events = self.inputs.events[point.get("events", trace)]
            objects = self._prepared(self.inputs.objects(cluster, trace), seed)
            groups = self.inputs.node_groups.get(point.get("nodeGroups", FIXED))
            with closing(scaled(Timeline(objects, events, **options), groups)) as timeline:
                result = timeline.run(spec.until)
            for plugin, error in result.failed_plugins.items():
                _refuse_own(plugin, error)
            return result
        simulation = place_in_order(self._cluster(cluster, trace, seed), messages=False, **options)
        for placement in simulation.pending:
            _refuse_own(placement.failed_plugin, f"pod {placement.pod.key}: {placement.message}")
        return simulation

    def _cluster(self, cluster: str, trace: str, seed: int) -> Cluster:
        if not self.spec.prepare:
            return self.inputs.built(cluster, trace)
        return ClusterInput(self._prepared(self.inputs.objects(cluster, trace), seed)).cluster()

    def _prepared(self, objects: Objects, seed: int) -> Objects:
        """The objects that the user's function returns for a seed."""
        if not self.spec.prepare:
            return objects
        name = self.spec.prepare
        try:
            found = [*function_named(name)(objects, seed)]
        except Exception as error:  # a user's function may fail in any way
            raise InputError(f"{name} failed: {type(error).__name__}: {error}") from error
        for item in found:
            if not isinstance(item, Struct):
                raise InputError(f"{name} gave {item!r} among its objects; it needs to give objects of podium.model")
        return objects.replaced(found, ())


def _refuse_own(plugin: str, error: str) -> None:
    """Let a run fail if a plugin of the user's own failed in it; its numbers would mean nothing."""
    if plugin and plugin not in IN_TREE:
        raise InputError(error)


def described(point: Mapping[str, str]) -> str:
    """`config=FGD, seed=3`: the inputs of a run in a message."""
    return ", ".join(f"{name}={label}" for name, label in point.items()) or "the only run"


Done = tuple[int, Any]
"""The index of an item, and its result."""
FORK_SERVER = "forkserver"
"""How worker processes are started: from a process that has imported everything, and has no threads."""
CONNECT_WITHIN = 10
"""How many seconds to wait for a Dask scheduler to answer."""
ALLOWED_DEATHS = 10
"""How many workers may die during a run before it counts as failed: the run itself may be what kills them."""


class InProcess:
    """Runs items one after the other in this process."""

    def run(self, method: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]) -> Iterator[Done]:
        return ((place, method(shared, item)) for place, item in enumerate(items))


class SentObject:
    """An object on its way to workers, packed until a worker needs it: they pass the bytes on to each other, which is
    faster than packing the object again.
    """

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._object: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return SentObject, (self._packed,)

    def run(self, method: Callable[[Any, Any], Any], item: Any) -> Any:
        """Run a method of the object with an item."""
        if self._object is None:
            with collector_paused():
                self._object = pickle.loads(self._packed)
        return method(self._object, item)


class DaskWorkers:
    """Runs items on the workers of a Dask cluster.

    The shared object is part of the task graph: each worker gets it once, and a worker that joins later gets it from
    the scheduler.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._sent: tuple[Any, Any] | None = None

    def run(self, method: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]) -> Iterator[Done]:
        if self._sent is None or self._sent[0] is not shared:
            with warnings.catch_warnings():
                # Dask recommends to scatter large data, but scattered data is lost with its worker.
                warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
                self._sent = shared, self._client.submit(SentObject, pickle.dumps(shared))
        # Dask logs a future that is interrupted while it is created.
        with interrupts_held_back():
            futures = [self._client.submit(SentObject.run, self._sent[1], method, item, pure=False) for item in items]
        places = {future.key: place for place, future in enumerate(futures)}
        for future in _distributed().as_completed(futures):
            error = future.exception()
            yield places[future.key], future.result() if error is None else error


def in_process() -> AbstractContextManager[Workers]:
    """This process."""

    @contextmanager
    def opened() -> Iterator[Workers]:
        yield InProcess()

    return opened()


def local_processes(number: int) -> AbstractContextManager[Workers]:
    """`number` worker processes on this machine. They are forked from a process that starts to import what they need as
    soon as this function is called.
    """
    get_context(FORK_SERVER).set_forkserver_preload(["distributed", __name__])
    with interrupts_held_back():
        forkserver.ensure_running()
    return _local_processes(number)


@contextmanager
def _local_processes(number: int) -> Iterator[Workers]:
    distributed = _distributed()
    try:
        with interrupts_held_back():
            cluster = distributed.LocalCluster(
                n_workers=number,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                host="127.0.0.1",
                silence_logs=logging.CRITICAL + 1,  # what it was doing when an interrupt came is no news
            )
    except RuntimeError as error:
        raise InputError(f"{number} processes could not be started: {error} Start again, or use --jobs 1") from None
    with cluster, distributed.Client(cluster) as client:
        yield DaskWorkers(client)


@contextmanager
def dask_cluster(address: str) -> Iterator[Workers]:
    """The workers of the Dask scheduler at an address such as tcp://HOST:8786."""
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=CONNECT_WITHIN)
    except (OSError, ValueError, TypeError) as error:
        problem = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"no Dask scheduler can be reached at {address}: {problem}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"the Dask scheduler at {address} has no workers; start some with `dask worker {address}`")
        yield DaskWorkers(client)


def _distributed() -> ModuleType:
    try:
        import dask
        import distributed
    except ImportError:
        raise InputError("several processes need Dask: pip install 'podium[sweep]', or use --jobs 1") from None
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": ALLOWED_DEATHS,
            "distributed.worker.multiprocessing-method": FORK_SERVER,
            # A run keeps its process busy for seconds; profiling it a hundred times a second would slow it down.
            "distributed.worker.profile.enabled": False,
            "distributed.admin.tick.interval": "1s",
            "distributed.admin.system-monitor.interval": "5s",
        }
    )
    return distributed
