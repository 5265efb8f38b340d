"""ImageLocality: images of the pod that a node has already."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.framework import Change
from podium.framework.plugin import MAX_NODE_SCORE, CycleState, PodView, ScorePlugin
from podium.framework.suggested_change import pull_image
from podium.model import Pod, PodSpec
from podium.rules import Rules

MEBI = 1024 * 1024
LEAST = 23 * MEBI
MOST_PER_CONTAINER = 1000 * MEBI


def normalized_image_name(name: str) -> str:
    """The image name with a tag; `:latest` if it has none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


class CountedImages(NamedTuple):
    """The images of a pod that count, and the number of images that sets the largest size that counts."""

    names: tuple[str, ...]
    expected: int


def counted_images(spec: PodSpec, rules: Rules) -> CountedImages:
    """The images of a pod that a release counts."""
    first = spec.init_containers if rules.image_locality_counts_init_containers else []
    names = [each.image for each in (*first, *spec.containers)]
    mounted = [volume.image.reference for volume in spec.volumes if volume.image is not None]
    expected = len(names) + (len(mounted) if rules.image_locality_expects_volumes else 0)
    if rules.image_locality_counts_volumes:
        names += mounted
    return CountedImages(tuple([normalized_image_name(name) for name in names]), expected)


class ImageLocality(ScorePlugin):
    """Score by the bytes of images a node has, each scaled by the share of nodes that have it, so as not to
    heat one node.
    """

    name = "ImageLocality"
    title = "Image"
    reads = Aspect.IMAGES

    def sign(self, pod: PodView) -> Hashable:
        # The names as written: finding out which images count would take longer than it saves.
        first, others, volumes = pod.spec.init_containers, pod.spec.containers, pod.spec.volumes
        mounted = [volume.image.reference for volume in volumes if volume.image is not None]
        return tuple([each.image for each in first]), tuple([each.image for each in others]), tuple(mounted)

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        cluster, images = nodes.cluster, counted_images(pod.spec, self.release_rules)
        total = np.zeros(len(nodes), dtype=np.int64)
        for image in images.names:
            found = cluster.images.states.get(image)
            if found is not None:
                share = len(found.rows) / cluster.node_count
                total += nodes.among(found.rows) * int(found.size * share)
        most = MOST_PER_CONTAINER * images.expected
        bounded = np.where(total < LEAST, LEAST, np.minimum(total, most))
        return MAX_NODE_SCORE * (bounded - LEAST) // (most - LEAST)

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        cluster, lines, total = node.cluster, [], 0
        images = counted_images(pod.spec, self.release_rules)
        for name in images.names:
            found = cluster.images.states.get(name)
            if found is None or node.row not in found.rows:
                lines.append(f"{name}: not on the node")
                continue
            total += int(found.size * (len(found.rows) / cluster.node_count))
            having = f"{len(found.rows):,} of {cluster.node_count:,} nodes that have it"
            lines.append(f"{name}: {found.size:,} bytes * {having}")
        most = MOST_PER_CONTAINER * images.expected
        score = MAX_NODE_SCORE * (max(LEAST, min(total, most)) - LEAST) // (most - LEAST)
        return [*lines, f"{total:,} bytes, where 23 MiB give 0 and {most // MEBI:,} MiB give 100: {score}"]

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return image_fixes(pod, node, cluster)


def image_fixes(pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
    """Pull an image of the pod that other nodes have and this node lacks."""
    have = {name for image in cluster.node(node).status.images for name in image.names}
    sizes: dict[str, int] = {}
    for other in cluster.rows:
        for image in cluster.node(other).status.images:
            sizes.update(dict.fromkeys(image.names, image.size_bytes))
    for name in dict.fromkeys(container.image for container in (*pod.spec.containers, *pod.spec.init_containers)):
        if name in sizes and name not in have:
            yield pull_image(node, name, sizes[name])
