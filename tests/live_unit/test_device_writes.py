"""Claims of devices: written before a pod is bound, waited for, and given back if the pod is not bound."""

from __future__ import annotations

import asyncio

import pytest

from builders import make_node, make_pod
from device_objects import DRIVER, gpus, make_claim, make_class, using
from live_unit.api_server import CLAIMS, PODS, ApiServer, Fields
from live_unit.running import running
from live_unit.virtual_time import run, until
from podium.live.client import ApiError

CONFLICT, FORBIDDEN = ApiError("changed", 409), ApiError("not allowed", 403)
CLAIM, POD = f"{CLAIMS}/c", f"{PODS}/web"
WEB = make_pod("web", resource_claims=using("c"))
FINALIZER = "resource.kubernetes.io/delete-protection"
READY, BROKEN = "example.com/ready", "example.com/broken"
ALWAYS = 1_000_000


def with_devices(number: int = 1, **device: object) -> ApiServer:
    """A node with devices, a claim of one, and a pod that uses it."""
    return ApiServer(make_node("a"), make_class(), gpus("a", number, **device), make_claim("c"), WEB)


def slow_devices() -> ApiServer:
    """The same with a device that has to get ready."""
    return with_devices(bindingConditions=[READY], bindingFailureConditions=[BROKEN])


def reported(condition: str) -> Fields:
    """What a driver says about the device."""
    said = {"type": condition, "status": "True", "reason": "Tried", "message": "as told"}
    return {"driver": DRIVER, "pool": "a", "device": "gpu-0", "conditions": [said]}


def status_of(server: ApiServer, claim: str = "c") -> Fields:
    found: Fields = server.objects[f"{CLAIMS}/{claim}"].get("status", {})
    return found


def consumers(server: ApiServer, claim: str = "c") -> list[str]:
    return [each["name"] for each in status_of(server, claim).get("reservedFor", ())]


def devices(server: ApiServer, claim: str = "c") -> list[str]:
    results = status_of(server, claim).get("allocation", {}).get("devices", {}).get("results", ())
    return [each["device"] for each in results]


def failures(server: ApiServer) -> list[str]:
    said = 'running PreBind plugin "DynamicResources": '
    return [event["note"].removeprefix(said) for event in server.events("FailedScheduling")]


def nominated(server: ApiServer) -> str | None:
    node: str | None = server.objects[POD]["status"].get("nominatedNodeName")
    return node


def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound() -> None:
    async def story() -> None:
        server = with_devices()
        async with running(server):
            await until(lambda: server.node_of("web"))
        asked = [each for each in server.writes if "/events" not in each]
        steps = [f"PATCH {POD}/status", f"PUT {CLAIM}", f"PUT {CLAIM}/status", f"POST {POD}/binding"]
        assert asked == steps
        assert server.objects[CLAIM]["metadata"]["finalizers"] == [FINALIZER]
        uid = server.objects[POD]["metadata"]["uid"]
        assert status_of(server)["reservedFor"] == [{"resource": "pods", "name": "web", "uid": uid}]
        assert devices(server) == ["gpu-0"]
        assert nominated(server) == "a"

    run(story())


def test_pods_that_share_a_claim_are_both_reserved() -> None:
    async def story() -> None:
        server = with_devices()
        async with running(server):
            await until(lambda: server.node_of("web"))
            server.create(make_pod("api", resource_claims=using("c")))
            await until(lambda: server.node_of("api"))
        assert (consumers(server), devices(server)) == (["web", "api"], ["gpu-0"])

    run(story())


def test_a_device_is_given_to_one_claim_only() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a"), make_class(), gpus("a", 2))
        for name in ("c0", "c1", "c2"):
            server.create(make_claim(name))
            server.create(make_pod(name, resource_claims=using(name)))
        async with running(server):
            await until(lambda: server.events("FailedScheduling"))
            await asyncio.sleep(60)
        given = [device for name in ("c0", "c1", "c2") for device in devices(server, name)]
        assert sorted(given) == ["gpu-0", "gpu-1"]
        assert [server.node_of(name) for name in ("c0", "c1", "c2")].count("a") == 2

    run(story())


