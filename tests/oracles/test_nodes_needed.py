"""--nodes-needed is what trying every small mix of nodes finds."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

from hypothesis import given

from builders import HOSTNAME, ZONE, make_node, make_pod, spread
from oracles.random_clusters import seeds
from podium.answers import NodeTemplate, nodes_needed
from podium.answers.node_mixes import add_template
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Node, Pod

MOST = 4
"""The number of nodes of each template that are tried."""


def random_question(seed: int) -> tuple[Cluster, list[Pod], list[NodeTemplate]]:
    draw = Random(seed)
    there = [_node(draw, f"there{number}") for number in range(draw.randint(0, 2))]
    templates = [
        NodeTemplate(_node(draw, f"new{number}"), draw.choice((1.0, 2.0, 2.5))) for number in range(draw.randint(1, 3))
    ]
    fields: dict[str, Any] = {"requests": {"cpu": str(draw.randint(1, 3))}, "labels": {"app": "web"}}
    if draw.random() < 0.5:
        fields["topology_spread_constraints"] = [spread(draw.choice((ZONE, HOSTNAME)), {"app": "web"})]
    pods = [make_pod(f"p{number}", **fields) for number in range(draw.randint(1, 5))]
    return Cluster.from_objects(there), pods, templates


def _node(draw: Random, name: str) -> Node:
    return make_node(name, cpu=str(draw.randint(1, 5)), labels={ZONE: draw.choice("ab"), HOSTNAME: name})


def left_by(cluster: Cluster, pods: list[Pod], templates: list[NodeTemplate], counts: tuple[int, ...]) -> int:
    """How many pods fit nowhere with these nodes, tried again as long as one finds a node."""
    trial = cluster.fork()
    scheduler, waiting = Scheduler(trial, tie_break="first"), list(pods)
    waiting = _rest(scheduler, waiting)
    for number, template in zip(counts, templates, strict=True):
        add_template(trial, template, number)
    return len(_rest(scheduler, waiting))


def _rest(scheduler: Scheduler, pods: list[Pod]) -> list[Pod]:
    while True:
        waiting = [pod for pod in pods if scheduler.schedule(pod) is None]
        if len(waiting) in (0, len(pods)):
            return waiting
        pods = waiting


@given(seeds)
def test_no_mix_is_better_than_the_answer(seed: int) -> None:
    cluster, pods, templates = random_question(seed)

    answer = nodes_needed(cluster, pods, templates)

    prices = [template.price for template in templates]
    mixes = [
        (left_by(cluster, pods, templates, counts), sum(map(float.__mul__, map(float, counts), prices)))
        for counts in product(range(min(MOST, len(pods)) + 1), repeat=len(templates))
        if sum(counts) <= len(pods)
    ]
    left, price = min(mixes)
    assert answer.search.complete
    assert len(answer.best.left) <= left
    if len(answer.best.left) == left == 0:
        assert answer.best.price <= price
        assert answer.search.at_least == answer.best.price
    chosen = tuple(answer.best.counts.get(template.name, 0) for template in templates)
    assert left_by(cluster, pods, templates, chosen) == len(answer.best.left)
