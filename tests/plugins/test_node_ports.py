from __future__ import annotations

from typing import Any

import pytest

from builders import decide, make_node, make_pod, rejections


def port(number: int, ip: str = "", protocol: str = "TCP") -> dict[str, Any]:
    return {"containerPort": 80, "hostPort": number, "hostIP": ip, "protocol": protocol}


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        ([], [port(8080)], True),
        ([port(8080)], [port(8080)], False),
        ([port(8080)], [port(8081)], True),
        ([port(8080)], [port(8080, protocol="UDP")], True),
        ([port(8080, "10.0.0.1")], [port(8080, "10.0.0.2")], True),
        ([port(8080, "10.0.0.1")], [port(8080)], False),
        ([port(8080, "10.0.0.1")], [port(8080, "0.0.0.0")], False),
        ([port(8080)], [port(8080, "10.0.0.1")], False),
        ([port(8080), port(8081)], [port(9000), port(8081)], False),
        ([{"containerPort": 8080}], [{"containerPort": 8080}], True),
    ],
)
def test_a_host_port_can_be_taken_once(used: list[Any], wanted: list[Any], fits: bool) -> None:
    decision = decide([make_node("n"), make_pod("there", node="n", ports=used)], make_pod(ports=wanted))
    assert (decision.node == "n") is fits
    if not fits:
        reason = "node(s) didn't have free ports for the requested pod ports"
        assert rejections(decision) == {"n": ("NodePorts", "Unschedulable", (reason,))}


def test_on_the_host_network_container_ports_are_host_ports() -> None:
    there = make_pod("there", node="n", ports=[{"containerPort": 80}], host_network=True)
    assert decide([make_node("n"), there], make_pod(ports=[port(80)])).node is None


@pytest.mark.parametrize(("restart_policy", "fits"), [("Always", False), ("", True)])
def test_sidecars_keep_their_ports_and_other_init_containers_do_not(restart_policy: str, fits: bool) -> None:
    init = {"name": "init", "image": "i", "ports": [port(8080)], "restartPolicy": restart_policy}
    there = make_pod("there", node="n", init_containers=[init])
    assert (decide([make_node("n"), there], make_pod(ports=[port(8080)])).node == "n") is fits
