"""A served cluster and a browser to look at it with."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def script(name: str) -> str:
    """A function of JavaScript to run in a page, out of the file of that name."""
    text = Path(__file__).with_name(f"{name}.js").read_text()
    return text[text.index("\n") + 1 :]


def until(page: Any, expression: str, seconds: float = 30.0) -> None:
    """Wait for an expression to hold; the page's own policy forbids what Playwright would do for that."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        time.sleep(0.05)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def podium_running(*arguments: str | Path, port: int = 0) -> Iterator[tuple[str, int]]:
    """`podium serve` or `podium extender`: its address, and its process; on a free port unless one is given."""
    port = port or free_port()
    code = "from podium.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{url}/livez", process)
        yield url, process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "podium ended"
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{url} does not answer")


def written(path: Path, items: list[dict[str, Any]]) -> Path:
    """A file with these objects."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def large_cluster(nodes: int, pods: int) -> list[dict[str, Any]]:
    """Nodes of three sizes in three zones, pods of fifty apps on them, and a hundred that wait."""
    draw = random.Random(1)
    items = [_node(number, draw) for number in range(nodes)]
    return items + [_pod(number, draw, nodes, number < pods) for number in range(pods + 100)]


def _node(number: int, draw: random.Random) -> dict[str, Any]:
    name, cpu = f"node-{number:05d}", draw.choice([8, 16, 32])
    taints = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}] if number % 17 == 0 else []
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{number % 3 + 1}",
        "pool": draw.choice(["general", "compute", "spot"]),
    }
    images = [
        {"names": [f"registry.example/app{app}:1"], "sizeBytes": 200_000_000} for app in draw.sample(range(50), 5)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "pods": "110"}, "images": images},
    }


def _pod(number: int, draw: random.Random, nodes: int, runs: bool) -> dict[str, Any]:
    app = f"app{number % 50}"
    requests = {"cpu": draw.choice(["100m", "250m", "500m"]), "memory": draw.choice(["128Mi", "512Mi", "1Gi"])}
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": f"registry.example/{app}:1", "resources": {"requests": requests}}]
    }
    if number % 5 == 0:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 5,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": app}},
            }
        ]
    if runs:
        spec["nodeName"] = f"node-{draw.randrange(nodes):05d}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": f"team-{number % 10}", "name": f"{app}-{number}", "labels": {"app": app}},
        "spec": spec,
    }
