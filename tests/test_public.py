"""The public names: sorted, all there, and meaning the same in whichever order things are imported."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.resources import files

import pytest

import podium
from podium import Cluster, Scheduler, load


def test_names_are_sorted_and_there() -> None:
    assert podium.__all__ == [*sorted(podium.__all__[:-1]), "__version__"]
    assert [name for name in podium.__all__ if not hasattr(podium, name)] == []
    assert set(podium.__all__) <= set(dir(podium))


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="module 'podium' has no attribute 'frobnicate'"):
        _ = import_module("podium").frobnicate


ORDERS = {
    "the function": "from podium import load",
    "the package first": "import podium.manifests.files; from podium import load",
    "the package afterwards": "from podium import load; import podium.manifests; from podium import load",
    "everything": "from podium import *",
}


@pytest.mark.parametrize("imports", ORDERS.values(), ids=ORDERS)
def test_load_is_the_function(imports: str) -> None:
    code = f"{imports}; print(load({{'kind': 'Node', 'metadata': {{'name': 'n'}}}})[0].name)"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "n\n"


def test_as_in_a_notebook() -> None:
    objects = load(str(files("podium.example") / "cluster.yaml"))
    cluster = Cluster.from_objects(objects)

    decision = Scheduler(cluster).decide(cluster.pending["shop/web-5f7c9-new"])

    assert decision.node == "web-c1"
    assert decision.totals["web-c1"] == 1044
    assert decision.explain().startswith("Pod shop/web-5f7c9-new goes to web-c1")
    assert decision.to_dict()["node"] == "web-c1"
