"""Claims of volumes: reserved before a pod is bound, waited for, and what is told if they do not come."""

from __future__ import annotations

import asyncio

from builders import ZONE, make_node
from live_unit.api_server import PODS, ApiServer, Fields
from live_unit.running import running
from live_unit.virtual_time import run, until
from podium.live.client import ApiError
from storage_objects import BIND_COMPLETED, make_claim, make_class, make_volume, on_label, pod_with, uses

VOLUME, CLAIM = "/api/v1/persistentvolumes/disk", "/api/v1/namespaces/default/persistentvolumeclaims/data"
NODES = make_node("a", labels={ZONE: "one"}), make_node("b", labels={ZONE: "two"})
POD = pod_with(uses("data"), "web")
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def with_volume() -> ApiServer:
    """A volume in zone two, and a pod with a claim that fits it."""
    volume = make_volume("disk", storage_class="local", nodes=on_label(ZONE, "two"))
    local = make_class("local", "kubernetes.io/no-provisioner")
    return ApiServer(*NODES, local, volume, make_claim("data", storage_class="local"), POD)


def with_provisioner() -> ApiServer:
    """A pod with a claim whose volume has to be made."""
    return ApiServer(*NODES, make_class("made"), make_claim("data", storage_class="made"), POD)


def finish_binding(server: ApiServer) -> None:
    """Do what the controller of volumes does with a claim that has got its volume."""

    def bound(claim: Fields) -> None:
        claim["metadata"].setdefault("annotations", {}).update(BIND_COMPLETED)
        claim["spec"]["volumeName"] = "disk"
        claim["status"]["phase"] = "Bound"

    server.change(CLAIM, bound)


def failures(server: ApiServer) -> list[str]:
    said = 'running PreBind plugin "VolumeBinding": '
    return [event["note"].removeprefix(said) for event in server.events("FailedScheduling")]


def selected(server: ApiServer) -> str:
    node: str = server.objects[CLAIM]["metadata"].get("annotations", {}).get(SELECTED_NODE, "")
    return node


def test_a_volume_is_reserved_and_the_pod_waits_until_it_is_bound() -> None:
    async def story() -> None:
        server = with_volume()
        async with running(server):
            await until(lambda: "claimRef" in server.objects[VOLUME]["spec"])
            await asyncio.sleep(60)
            assert server.node_of("web") == ""
            assert server.objects[f"{PODS}/web"]["status"]["nominatedNodeName"] == "b"
            finish_binding(server)
            await until(lambda: server.node_of("web") == "b")
        reference = server.objects[VOLUME]["spec"]["claimRef"]
        uid = server.objects[CLAIM]["metadata"]["uid"]
        kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        assert reference == {**kind, "namespace": "default", "name": "data", "uid": uid}

    run(story())


def test_a_volume_that_somebody_changed_is_not_reserved() -> None:
    async def story() -> None:
        server = with_volume()
        reserving = server.holds("PATCH", "/disk")
        async with running(server):
            await reserving.has_come.wait()
            server.change(VOLUME, lambda volume: volume["metadata"].update(labels={"checked": "yes"}))
            reserving.may_go_on.set()
            await until(lambda: server.events("FailedScheduling"))
            assert failures(server) == ["Precondition failed: resourceVersion"]
            assert "claimRef" not in server.objects[VOLUME]["spec"]
            await until(lambda: "claimRef" in server.objects[VOLUME]["spec"])

    run(story())


def test_a_claim_without_a_volume_names_the_node_where_it_is_to_be_made() -> None:
    async def story() -> None:
        server = with_provisioner()
        async with running(server):
            await until(lambda: selected(server))
            await asyncio.sleep(60)
            assert (selected(server), server.node_of("web")) == ("a", "")
            server.create(make_volume("disk", storage_class="made", nodes=on_label(ZONE, "one"), phase="Bound"))
            finish_binding(server)
            await until(lambda: server.node_of("web") == "a")

    run(story())


def test_a_provisioner_that_fails_has_the_pod_tried_again() -> None:
    async def story() -> None:
        server = with_provisioner()
        async with running(server):
            await until(lambda: selected(server))
            server.change(CLAIM, lambda claim: claim["metadata"]["annotations"].pop(SELECTED_NODE))
            await until(lambda: server.events("FailedScheduling"))
            assert failures(server) == ['binding volumes: provisioning failed for PVC "data"']
            await until(lambda: selected(server))

    run(story())


def test_a_volume_that_is_made_where_the_pod_cannot_use_it_is_told() -> None:
    async def story() -> None:
        server = with_provisioner()
        async with running(server):
            await until(lambda: selected(server) == "a")
            server.create(make_volume("disk", storage_class="made", nodes=on_label(ZONE, "two"), phase="Bound"))
            finish_binding(server)
            await until(lambda: server.events("FailedScheduling"))
        mismatch = 'pv "disk" node affinity doesn\'t match node "a"'
        assert failures(server)[0] == f"binding volumes: {mismatch}: no matching NodeSelectorTerms"

    run(story())


def test_a_volume_that_does_not_come_in_time_is_given_up() -> None:
    async def story() -> None:
        server = with_provisioner()
        async with running(server):
            await asyncio.sleep(590)
            assert failures(server) == []
            await until(lambda: server.events("FailedScheduling"))
        assert failures(server)[0] == "binding volumes: context deadline exceeded"

    run(story())


def test_a_pod_that_is_deleted_is_not_waited_for() -> None:
    async def story() -> None:
        server = with_provisioner()
        async with running(server) as started:
            await until(lambda: selected(server))
            await started.scheduler.measure()
            assert b'scheduler_goroutines{operation="binding"} 1.0' in started.scheduler.metrics.text()
            server.remove(f"{PODS}/web")
            await asyncio.sleep(5)
            await started.scheduler.measure()
            assert b'scheduler_goroutines{operation="binding"} 0.0' in started.scheduler.metrics.text()
            finish_binding(server)
            await asyncio.sleep(60)
        assert server.asked("POST", "/binding") == []
        assert server.events() == []

    run(story())


def test_a_claim_that_may_not_be_written_is_told() -> None:
    async def story() -> None:
        server = with_provisioner()
        server.fails("PATCH", "/data", ApiError("not allowed", 403))
        async with running(server):
            await until(lambda: server.events("FailedScheduling"))
            assert failures(server) == ["not allowed"]
            await until(lambda: selected(server))

    run(story())
