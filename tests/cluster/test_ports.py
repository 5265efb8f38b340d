from __future__ import annotations

import pytest

from podium.cluster.pods import HostPort, Ports

ANY, ONE, OTHER = "0.0.0.0", "10.0.0.1", "10.0.0.2"


def tcp(port: int, ip: str = ANY) -> HostPort:
    return HostPort(ip, "TCP", port)


@pytest.mark.parametrize(
    ("used", "wanted", "conflict"),
    [
        pytest.param(tcp(80), tcp(80), True, id="the same port"),
        pytest.param(tcp(80), tcp(81), False, id="another port"),
        pytest.param(tcp(80), HostPort(ANY, "UDP", 80), False, id="another protocol"),
        pytest.param(tcp(80, ONE), tcp(80, OTHER), False, id="another address"),
        pytest.param(tcp(80, ONE), tcp(80, ONE), True, id="the same address"),
        pytest.param(tcp(80, ONE), tcp(80), True, id="all addresses wanted"),
        pytest.param(tcp(80), tcp(80, ONE), True, id="all addresses used"),
    ],
)
def test_a_port_is_taken_once_per_address(used: HostPort, wanted: HostPort, conflict: bool) -> None:
    ports = Ports()
    ports.change(3, [used], 1)
    assert list(ports.conflicts([wanted])) == ([3] if conflict else [])


def test_a_port_is_free_again_when_its_last_user_goes() -> None:
    ports = Ports()
    ports.change(0, [tcp(80)], 1)
    ports.change(0, [tcp(80)], 1)
    ports.change(0, [tcp(80)], -1)
    assert list(ports.conflicts([tcp(80)])) == [0]
    ports.change(0, [tcp(80)], -1)
    assert list(ports.conflicts([tcp(80)])) == []


def test_a_copy_goes_its_own_way() -> None:
    ports = Ports()
    ports.change(0, [tcp(80)], 1)
    twin = ports.copy()
    twin.change(1, [tcp(80)], 1)
    ports.change(0, [tcp(80)], -1)
    assert list(ports.conflicts([tcp(80)])) == []
    assert sorted(twin.conflicts([tcp(80)])) == [0, 1]
