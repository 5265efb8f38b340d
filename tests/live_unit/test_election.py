"""A lease is taken, renewed, lost and given back; whoever loses it stops writing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from builders import make_node, make_pod
from live_unit.api_server import UNREACHABLE, ApiServer, Fields
from live_unit.running import SameLoop, following, made_scheduler
from live_unit.virtual_time import run, until
from podium.config.types import LeaderElection
from podium.errors import PodiumError
from podium.live.client import ApiError
from podium.live.election import Election, LeadershipLostError
from podium.live.process import _run_elected

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = f"{LEASES}/podium"
SETTINGS = LeaderElection(lease_duration=15.0, renew_deadline=10.0, retry_period=2.0)
ALWAYS = 1_000_000


def lease_of(server: ApiServer) -> Fields:
    spec: Fields = server.objects[LEASE]["spec"]
    return spec


def held_by(holder: str, **spec: object) -> ApiServer:
    """A server with a lease."""
    server = ApiServer()
    fields = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "before", "leaseTransitions": 3}
    server.objects[LEASE] = {
        "metadata": {"name": "podium", "uid": "uid", "resourceVersion": "0"},
        "spec": {**fields, **spec},
    }
    return server


def election(server: ApiServer, identity: str = "me") -> Election:
    return Election(server.client, SETTINGS, identity)


async def seconds_of(work: asyncio.Task[None]) -> float:
    """How long something takes."""
    begin = asyncio.get_running_loop().time()
    await asyncio.wait({work})
    return asyncio.get_running_loop().time() - begin


def renew(lease: Fields, at: int) -> None:
    """Renew a lease as its holder does."""
    lease["spec"]["renewTime"] = str(at)


def test_the_first_one_creates_the_lease() -> None:
    async def story() -> None:
        server = ApiServer()
        mine = election(server)
        await mine.acquire()
        spec = lease_of(server)
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("me", 15, 0)
        assert mine.is_leader

    run(story())


def test_the_name_and_namespace_of_the_lease_can_be_chosen() -> None:
    async def story() -> None:
        server = ApiServer()
        settings = SETTINGS._replace(resource_name="gpu-pods", resource_namespace="team")
        await Election(server.client, settings, "me").acquire()
        (path,) = server.objects
        assert path == "/apis/coordination.k8s.io/v1/namespaces/team/leases/gpu-pods"

    run(story())


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    async def story() -> None:
        server = held_by("")
        assert await seconds_of(asyncio.create_task(election(server).acquire())) < 1.0
        assert (lease_of(server)["holderIdentity"], lease_of(server)["leaseTransitions"]) == ("me", 4)

    run(story())


def test_a_lease_that_is_not_renewed_is_taken_after_its_duration() -> None:
    async def story() -> None:
        server = held_by("other", leaseDurationSeconds=40)
        assert 40.0 <= await seconds_of(asyncio.create_task(election(server).acquire())) < 43.0
        assert (lease_of(server)["holderIdentity"], lease_of(server)["leaseTransitions"]) == ("me", 4)

    run(story())


def test_a_lease_that_is_renewed_is_not_taken() -> None:
    async def story() -> None:
        server = held_by("other")
        waiting = asyncio.create_task(election(server).acquire())
        for number in range(20):
            await asyncio.sleep(10)
            server.change(LEASE, partial(renew, at=number))
        assert not waiting.done()
        waiting.cancel()
        assert lease_of(server)["holderIdentity"] == "other"

    run(story())


def test_of_two_that_want_it_one_gets_it() -> None:
    async def story() -> None:
        server = held_by("")
        both = [election(server, name) for name in ("one", "two")]
        trying = [asyncio.create_task(each.acquire()) for each in both]
        await asyncio.sleep(10)
        assert sorted(each.is_leader for each in both) == [False, True]
        assert lease_of(server)["holderIdentity"] == next(each.identity for each in both if each.is_leader)
        for task in trying:
            task.cancel()

    run(story())


def test_the_leader_renews_its_lease() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        await mine.acquire()
        first = lease_of(server)
        holding = asyncio.create_task(mine.hold())
        await asyncio.sleep(9)
        puts = server.asked("PUT")
        assert len(puts) == 5  # to take it, and every two seconds
        last = lease_of(server)
        assert last["renewTime"] > first["renewTime"]
        assert (last["acquireTime"], last["leaseTransitions"]) == (first["acquireTime"], first["leaseTransitions"])
        holding.cancel()

    run(story())


def test_a_short_outage_does_not_cost_the_lease() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        await mine.acquire()
        holding = asyncio.create_task(mine.hold())
        away = server.fails("GET", "/podium", UNREACHABLE, times=ALWAYS)
        await asyncio.sleep(7)
        away.times = 0
        await asyncio.sleep(60)
        assert mine.is_leader
        assert not holding.done()
        holding.cancel()

    run(story())


def test_a_lease_that_cannot_be_renewed_in_time_is_lost() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        await mine.acquire()
        server.fails("PUT", "/podium", UNREACHABLE, times=ALWAYS)
        holding = asyncio.create_task(mine.hold())
        assert 10.0 <= await seconds_of(holding) < 13.0
        assert isinstance(holding.exception(), LeadershipLostError)
        assert not mine.is_leader

    run(story())


def test_a_server_that_does_not_answer_costs_the_lease_in_time() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        await mine.acquire()
        server.holds("PUT", "/podium", times=ALWAYS)
        holding = asyncio.create_task(mine.hold())
        assert await seconds_of(holding) < 13.0
        assert isinstance(holding.exception(), LeadershipLostError)

    run(story())


def test_the_leader_gives_its_lease_back() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        await mine.acquire()
        await mine.release()
        assert (lease_of(server)["holderIdentity"], lease_of(server)["leaseDurationSeconds"]) == ("", 1)
        asked = len(server.requests)
        await mine.release()
        assert len(server.requests) == asked

    run(story())


def test_a_lease_that_another_one_has_by_now_is_not_given_back() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        await mine.acquire()
        server.change(LEASE, lambda lease: lease["spec"].update(holderIdentity="other"))
        await mine.release()
        assert lease_of(server)["holderIdentity"] == "other"

    run(story())


def test_a_lease_that_cannot_be_given_back_does_not_keep_the_process_from_ending() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        await mine.acquire()
        server.fails("PUT", "/podium", ApiError("broken", 500))
        await mine.release()
        assert (lease_of(server)["holderIdentity"], mine.is_leader) == ("me", False)

    run(story())


def test_only_the_leader_schedules_and_it_gives_the_lease_back_in_the_end() -> None:
    async def story() -> None:
        server = held_by("other")
        server.create(make_node("a"))
        server.create(make_pod("web"))
        async with following(server) as reflectors:
            scheduler, stop = made_scheduler(server, reflectors), asyncio.Event()
            working = asyncio.create_task(_run_elected(scheduler, election(server), stop, SameLoop()))
            await asyncio.sleep(14)
            assert server.writes == []
            assert b'leader_election_master_status{name="me"} 0.0' in scheduler.metrics.text()
            await until(lambda: server.node_of("web"))
            assert b'leader_election_master_status{name="me"} 1.0' in scheduler.metrics.text()
            stop.set()
            await working
        assert lease_of(server)["holderIdentity"] == ""

    run(story())


def test_a_scheduler_that_lost_the_lease_gives_up_its_bindings() -> None:
    async def story() -> None:
        server = held_by("")
        server.create(make_node("a"))
        server.create(make_pod("web"))
        binding = server.holds("POST", "/binding")
        async with following(server) as reflectors:
            scheduler = made_scheduler(server, reflectors)
            working = asyncio.create_task(_run_elected(scheduler, election(server), asyncio.Event(), SameLoop()))
            await binding.has_come.wait()
            server.fails("PUT", "/podium", UNREACHABLE, times=ALWAYS)
            with pytest.raises(PodiumError, match="leadership was lost: the lease could not be renewed in time"):
                await working
            binding.may_go_on.set()
            await asyncio.sleep(60)
        assert server.node_of("web") == ""
        assert lease_of(server)["holderIdentity"] == "me"

    run(story())


@pytest.mark.parametrize("ticks", range(4))
def test_a_lease_that_is_lost_just_as_an_event_comes_ends_the_scheduler(ticks: int) -> None:
    async def story() -> None:
        server = held_by("")
        server.create(make_node("a"))

        class Loses(Election):
            async def hold(self) -> None:
                await asyncio.sleep(5)
                server.create(make_pod("early"))
                for _ in range(ticks):
                    await asyncio.sleep(0)
                raise LeadershipLostError

        async with following(server) as reflectors:
            mine = Loses(server.client, SETTINGS, "me")
            scheduler = made_scheduler(server, reflectors)
            with pytest.raises(PodiumError, match="leadership was lost"):
                await asyncio.wait_for(_run_elected(scheduler, mine, asyncio.Event(), SameLoop()), 60)

    run(story())


def test_an_answer_that_is_no_lease_does_not_end_the_leader() -> None:
    async def story() -> None:
        server = held_by("me")
        server.answers("GET", LEASE, b"<html>")
        mine = election(server)
        await mine.acquire()
        assert mine.is_leader

    run(story())


def test_the_fence_is_open_for_the_renew_deadline_after_a_renewal_was_sent() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        assert not mine.fence.is_open
        await mine.acquire()
        assert mine.fence.is_open
        await asyncio.sleep(SETTINGS.renew_deadline)
        assert not mine.fence.is_open

    run(story())


def test_a_renewal_whose_answer_comes_late_opens_the_fence_from_when_it_was_sent() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        answer = server.holds("PUT", "/podium")
        taking = asyncio.create_task(mine.acquire())
        await answer.has_come.wait()
        await asyncio.sleep(9)
        answer.may_go_on.set()
        await taking
        assert mine.fence.is_open
        await asyncio.sleep(2)
        assert not mine.fence.is_open

    run(story())


def test_a_lease_that_another_one_took_closes_the_fence_at_once() -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        await mine.acquire()
        holding = asyncio.create_task(mine.hold())
        server.change(LEASE, lambda lease: lease["spec"].update(holderIdentity="other"))
        assert await seconds_of(holding) < 3.0
        assert isinstance(holding.exception(), LeadershipLostError)
        assert not mine.fence.is_open

    run(story())


def test_a_lease_that_gets_no_answer_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        server = held_by("")
        mine = election(server)
        await mine.acquire()
        server.holds("PUT", "/podium", times=ALWAYS)
        await asyncio.wait({asyncio.create_task(mine.hold())})

    run(story())
    assert "the lease cannot be renewed: no answer within" in caplog.text


def test_a_lease_is_not_given_back_while_a_binding_may_be_under_way() -> None:
    async def story() -> None:
        server, stop = held_by(""), asyncio.Event()
        server.create(make_node("a"))
        server.create(make_pod("web"))
        binding = server.holds("POST", "/binding")
        async with following(server) as reflectors:
            mine = election(server)
            working = asyncio.create_task(_run_elected(made_scheduler(server, reflectors), mine, stop, Stuck()))
            await binding.has_come.wait()
            stop.set()
            await working
        assert lease_of(server)["holderIdentity"] == "me"
        assert not mine.fence.is_open

    run(story())


class Stuck(SameLoop):
    """A thread in which nothing is heard."""

    def call(self, action: Callable[[], object]) -> None:
        pass
