"""A pod waits until those are on their way that have to go for it."""

from __future__ import annotations

from msgspec.structs import replace

from builders import make_pod
from podium.framework import SUCCESS
from podium.live.preemptions import WAITING, Preemptions
from podium.model import Pod


def pod(name: str) -> Pod:
    made = make_pod(name)
    return replace(made, metadata=replace(made.metadata, uid=f"uid of {name}"))


IMPORTANT, OTHER, FIRST, SECOND = (pod(name) for name in ("important", "other", "first", "second"))


def under_way() -> Preemptions:
    preemptions = Preemptions()
    preemptions.begin(IMPORTANT, [FIRST, SECOND])
    return preemptions


def test_it_waits_for_all_of_them() -> None:
    preemptions = under_way()
    preemptions.pod_goes(FIRST)
    preemptions.pod_goes(OTHER)
    assert preemptions.status(IMPORTANT) == WAITING
    preemptions.pod_goes(SECOND)
    assert preemptions.status(IMPORTANT) == SUCCESS


def test_others_do_not_wait() -> None:
    assert under_way().status(OTHER) == SUCCESS


def test_it_does_not_wait_for_those_that_cannot_be_evicted() -> None:
    preemptions = under_way()
    preemptions.give_up(IMPORTANT)
    assert preemptions.status(IMPORTANT) == SUCCESS


def test_the_plugin_asks() -> None:
    preemptions = under_way()
    plugin = preemptions.plugin()()
    assert plugin.pre_enqueue(IMPORTANT) == WAITING
    assert plugin.pre_enqueue(OTHER) == SUCCESS
