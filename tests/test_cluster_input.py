"""From what a user named to a prepared cluster: what is read, what is carried out, which pods workloads create."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.running import node, pod, written
from podium.cluster_input import ClusterInput
from podium.errors import InputError
from podium.model import Pod


def deployment(replicas: int, image: str = "one") -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def names(found: ClusterInput) -> list[str]:
    return [each.name for each in found.expanded.of(Pod)]


def test_workloads_have_their_pods() -> None:
    found = ClusterInput.read([node(), pod("alone"), deployment(2)])

    assert [each.name for each in found.objects.of(Pod)] == ["alone"]
    assert len(names(found)) == 3
    assert len(found.cluster().pending) == 3
    assert repr(found) == "<ClusterInput: 3 objects, 0 warnings>"


def test_changes_of_later_files_are_carried_out(tmp_path: Path) -> None:
    before = written(tmp_path / "before.json", node(), deployment(2))
    running = ClusterInput.read(str(before)).expanded
    after = written(tmp_path / "after.json", deployment(1, image="two"))
    found = ClusterInput.read(str(before), str(after))

    assert [applied.kind for applied in found.objects.applied] == ["Deployment"]
    assert len(names(found)) == 1
    assert {*names(found)}.isdisjoint(each.name for each in running.of(Pod))


def test_a_source_named_twice_is_read_once(tmp_path: Path) -> None:
    file = str(written(tmp_path / "cluster.json", node(), pod()))

    assert ClusterInput.read(file, file).objects.unchanged == 0


def test_a_cluster_needs_nodes_unless_they_come_later(tmp_path: Path) -> None:
    file = str(written(tmp_path / "pods.json", pod()))

    with pytest.raises(InputError, match=r"no node in .*pods\.json: get them with `kubectl get nodes -o json`"):
        ClusterInput.read(file)
    with pytest.raises(InputError, match="no node in the input"):
        ClusterInput.read()
    assert names(ClusterInput.read(file, needs_nodes=False)) == ["web"]
    assert names(ClusterInput.read(needs_nodes=False)) == []


def test_strict_input_has_no_unknown_fields(tmp_path: Path) -> None:
    file = str(written(tmp_path / "cluster.json", node("n", unschedulabel=True)))

    assert len(ClusterInput.read(file).warnings) == 1
    with pytest.raises(InputError, match="unschedulabel"):
        ClusterInput.read(file, strict=True)
