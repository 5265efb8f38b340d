"""`podium extender` and a stock kube-scheduler: a Python plugin decides where pods land."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from live.cluster_objects import NODES, PODS, node, pod
from live.commands import BIN
from live.control_plane import ControlPlane, Process, answer_of, free_port
from live.schedulers import KubeScheduler, configuration, wait_until

NAME = "extended"
PYTHON_PATH = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])


class Extender(Process):
    """`podium extender` with a plugin of the tests."""

    def __init__(self, plane: ControlPlane, port: int, *arguments: str | Path) -> None:
        self.port = port
        command = [BIN / "podium", "extender", "--port", str(port), *arguments]
        super().__init__(command, plane.directory / "extender.log", {"PYTHONPATH": PYTHON_PATH})
        plane.schedulers.append(self)

    def is_ready(self) -> bool:
        assert self.is_running, self.output
        try:
            return answer_of(f"http://127.0.0.1:{self.port}/readyz", 5)[0] == 200
        except OSError:
            return False

    def metrics(self) -> str:
        return answer_of(f"http://127.0.0.1:{self.port}/metrics", 5)[1]


def printed_entry(port: int, *arguments: str | Path) -> dict[str, Any]:
    """What `--print-config` says to paste."""
    command = [str(BIN / "podium"), "extender", "--port", str(port), "--print-config", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": PYTHON_PATH}
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    entry: dict[str, Any] = yaml.safe_load(text)["extenders"][0]
    return entry


@contextmanager
def serving(plane: ControlPlane, port: int, *arguments: str | Path) -> Iterator[Extender]:
    """An extender that runs, and is stopped."""
    extender = Extender(plane, port, *arguments)
    try:
        wait_until(extender.is_ready)
        yield extender
    finally:
        extender.stop()


@contextmanager
def extended(plane: ControlPlane, entry: dict[str, Any]) -> Iterator[KubeScheduler]:
    """A stock kube-scheduler with the extender."""
    profile = {"schedulerName": NAME, "percentageOfNodesToScore": 100}
    fields: dict[str, Any] = {"extenders": [entry], "profiles": [profile], "podMaxBackoffSeconds": 1}
    config = configuration(plane, NAME, **fields)
    scheduler = KubeScheduler(plane, config)
    try:
        yield scheduler
    finally:
        scheduler.stop()


def add_nodes(plane: ControlPlane, count: int = 20) -> None:
    for number in range(count):
        made = node(f"n{number:02d}", cpu="640", memory="640Gi", pods=300)
        made["metadata"]["labels"] |= {"pool": "blue" if number % 2 else "green", "rank": str(number % 5)}
        plane.create(NODES, made)


def add_pods(plane: ControlPlane, prefix: str, count: int, *, size: str = "1", **labels: str) -> None:
    for number in range(count):
        made = pod(f"{prefix}-{number}", cpu=size, memory=f"{size}Gi", labels=labels, schedulerName=NAME)
        plane.create(PODS, made)


def where(plane: ControlPlane, prefix: str = "") -> Counter[str]:
    names = (each for each in plane.pods() if each["metadata"]["name"].startswith(prefix))
    return Counter(each["spec"].get("nodeName", "") for each in names)


def all_bound(plane: ControlPlane, count: int) -> bool:
    return len(plane.pods()) == count and "" not in where(plane)


def test_filter_and_scores_of_a_python_plugin_show_in_where_500_pods_land(fresh_plane: ControlPlane) -> None:
    plane, port = fresh_plane, free_port()
    plugin = ("--plugin", "steering:Steering")
    entry = printed_entry(port, *plugin)
    assert (entry["nodeCacheCapable"], entry["filterVerb"]) == (False, "filter")
    add_nodes(plane)
    # A weight that no other plugin outweighs.
    with serving(plane, port, *plugin) as extender, extended(plane, entry | {"weight": 100}):
        add_pods(plane, "green", 250, pool="green")
        add_pods(plane, "blue", 250, pool="blue")
        wait_until(lambda: all_bound(plane, 500), 180)
        counted = extender.metrics()
    # Of the nodes of each pool, those of rank 4 have the highest score: n04 and n14, n09 and n19.
    assert set(where(plane, "green")) == {"n04", "n14"}
    assert set(where(plane, "blue")) == {"n09", "n19"}
    assert 'podium_extender_requests_total{verb="prioritize",code="200"} 5' in counted


def test_an_extender_that_is_away_is_passed_over_or_waited_for(fresh_plane: ControlPlane) -> None:
    plane, port = fresh_plane, free_port()
    plugin = ("--plugin", "steering:Steering")
    entry = printed_entry(port, *plugin) | {"weight": 100, "httpTimeout": "2s"}
    add_nodes(plane, 10)
    with serving(plane, port, *plugin) as extender, extended(plane, entry):
        add_pods(plane, "before", 20, pool="green")
        wait_until(lambda: all_bound(plane, 20))
        extender.kill()
        add_pods(plane, "away", 20, pool="green")
        wait_until(lambda: all_bound(plane, 40))
    assert set(where(plane, "before")) == {"n04"}
    assert "n04" not in where(plane, "away")
    with extended(plane, entry | {"ignorable": False}):
        add_pods(plane, "waiting", 20, pool="green")
        with pytest.raises(AssertionError):
            wait_until(lambda: all_bound(plane, 60), 6)
        assert set(where(plane, "waiting")) == {""}
        with serving(plane, port, *plugin):
            wait_until(lambda: all_bound(plane, 60), 120)
    assert set(where(plane, "waiting")) == {"n04"}


def test_with_a_kubeconfig_plugins_see_the_pods_that_are_there_and_the_extender_binds(
    fresh_plane: ControlPlane,
) -> None:
    plane, port = fresh_plane, free_port()
    arguments = ("--plugin", "steering:FewPods", "--kubeconfig", plane.kubeconfig(), "--bind")
    entry = printed_entry(port, *arguments)
    assert (entry["nodeCacheCapable"], entry["bindVerb"]) == (True, "bind")
    add_nodes(plane, 6)
    with serving(plane, port, *arguments) as extender, extended(plane, entry):
        # Small pods, which kube-scheduler alone would all put on one node. Its copy of the cluster is ahead of the
        # extender's, so that a round may go too far by its own pods.
        for number in range(12):
            add_pods(plane, f"few-{number}", 5, size="0.01")
            wait_until(partial(all_bound, plane, 5 * (number + 1)))
            time.sleep(0.3)
        assert 'podium_extender_requests_total{verb="bind",code="200"} 60' in extender.metrics()
    counts = where(plane)
    assert max(counts.values()) <= 14
    assert len(counts) >= 5
