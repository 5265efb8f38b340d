"""The schedulers under test, as processes: Podium and kube-scheduler."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from live.commands import BIN
from live.control_plane import ADMIN, BINARIES, ControlPlane, Process, answer_of, free_port

FAST = {"qps": 5000, "burst": 5000}
"""The client limits, lifted."""


def configuration(plane: ControlPlane, name: str, *, lease: str = "", **fields: Any) -> Path:
    """A KubeSchedulerConfiguration file with one profile of this name, unless `fields` say otherwise."""
    election: dict[str, Any] = {"leaderElect": bool(lease)}
    if lease:
        times = {"leaseDuration": "12s", "renewDeadline": "10s", "retryPeriod": "1s"}
        election |= {"resourceName": lease, "resourceNamespace": "kube-system", **times}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {**FAST, "kubeconfig": str(plane.kubeconfig(f"{name}.kubeconfig"))},
        "leaderElection": election,
        "profiles": [{"schedulerName": name}],
        **fields,
    }
    path = plane.directory / f"{name}.config"
    path.write_text(json.dumps(document))
    return path


class Podium(Process):
    """`podium run`, ready."""

    def __init__(
        self,
        plane: ControlPlane,
        *arguments: str,
        config: Path | None = None,
        log: str = "podium.log",
        server: str = "",
        token: str = ADMIN,
        environment: Mapping[str, str] = {},
    ) -> None:
        """`server` is another URL of the API server, such as a proxy's."""
        self.port = free_port()
        kubeconfig = plane.kubeconfig(f"{log}.kubeconfig", server=server, token=token)
        config = config or configuration(plane, "podium")
        options: list[str | Path] = ["run", "--config", config, "--kubeconfig", kubeconfig, "--port", str(self.port)]
        environment = {"PYTHONFAULTHANDLER": "1", **environment}
        super().__init__([BIN / "podium", *options, *arguments], plane.directory / log, environment)
        plane.schedulers.append(self)

    def get(self, path: str, token: str = "") -> str:
        """The text of an answer; fails if it is a refusal."""
        status, text = answer_of(f"http://127.0.0.1:{self.port}{path}", token=token)
        assert status == 200, text
        return text

    def metrics(self) -> str:
        """What it measured, as Prometheus reads it."""
        return self.get("/metrics")

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        def is_ready() -> bool:
            assert self.is_running, self.output
            try:
                return answer_of(f"http://127.0.0.1:{self.port}/readyz")[0] == 200
            except OSError:
                return False

        wait_until(is_ready, seconds)


class KubeScheduler(Process):
    """The real kube-scheduler."""

    def __init__(self, plane: ControlPlane, config: Path | None = None) -> None:
        path = config or configuration(plane, "kube-scheduler")
        self.port = free_port()
        super().__init__(
            [
                BINARIES / "kube-scheduler",
                f"--config={path}",
                f"--secure-port={self.port}",
                "--bind-address=127.0.0.1",
                f"--authentication-kubeconfig={plane.kubeconfig('auth.kubeconfig')}",
                f"--authorization-kubeconfig={plane.kubeconfig('auth.kubeconfig')}",
            ],
            plane.directory / "kube-scheduler.log",
        )
        plane.schedulers.append(self)

    def metrics(self) -> str:
        """What it measured, as Prometheus reads it."""
        # Its certificate is its own, made when it starts.
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=ssl._create_unverified_context())
        try:
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {ADMIN}"})
            with connection.getresponse() as response:
                text = response.read().decode()
        finally:
            connection.close()
        assert response.status == 200, text
        return text


COMPARED = "compared"
"""The schedulerName of both, so that even texts with it in them must be the same."""
SCHEDULERS: dict[str, Callable[[ControlPlane], KubeScheduler | Podium]] = {
    "kube-scheduler": lambda plane: KubeScheduler(plane, configuration(plane, COMPARED)),
    "podium": lambda plane: Podium(plane, config=configuration(plane, COMPARED)),
}


def wait_until(holds: Callable[[], bool], seconds: float = 60.0, every: float = 0.1) -> None:
    """Wait until something holds; fails if that takes too long."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come to hold in time"
        time.sleep(every)
