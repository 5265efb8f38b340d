"""Running the command line in this process, and small files to run it on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from podium.cli import app

EXAMPLE = str(Path(__file__).parents[2] / "src" / "podium" / "example" / "cluster.yaml")


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    """What `podium` does with these arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin, prog_name="podium")


def written(path: Path, *objects: dict[str, Any]) -> Path:
    """A file with these objects."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return path


def node(name: str = "n1", **fields: Any) -> dict[str, Any]:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"allocatable": allocatable | fields.pop("allocatable", {})}
    metadata = {"name": name, "labels": fields.pop("labels", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": fields, "status": status}


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": spec.pop("namespace", "default"), "labels": spec.pop("labels", {})}
    status = {"phase": spec.pop("phase", "Pending")}
    container = {"name": "c", "image": "i", "resources": {"requests": spec.pop("requests", {"cpu": "1"})}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
        "status": status,
    }


def config(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **fields}
