"""ImageLocality: nodes that have the pod's images start it sooner."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from podium.cluster import Aspect, Nodes
from podium.cluster.columns import Ints
from podium.framework.plugin import MAX_NODE_SCORE, CycleState, PodView, ScorePlugin
from podium.model import Pod, PodSpec

MEBI = 1024 * 1024
LEAST = 23 * MEBI
MOST_PER_CONTAINER = 1000 * MEBI


def normalized_image_name(name: str) -> str:
    """The name with a tag: `:latest` where it has none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _images(spec: PodSpec) -> list[str]:
    """The images of the containers, then those that volumes mount, under their full names."""
    mounted = [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return [normalized_image_name(each.image) for each in (*spec.init_containers, *spec.containers)] + [
        normalized_image_name(name) for name in mounted
    ]


class ImageLocality(ScorePlugin):
    """Score by the bytes of images a node has, each scaled by how many nodes have it, so as not to heat one node."""

    name = "ImageLocality"
    title = "Image"
    reads = Aspect.IMAGES

    def sign(self, pod: PodView) -> Hashable:
        spec = pod.spec
        return len(spec.init_containers) + len(spec.containers), tuple(_images(spec))

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        cluster = nodes.cluster
        total = np.zeros(len(nodes), dtype=np.int64)
        for image in _images(pod.spec):
            found = cluster.images.states.get(image)
            if found is not None:
                share = len(found.rows) / cluster.node_count
                total += nodes.among(found.rows) * int(found.size * share)
        most = MOST_PER_CONTAINER * (len(pod.spec.init_containers) + len(pod.spec.containers))
        bounded = np.where(total < LEAST, LEAST, np.minimum(total, most))
        return MAX_NODE_SCORE * (bounded - LEAST) // (most - LEAST)
