from __future__ import annotations

import subprocess
import sys

import pytest

from builders import make_node, make_object, make_pod
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine.release import known_crashes, release_of, release_of_nodes
from podium.errors import InputError
from podium.model import Node
from podium.rules import rules_of


def nodes(*versions: str) -> list[Node]:
    found = []
    for place, version in enumerate(versions):
        node = make_object("Node", f"n{place}", status={"nodeInfo": {"kubeletVersion": version}})
        assert isinstance(node, Node)
        found.append(node)
    return found


@pytest.mark.parametrize(
    ("versions", "release"),
    [
        (("v1.33.5",), "v1.33"),
        (("v1.32.9", "v1.34.1-eks-1", "", "v1.33.0"), "v1.34"),
        (("v1.41.0",), "v1.37"),
    ],
)
def test_the_release_of_nodes_is_their_newest(versions: tuple[str, ...], release: str) -> None:
    assert release_of_nodes(nodes(*versions)).release == release


@pytest.mark.parametrize(
    ("versions", "problem"),
    [(("", ""), "no node has a kubelet version"), (("v1.27.3",), "the kubelet version of the only node is v1.27")],
)
def test_nodes_that_do_not_tell_the_release(versions: tuple[str, ...], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        release_of_nodes(nodes(*versions))


def test_schedulers_of_several_releases_take_turns_on_one_cluster() -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}
    holder = make_object(
        "Pod", "holder", spec={"nodeName": "a", "containers": [{"name": "c"}], "initContainers": [sidecar]}
    )
    cluster = Cluster.from_objects([make_node("a"), holder])
    old, new = (Scheduler(cluster, release=release) for release in ("v1.32", "v1.33"))
    wanted = make_pod("wanted", ports=[{"hostPort": 80}])

    for _ in range(2):
        assert old.decide(wanted).node == "a"
        assert new.decide(wanted).node is None


def test_a_current_release_does_not_load_the_old_ones() -> None:
    program = (
        "import sys\n"
        "from podium import Cluster, Scheduler, load\n"
        "import podium.answers, podium.cli.inputs\n"
        "node = {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'a'}}\n"
        "Scheduler(Cluster.from_objects(load([node])), release='v1.33')\n"
        "print([name for name in sys.modules if name.startswith('podium.releases')])\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_gates_of_a_release_that_are_kept_for_its_schedulers() -> None:
    release = release_of("v1.36").with_feature_gates({"StorageCapacityScoring": True})
    assert Scheduler(Cluster.from_objects([make_node("a")]), release=release).setup.rules.scores_storage_capacity


def test_what_would_crash_the_real_scheduler() -> None:
    capacity = make_object("CSIStorageCapacity", "c", maximumVolumeSize="1Gi", storageClassName="fast")
    (said,) = known_crashes([capacity], rules_of("v1.37"))
    assert "no capacity" in said
    assert known_crashes([capacity], rules_of("v1.36")) == []
