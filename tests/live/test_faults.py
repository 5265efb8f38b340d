"""`podium run` while things go wrong: every pod is bound once or waits for a reason, and no node is overfull."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from live.cluster_objects import NODES, PODS, node, pod
from live.control_plane import ControlPlane, FaultProxy, Process, answer_of
from live.many_objects import create_all, overfull_nodes, wait_for_bound
from live.schedulers import Podium, configuration, wait_until

NODE_COUNT, POD_COUNT, MANY = 50, 500, 2000
ROOM = "100"
"""Cpus of a node: more than enough for its share of the pods, at 1 cpu each."""


@contextmanager
def running(plane: ControlPlane, *, server: str = "", lease: str = "", replicas: int = 1) -> Iterator[list[Podium]]:
    """Podium at work on many nodes; whatever happens, no traceback."""
    create_all(plane, NODES, (node(f"node-{k}", cpu=ROOM, memory="900Gi", pods=100) for k in range(NODE_COUNT)))
    config = configuration(plane, "podium", lease=lease)
    started = [Podium(plane, config=config, log=f"podium-{k}.log", server=server) for k in range(replicas)]
    for each in started:
        each.wait_until_ready()
    try:
        yield started
    finally:
        for each in started:
            each.stop()
    for each in started:
        assert "Traceback" not in each.output, each.output[-3000:]
        assert "unexpected" not in each.output, each.output[-3000:]


def create_pods(plane: ControlPlane, count: int = POD_COUNT, prefix: str = "pod") -> None:
    create_all(plane, PODS, (pod(f"{prefix}-{k}", cpu="1", schedulerName="podium") for k in range(count)))


def check(plane: ControlPlane, count: int) -> None:
    """Every pod is bound, and no node is overfull."""
    wait_for_bound(plane, count, 300)
    pods = plane.pods()
    assert len(pods) == count
    assert all(each["spec"].get("nodeName") for each in pods)
    assert overfull_nodes(plane) == []


def bound(plane: ControlPlane) -> int:
    return sum(bool(each["spec"].get("nodeName")) for each in plane.pods())


def restart(plane: ControlPlane) -> None:
    """Kill the API server, and start it again."""
    plane.api_server.kill()
    plane.start_api_server()


def test_the_api_server_is_killed_and_comes_back(fresh_plane: ControlPlane) -> None:
    with running(fresh_plane):
        create_pods(fresh_plane, MANY // 2, "early")
        fresh_plane.api_server.kill()
        time.sleep(3)
        fresh_plane.start_api_server()
        create_pods(fresh_plane, MANY // 2, "late")
        check(fresh_plane, MANY)


@pytest.mark.parametrize(("name", "seconds"), [("api_server", 30), ("etcd", 20)])
def test_a_process_of_the_control_plane_is_frozen(name: str, seconds: float, fresh_plane: ControlPlane) -> None:
    process: Process = getattr(fresh_plane, name)
    with running(fresh_plane):
        create_pods(fresh_plane)
        process.send(signal.SIGSTOP)
        time.sleep(seconds)
        process.send(signal.SIGCONT)
        check(fresh_plane, POD_COUNT)


def test_watches_are_cut_at_random(fresh_plane: ControlPlane) -> None:
    with FaultProxy(fresh_plane) as proxy:
        proxy.faults(cutWatchesAfter=2)  # before any watch is opened: each is cut within two seconds
        with running(fresh_plane, server=proxy.url):
            create_pods(fresh_plane, POD_COUNT // 2, "early")
            wait_until(lambda: proxy.counts().get("cut", 0) > 5)
            create_pods(fresh_plane, POD_COUNT - POD_COUNT // 2, "late")
            check(fresh_plane, POD_COUNT)


def test_watches_are_too_old(fresh_plane: ControlPlane) -> None:
    """Podium sleeps while history is compacted, so that its watches get 410.

    The server is started anew before there is anything to miss: what a server sent to a sleeping client may still
    lie in the buffers of their connection.
    """
    with running(fresh_plane) as (podium,):
        create_pods(fresh_plane, 100, "early")
        wait_until(lambda: bound(fresh_plane) == 100)
        podium.send(signal.SIGSTOP)
        restart(fresh_plane)
        create_pods(fresh_plane, POD_COUNT - 100)
        fresh_plane.compact()
        restart(fresh_plane)
        podium.send(signal.SIGCONT)
        check(fresh_plane, POD_COUNT)
        assert "listing again" in podium.output


def test_watches_that_stay_silent_are_begun_again(fresh_plane: ControlPlane) -> None:
    with FaultProxy(fresh_plane) as proxy:
        proxy.faults(cutWatchesAfter=1)
        with running(fresh_plane, server=proxy.url) as (podium,):
            proxy.faults(stallWatches=True)
            wait_until(lambda: proxy.counts().get("stalled", 0) > 10)
            proxy.faults()
            create_pods(fresh_plane, 50)
            wait_for_bound(fresh_plane, 50, 120)
            assert "nothing came from the watch" in podium.output
            assert 'podium_watch_age_seconds{kind="Pod"}' in podium.metrics()


def test_the_store_is_emptied(fresh_plane: ControlPlane) -> None:
    with running(fresh_plane) as (podium,):
        create_pods(fresh_plane)
        wait_until(lambda: bound(fresh_plane) == POD_COUNT)
        fresh_plane.api_server.kill()
        fresh_plane.etcd.kill()
        shutil.rmtree(fresh_plane.directory / "etcd")
        fresh_plane.start_etcd()
        fresh_plane.start_api_server()
        fresh_plane.create(NODES, node("new", cpu=ROOM, memory="900Gi", pods=100))
        create_pods(fresh_plane, 50, "late")
        check(fresh_plane, 50)
        assert "the API server went back" in podium.output


ANSWERS = {
    "conflicts": {"code": 409, "share": 0.2},
    "too many requests": {"code": 429, "share": 0.2, "retryAfter": 1},
    "server errors": {"code": 500, "share": 0.2},
    "server errors after it was done": {"code": 500, "share": 0.2, "after": True},
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_bindings_are_answered_with(answer: dict[str, object], fresh_plane: ControlPlane) -> None:
    with FaultProxy(fresh_plane) as proxy, running(fresh_plane, server=proxy.url):
        proxy.faults(answers=[{"method": "POST", "pathContains": "/binding", **answer}])
        create_pods(fresh_plane)
        check(fresh_plane, POD_COUNT)
        assert proxy.counts()[str(answer["code"])] > 50


def test_the_leader_is_killed(fresh_plane: ControlPlane) -> None:
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium"
    with running(fresh_plane, lease="podium", replicas=2) as replicas:
        wait_until(lambda: any("is the leader" in each.output for each in replicas))
        leader = next(each for each in replicas if "is the leader" in each.output)
        creating = threading.Thread(target=create_pods, args=(fresh_plane, MANY))
        creating.start()
        wait_until(lambda: bound(fresh_plane) > 50, every=0.02)
        leader.kill()
        creating.join()
        check(fresh_plane, MANY)
        assert fresh_plane.get(lease)["spec"]["leaseTransitions"] >= 1


def leads(process: Process) -> bool:
    return "is the leader" in process.output


def test_a_leader_that_is_told_to_stop_hands_over_at_once(fresh_plane: ControlPlane) -> None:
    election = {"leaderElect": True, "resourceName": "podium", "resourceNamespace": "kube-system", **SHORT_LEASE}
    slow = {"qps": 20, "burst": 1, "kubeconfig": str(fresh_plane.kubeconfig("slow"))}
    config = configuration(fresh_plane, "podium", leaderElection=election, clientConnection=slow)
    create_all(fresh_plane, NODES, (node(f"node-{k}", cpu=ROOM, memory="900Gi", pods=100) for k in range(NODE_COUNT)))
    first = Podium(fresh_plane, config=config, log="first.log")
    first.wait_until_ready()
    wait_until(partial(leads, first))
    second = Podium(fresh_plane, config=config, log="second.log")
    second.wait_until_ready()
    create_pods(fresh_plane, 400)
    wait_until(lambda: bound(fresh_plane) > 20, every=0.02)
    begin = time.monotonic()
    first.send(signal.SIGTERM)
    assert first.wait(20) == 0
    assert time.monotonic() - begin < 3.0
    wait_until(partial(leads, second), 5)
    check(fresh_plane, 400)
    second.stop()
    for each in (first, second):
        assert "Traceback" not in each.output, each.output[-3000:]


ROUNDS = 10
SHORT_LEASE = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "0.5s"}


def test_a_leader_that_was_stopped_writes_nothing_after_it_wakes(fresh_plane: ControlPlane) -> None:
    """In each round the leader is stopped with bindings under way and waiting, until another replica has its lease."""
    election = {"leaderElect": True, "resourceName": "podium", "resourceNamespace": "kube-system", **SHORT_LEASE}
    slow = {"qps": 60, "burst": 1, "kubeconfig": str(fresh_plane.kubeconfig("slow"))}
    config = configuration(fresh_plane, "podium", leaderElection=election, clientConnection=slow)
    create_all(fresh_plane, NODES, (node(f"node-{k}", cpu="4", memory="900Gi", pods=100) for k in range(NODE_COUNT)))
    with FaultProxy(fresh_plane) as proxy:
        for number in range(ROUNDS):
            old = Podium(fresh_plane, config=config, log=f"old-{number}.log", server=proxy.url)
            old.wait_until_ready()
            wait_until(partial(leads, old))
            create_all(
                fresh_plane, PODS, (pod(f"pod-{number}-{k}", cpu="1", schedulerName="podium") for k in range(300))
            )
            wait_until(lambda: bound(fresh_plane) > 5, every=0.02)
            new = Podium(fresh_plane, config=config, log=f"new-{number}.log")
            new.wait_until_ready()
            old.send(signal.SIGSTOP)
            wait_until(partial(leads, new))
            before = proxy.counts()["writes"]
            old.send(signal.SIGCONT)
            assert old.wait(10) != 0
            assert proxy.counts()["writes"] == before
            assert "leadership was lost" in old.output
            wait_until(lambda: bound(fresh_plane) == 4 * NODE_COUNT)
            assert overfull_nodes(fresh_plane) == []
            new.stop()
            fresh_plane.request("DELETE", f"{PODS}?gracePeriodSeconds=0")


class _SlowExtender(BaseHTTPRequestHandler):
    """Answers after four seconds that every node is all right."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(4)
        body = json.dumps({"NodeNames": asked["NodeNames"], "FailedNodes": {}, "Error": ""}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_slow_extender_costs_neither_the_lease_nor_health_nor_sigterm(fresh_plane: ControlPlane) -> None:
    extender = ThreadingHTTPServer(("127.0.0.1", 0), _SlowExtender)
    threading.Thread(target=extender.serve_forever, daemon=True).start()
    election = {"leaderElect": True, "resourceName": "podium", "resourceNamespace": "kube-system", **SHORT_LEASE}
    entry = {
        "urlPrefix": f"http://127.0.0.1:{extender.server_port}",
        "filterVerb": "filter",
        "nodeCacheCapable": True,
        "httpTimeout": "30s",
    }
    config = configuration(fresh_plane, "podium", leaderElection=election, extenders=[entry])
    create_all(fresh_plane, NODES, (node(f"node-{k}", cpu="4") for k in range(3)))
    podium = Podium(fresh_plane, config=config)
    podium.wait_until_ready()
    create_all(fresh_plane, PODS, (pod(f"pod-{k}", cpu="1", schedulerName="podium") for k in range(6)))
    slowest, until = 0.0, time.monotonic() + 14
    while time.monotonic() < until:
        begin = time.monotonic()
        assert answer_of(f"http://127.0.0.1:{podium.port}/livez")[0] == 200
        assert "leader_election_master_status" in podium.metrics()
        slowest = max(slowest, time.monotonic() - begin)
        time.sleep(0.2)
    assert slowest < 3.0  # metrics wait up to a second for a scheduler that is busy
    assert podium.is_running, podium.output
    assert bound(fresh_plane) >= 2
    begin = time.monotonic()
    podium.send(signal.SIGTERM)
    assert podium.wait(10) == 0
    assert time.monotonic() - begin < 3.0
    extender.shutdown()
    extender.server_close()


def test_nodes_and_pods_go_while_pods_are_bound(fresh_plane: ControlPlane) -> None:
    with running(fresh_plane):
        create_pods(fresh_plane)
        for k in range(10):
            fresh_plane.request("DELETE", f"{NODES}/node-{k}")
        for k in range(0, POD_COUNT, 10):
            status, _ = fresh_plane.request("DELETE", f"{PODS}/pod-{k}", {"gracePeriodSeconds": 0})
            assert status in (200, 202)
        kept = POD_COUNT - POD_COUNT // 10
        wait_until(lambda: len(fresh_plane.pods()) == kept and bound(fresh_plane) == kept, 180, every=1)
        assert overfull_nodes(fresh_plane) == []


def test_more_pods_than_room_wait_for_a_reason(fresh_plane: ControlPlane) -> None:
    with running(fresh_plane) as (podium,):
        create_all(fresh_plane, PODS, (pod(f"pod-{k}", cpu="60", schedulerName="podium") for k in range(80)))
        wait_until(lambda: bound(fresh_plane) == NODE_COUNT)

        def reasons() -> set[str]:
            waiting = [each for each in fresh_plane.pods() if not each["spec"].get("nodeName")]
            return {json.dumps([c.get("reason") for c in each["status"].get("conditions", ())]) for each in waiting}

        wait_until(lambda: reasons() == {'["Unschedulable"]'})
        assert overfull_nodes(fresh_plane) == []
        assert 'scheduler_pending_pods{queue="unschedulable"} 30.0' in podium.get("/metrics")
