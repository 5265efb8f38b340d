"""How long a timeline takes whose cluster grows and shrinks: `python -m bench.autoscaling [PODS]`."""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import tempfile
import time
from pathlib import Path

import yaml

from bench.hour import Fields
from podium import Timeline
from podium.autoscaling import Autoscaler, read_node_groups

SIZES = (("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"), ("2", "4Gi"))
APPS = 40
STRATEGIES = ("cluster-autoscaler", "karpenter")


def node_groups(strategy: str) -> Fields:
    """Two groups: up to 200 nodes of 4 cores and up to 100 of 8."""
    sizes = (("small", 4, 16, 0.2, 200), ("large", 8, 32, 0.39, 100))
    groups = []
    for name, cpu, memory, price, most in sizes:
        size = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "110"}
        limits = {"maxSize": most, "bootTime": "60s", "pricePerHour": price}
        groups.append({"name": name, **limits, "template": {"status": {"allocatable": size}}})
    return {"strategy": strategy, "groups": groups}


def growing_events(pods: int, seed: int = 1, seconds: int = 3600) -> list[Fields]:
    """Pods of 40 kinds that come within an hour and run for 5 to 40 minutes."""
    chance, events = random.Random(seed), []
    for number in range(pods):
        app = chance.randrange(APPS)
        name, (cpu, memory) = f"app-{app}", SIZES[app % len(SIZES)]
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
        metadata = {"name": f"{name}-{number:05}", "namespace": "default", "labels": {"app": name}}
        container = {"name": "main", "image": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "ownerReferences": [owner]},
            "spec": {"containers": [container]},
        }
        at, lifetime = chance.uniform(0, seconds), chance.uniform(300, 2400)
        events.append({"time": at, "event": "add", "object": pod, "lifetime": lifetime})
    return sorted(events, key=lambda event: float(event["time"]))


def measure(strategy: str, pods: int) -> str:
    """Simulate it until nothing more happens; the processor time, the most nodes, and a digest of the history."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "groups.yaml")
        file.write_text(yaml.safe_dump(node_groups(strategy)))
        timeline = Timeline([], growing_events(pods))
        Autoscaler(timeline, read_node_groups(str(file)))
    start = time.process_time()
    result = timeline.run()
    seconds = time.process_time() - start
    history = json.dumps([list(result.log), result.scaling], default=str)
    digest = hashlib.sha256(history.encode()).hexdigest()[:12]
    most = max(sample.nodes for sample in result.samples)
    return f"{strategy}: {seconds:.1f} s for {pods:,} pods on up to {most} nodes; history {digest}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pods", nargs="?", type=int, default=2000)
    for strategy in STRATEGIES:
        print(measure(strategy, parser.parse_args().pods), flush=True)
