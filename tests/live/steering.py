"""A plugin for the extender's test: the pool that a pod names, and in it the newest nodes."""

from __future__ import annotations

from typing import Any

from podium import SUCCESS, FilterPlugin, ScorePlugin, Status


class Steering(FilterPlugin, ScorePlugin):
    """Only nodes of the pod's pool; of these, the higher the rank the better."""

    name = "Steering"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status:
        wanted = pod.metadata.labels.get("pool")
        return SUCCESS if wanted in (None, node.labels.get("pool")) else Status.unresolvable("node(s) in another pool")

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 10 * int(node.labels.get("rank", "0"))


class FewPods(FilterPlugin):
    """At most ten pods a node, which takes knowing the pods that are there."""

    name = "FewPods"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status:
        return SUCCESS if len(node.pods) < 10 else Status.unschedulable("node(s) have ten pods")
