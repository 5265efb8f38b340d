"""Where runs take place: in this process, in processes of this machine, or on the workers of a Dask cluster."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any, Protocol, TypeVar

from podium.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")
Done = tuple[int, Any]
"""The place of an item among those that were given, and what came of it."""
CONNECT_WITHIN = 10
"""Seconds after which a Dask scheduler that does not answer is given up."""
ALLOWED_DEATHS = 10
"""With how many dying workers a run may be lost before it counts as failed: it may be what kills them."""


class Workers(Protocol):
    """Calls a method of a shared object for many items."""

    def run(self, method: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]) -> Iterator[Done]:
        """What comes of each item, as it is done; an exception where a worker could not do it at all."""
        ...


class InProcess:
    """One after the other, in this process."""

    def run(self, method: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]) -> Iterator[Done]:
        return ((place, method(shared, item)) for place, item in enumerate(items))


class DaskWorkers:
    """The workers of a Dask cluster.

    The shared object is part of the task graph: each worker gets it once, and a worker that comes later, or in the
    place of one that died, gets it from the scheduler again.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._sent: tuple[Any, Any] | None = None

    def run(self, method: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]) -> Iterator[Done]:
        if self._sent is None or self._sent[0] is not shared:
            with warnings.catch_warnings():
                # Dask would have large data scattered, which is lost with the worker that has it.
                warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
                self._sent = shared, self._client.submit(pickle.loads, pickle.dumps(shared))
        futures = [self._client.submit(method, self._sent[1], item, pure=False) for item in items]
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


@contextmanager
def local_processes(number: int) -> Iterator[Workers]:
    """So many processes of this machine."""
    distributed = _distributed()
    with (
        distributed.LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
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
    dask.config.set({"distributed.scheduler.allowed-failures": ALLOWED_DEATHS})
    return distributed
