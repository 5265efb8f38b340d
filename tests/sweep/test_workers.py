"""Sweeps on a real cluster of worker processes: the same rows as in one process, also when a worker is killed."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.running import node, pod, run, written
from sweep.sweep_files import write_module, write_sweep

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

KILLED_ONCE = """
import os, pathlib, signal

def prepare(objects, seed):
    marker = pathlib.Path({marker!r})
    with (marker.parent / "pids").open("a") as pids:
        pids.write(f"{{os.getpid()}} {{id(objects)}}\\n")
    if seed == 3 and {kills} and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return objects
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A scheduler with two worker processes."""
    distributed = importlib.import_module("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with warnings.catch_warnings(), distributed.LocalCluster(**options) as cluster:
        yield cluster.scheduler_address


def swept(folder: Path, *arguments: Any, kills: bool = False) -> bytes:
    """The rows of eight runs."""
    folder.mkdir()
    write_module(folder, KILLED_ONCE.format(marker=str(folder / "killed"), kills=kills))
    axes = {"weight.NodeResourcesFit": [1, 2], "seed": {"from": 1, "to": 4}}
    file = write_sweep(folder, prepare="own_study:prepare", axes=axes, minimize="pending")
    done = run("sweep", file, "--out", folder / "out", *arguments)
    assert done.exit_code == 0, done.stderr
    return (folder / "out" / "rows.csv").read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return swept(tmp_path_factory.mktemp("one") / "process", "--jobs", "1")


def test_workers_give_the_rows_of_one_process(tmp_path: Path, address: str, expected: bytes) -> None:
    assert swept(tmp_path / "a", "--dask", address) == expected
    seen = [line.split() for line in (tmp_path / "a" / "pids").read_text().splitlines()]
    assert str(os.getpid()) not in [pid for pid, _ in seen]
    # The cluster came to each worker once: all of its runs were given the same objects.
    assert len({(pid, objects) for pid, objects in seen}) == len({pid for pid, _ in seen})


def test_a_worker_that_is_killed_loses_nothing_but_time(tmp_path: Path, address: str, expected: bytes) -> None:
    assert swept(tmp_path / "a", "--dask", address, kills=True) == expected
    assert (tmp_path / "a" / "killed").exists()
    assert len((tmp_path / "a" / "pids").read_text().splitlines()) > 8


def test_tuning_on_workers_finds_what_one_process_finds(tmp_path: Path, address: str) -> None:
    file = str(written(tmp_path / "c.json", *(node(f"n{n}") for n in range(3)), *(pod(f"p{n}") for n in range(4))))
    arguments = ["tune", "-f", file, "--trials", "4", "-o", "json"]
    alone, workers = run(*arguments, "--jobs", "1"), run(*arguments, "--dask", address)
    assert workers.exit_code == alone.exit_code == 0, workers.stderr
    assert workers.stdout == alone.stdout


def test_processes_of_this_machine_give_the_same_rows(tmp_path: Path, expected: bytes) -> None:
    assert swept(tmp_path / "a", "--jobs", "2") == expected