def test_a_claim_that_somebody_changes_meanwhile_is_written_again() -> None:
    async def story() -> None:
        server = with_devices()
        server.fails("PUT", "/c/status", CONFLICT, times=4)
        async with running(server):
            await until(lambda: server.node_of("web"))
        assert (len(server.asked("PUT", "/c/status")), server.events("FailedScheduling")) == (5, [])
        assert consumers(server) == ["web"]

    run(story())


def test_a_claim_that_always_changes_is_given_up_for_a_while() -> None:
    async def story() -> None:
        server = with_devices()
        changing = server.fails("PUT", "/c/status", CONFLICT, times=5)
        async with running(server):
            await until(lambda: server.events("FailedScheduling"))
            assert changing.times == 0
            assert failures(server) == ["add allocation and reservation to claim default/c: changed"]
            assert (nominated(server), server.node_of("web")) == (None, "")
            await until(lambda: server.node_of("web"))

    run(story())


def test_a_claim_of_a_pod_that_cannot_be_bound_is_not_reserved_any_more() -> None:
    async def story() -> None:
        server = with_devices()
        binding = server.fails("POST", "/binding", FORBIDDEN, times=ALWAYS, is_held=True)
        async with running(server):
            await binding.has_come.wait()
            assert (consumers(server), nominated(server)) == (["web"], "a")
            binding.may_go_on.set()
            await until(lambda: not consumers(server))
            await until(lambda: nominated(server) is None)
            assert devices(server) == ["gpu-0"]
            binding.times = 0
            await until(lambda: server.node_of("web"))
        assert (consumers(server), devices(server), nominated(server)) == (["web"], ["gpu-0"], "a")

    run(story())


@pytest.mark.parametrize("is_bound_next", [False, True], ids=["while it is written", "before the binding"])
def test_a_claim_of_a_pod_that_is_deleted_is_not_reserved_any_more(is_bound_next: bool) -> None:
    async def story() -> None:
        server = with_devices()
        held = server.holds("POST", "/binding") if is_bound_next else server.holds("PUT", "/c/status")
        async with running(server):
            await held.has_come.wait()
            server.remove(POD)
            await asyncio.sleep(1)
            held.may_go_on.set()
            await asyncio.sleep(30)
        assert consumers(server) == []
        assert len(server.asked("POST", "/binding")) == is_bound_next

    run(story())


def test_nothing_is_written_for_a_pod_that_is_deleted_before() -> None:
    async def story() -> None:
        server = with_devices()
        nominating = server.holds("PATCH", "/api/status")
        async with running(server):
            await until(lambda: server.node_of("web"))
            asked = len(server.asked("PUT"))
            server.create(make_pod("api", resource_claims=using("c")))
            await nominating.has_come.wait()
            await asyncio.sleep(10)
            assert len(server.asked("PUT")) == asked
            server.remove(f"{PODS}/api")
            await asyncio.sleep(1)
            nominating.may_go_on.set()
            await asyncio.sleep(30)
        assert (len(server.asked("PUT")), consumers(server)) == (asked, ["web"])

    run(story())


def test_a_nomination_is_taken_back_even_if_the_watch_has_not_told_of_it() -> None:
    async def story() -> None:
        server = with_devices()
        server.told_until["/api/v1/pods"] = server.version
        binding = server.fails("POST", "/binding", FORBIDDEN, times=ALWAYS, is_held=True)
        async with running(server):
            await binding.has_come.wait()
            assert nominated(server) == "a"
            binding.may_go_on.set()
            await until(lambda: nominated(server) is None)

    run(story())


