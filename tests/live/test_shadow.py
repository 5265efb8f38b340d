"""`podium shadow` beside the real kube-scheduler: it agrees, and says when it cannot know."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from live.cluster_objects import NODES, PODS, node, pod
from live.commands import BIN
from live.control_plane import ControlPlane, Process
from live.many_objects import create_all, wait_for_bound
from live.schedulers import KubeScheduler, configuration, wait_until

COUNT = 60


def different_pods() -> list[dict[str, Any]]:
    """Pods of many sizes, so that mostly one node is best."""
    return [
        pod(f"pod-{k}", cpu=f"{50 + 7 * k}m", memory=f"{40 + 11 * k}Mi", schedulerName="followed") for k in range(COUNT)
    ]


def test_agrees_with_kube_scheduler(fresh_plane: ControlPlane) -> None:
    create_all(fresh_plane, NODES, (node(f"node-{k}", cpu=str(4 + k % 5), memory=f"{6 + k % 7}Gi") for k in range(20)))
    config, log = configuration(fresh_plane, "followed"), fresh_plane.directory / "shadow.jsonl"
    kubeconfig = fresh_plane.kubeconfig("shadow.kubeconfig")
    arguments: list[str | Path] = ["shadow", "--kubeconfig", kubeconfig, "--config", config, "--log", log]
    shadow = Process([BIN / "podium", *arguments], fresh_plane.directory / "shadow.log")
    fresh_plane.schedulers.append(shadow)
    wait_until(lambda: "following 20 nodes" in shadow.output)
    scheduler = KubeScheduler(fresh_plane, config)

    for each in different_pods():
        fresh_plane.create(PODS, each)
    wait_for_bound(fresh_plane, COUNT, 120)
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) == COUNT)
    shadow.send(signal.SIGINT)

    assert shadow.wait(20) == 0
    scheduler.stop()
    outcomes = [json.loads(line)["outcome"] for line in log.read_text().splitlines()]
    known = [outcome for outcome in outcomes if outcome != "unknown"]
    assert len(known) >= COUNT * 0.9
    # The scheduler counts pods that it has decided and not bound yet; the shadow sees them a moment later.
    assert sum(outcome in ("same", "tie") for outcome in known) >= 0.9 * len(known), shadow.output
    assert "agreement " in shadow.output.splitlines()[-1]
    assert "Traceback" not in shadow.output