def test_a_claim_that_is_reserved_for_the_pod_already_is_not_written_again() -> None:
    async def story() -> None:
        server = with_devices()
        binding = server.holds("POST", "/binding")
        async with running(server) as first:
            await binding.has_come.wait()
            await first.kill()
        asked = len(server.asked("PUT"))
        async with running(server):
            await until(lambda: server.node_of("web"))
        assert (len(server.asked("PUT")), consumers(server)) == (asked, ["web"])

    run(story())


def test_a_device_is_not_given_away_while_the_watch_is_behind() -> None:
    """The finalizer of a claim is told, but not yet the allocation that was written right after it."""

    async def story() -> None:
        server = with_devices()
        server.create(make_claim("other"))
        everywhere = "/apis/resource.k8s.io/v1/resourceclaims"
        reading = server.holds("GET", "/c")
        async with running(server):
            await reading.has_come.wait()
            server.told_until[everywhere] = server.version + 1
            reading.may_go_on.set()
            await until(lambda: server.node_of("web"))
            server.create(make_pod("api", resource_claims=using("other")))
            await asyncio.sleep(60)
            assert (devices(server, "other"), server.node_of("api")) == ([], "")

    run(story())


def test_a_device_is_free_again_once_its_claim_is_gone() -> None:
    async def story() -> None:
        server = with_devices()
        async with running(server):
            await until(lambda: server.node_of("web"))
            server.remove(POD)
            server.remove(CLAIM)
            server.create(make_claim("other"))
            server.create(make_pod("api", resource_claims=using("other")))
            await until(lambda: server.node_of("api"))
        assert devices(server, "other") == ["gpu-0"]

    run(story())


def test_a_claim_that_was_allocated_elsewhere_is_not_overwritten() -> None:
    async def story() -> None:
        server = with_devices(2)
        reading = server.holds("GET", "/c")
        result = {"request": "r0", "driver": DRIVER, "pool": "a", "device": "gpu-1"}
        status = {"allocation": {"devices": {"results": [result]}}}
        async with running(server):
            await reading.has_come.wait()
            server.change(CLAIM, lambda claim: claim.update(status=status))
            reading.may_go_on.set()
            await until(lambda: server.node_of("web"))
        assert failures(server) == ["claim default/c got allocated elsewhere in the meantime"]
        assert (devices(server), consumers(server)) == (["gpu-1"], ["web"])

    run(story())


def test_a_new_claim_with_the_same_name_is_not_taken_for_the_old_one() -> None:
    async def story() -> None:
        server = with_devices()
        reading = server.holds("GET", "/c")
        async with running(server):
            await reading.has_come.wait()
            server.remove(CLAIM)
            server.create(make_claim("c"))
            reading.may_go_on.set()
            await until(lambda: server.events("FailedScheduling"))
            assert failures(server) == ["claim default/c got deleted in the meantime"]
            await until(lambda: server.node_of("web"))
        assert consumers(server) == ["web"]

    run(story())


def test_a_pod_waits_until_its_device_is_ready() -> None:
    async def story() -> None:
        server = slow_devices()
        async with running(server):
            await until(lambda: server.events("BindingConditionsPending"))
            await asyncio.sleep(60)
            assert (server.node_of("web"), nominated(server), consumers(server)) == ("", "a", ["web"])
            server.change(CLAIM, lambda claim: claim["status"].update(devices=[reported(READY)]))
            await until(lambda: server.node_of("web"))
        (event,) = server.events("BindingConditionsPending")
        assert event["note"] == "waiting for binding conditions for device on node a"

    run(story())


def test_a_device_that_fails_is_given_up_and_told() -> None:
    async def story() -> None:
        server = slow_devices()
        async with running(server):
            await until(lambda: server.events("BindingConditionsPending"))
            server.change(CLAIM, lambda claim: claim["status"].update(devices=[reported(BROKEN)]))
            await until(lambda: server.events("FailedScheduling"))
            assert failures(server)[0] == 'device binding failed: claim=c, reason=Tried, message="as told"'
            await until(lambda: "devices" not in status_of(server))
            assert server.node_of("web") == ""

    run(story())


def test_a_device_that_does_not_get_ready_in_time_is_given_up() -> None:
    async def story() -> None:
        server = slow_devices()
        async with running(server):
            await until(lambda: server.events("BindingConditionsPending"))
            await asyncio.sleep(590)
            assert failures(server) == []
            await until(lambda: server.events("FailedScheduling"))
        assert failures(server)[0] == "device binding timeout: context deadline exceeded"

    run(story())


def test_a_claim_that_keeps_its_pod_from_every_node_is_deallocated() -> None:
    async def story() -> None:
        where = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
        result = {"request": "r0", "driver": DRIVER, "pool": "b", "device": "gpu-0"}
        allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [where]}}
        server = ApiServer(make_node("a", labels={"disk": "ssd"}), make_node("b"), make_class(), gpus("a", 1))
        server.create(gpus("b", 1))
        server.create(make_claim("c"))
        server.change(CLAIM, lambda claim: claim.update(status={"allocation": allocation}))
        server.create(make_pod("web", resource_claims=using("c"), node_selector={"disk": "ssd"}))
        async with running(server):
            await until(lambda: server.node_of("web"))
        (result,) = status_of(server)["allocation"]["devices"]["results"]
        assert (server.node_of("web"), result["pool"]) == ("a", "a")

    run(story())


# -- extended resources ----------------------------------------------------------------------------------------------


def with_extended_resource() -> ApiServer:
    """A pod that asks for devices as for any resource."""
    mapped = make_class("gpu", extendedResourceName="example.com/gpu")
    return ApiServer(make_node("a"), mapped, gpus("a", 1), make_pod("web", requests={"example.com/gpu": "1"}))


def claims(server: ApiServer) -> list[Fields]:
    return [each for path, each in server.objects.items() if path.startswith(CLAIMS)]


def test_a_claim_is_made_for_an_extended_resource_and_named_in_the_pod() -> None:
    async def story() -> None:
        server = with_extended_resource()
        async with running(server):
            await until(lambda: server.node_of("web"))
        (claim,) = claims(server)
        name = claim["metadata"]["name"]
        assert name.startswith("web-extended-resources-")
        assert [each["name"] for each in claim["metadata"]["ownerReferences"]] == ["web"]
        assert (consumers(server, name), devices(server, name)) == (["web"], ["gpu-0"])
        named = server.objects[POD]["status"]["extendedResourceClaimStatus"]
        assert named["resourceClaimName"] == name
        (mapping,) = named["requestMappings"]
        assert (mapping["containerName"], mapping["resourceName"]) == ("main", "example.com/gpu")

    run(story())


def test_a_claim_that_was_made_for_a_pod_that_cannot_be_bound_is_deleted() -> None:
    async def story() -> None:
        server = with_extended_resource()
        server.fails("POST", "/binding", FORBIDDEN)
        async with running(server):
            await until(lambda: server.node_of("web"))
        first, second = (each["metadata"]["name"] for each in server.asked("POST", "/resourceclaims"))
        assert [each["metadata"]["name"] for each in claims(server)] == [second]
        assert len(server.asked("DELETE", f"/{first}")) == 1
        assert server.objects[POD]["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == second

    run(story())


def test_a_claim_that_was_made_for_a_pod_that_is_deleted_is_deleted_too() -> None:
    async def story() -> None:
        server = with_extended_resource()
        binding = server.holds("POST", "/binding")
        async with running(server):
            await binding.has_come.wait()
            assert len(claims(server)) == 1
            server.remove(POD)
            await asyncio.sleep(1)
            binding.may_go_on.set()
            await until(lambda: not claims(server))

    run(story())


def test_a_claim_that_cannot_be_read_fails_the_attempt_and_the_pod_is_tried_again() -> None:
    async def story() -> None:
        server = with_devices()
        server.answers("GET", CLAIM, b"<html>")
        async with running(server):
            await until(lambda: server.node_of("web"))
        assert "DecodeError" in server.events("FailedScheduling")[0]["note"]

    run(story())
