"""A user's own plugins around the binding: what becomes of their answers and of their faults."""

from __future__ import annotations

from typing import ClassVar

import pytest

from builders import make_config, make_node, make_pod
from live_unit.api_server import ApiServer
from live_unit.running import running
from live_unit.virtual_time import run, until
from podium.framework import (
    SKIP,
    SUCCESS,
    BindPlugin,
    CycleState,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    Registry,
    ReservePlugin,
    Status,
)
from podium.model import Pod
from podium.plugins import IN_TREE
from podium.plugins.default_binder import DefaultBinder


class Diary(ReservePlugin, PreBindPlugin, PostBindPlugin):
    """Writes down when it is called, and raises what it is told to, once."""

    name = "Diary"
    lines: ClassVar[list[str]] = []
    raises: ClassVar[dict[str, Exception]] = {}

    def _write(self, line: str) -> None:
        self.lines.append(line)
        if line in self.raises:
            raise self.raises.pop(line)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        self._write("reserve")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._write("unreserve")

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        self._write("pre-bind")
        return SUCCESS

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._write(f"post-bind {node_name}")


class Leaving(BindPlugin):
    """Leaves every pod to the next plugin."""

    name = "Leaving"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SKIP


class Announcing(DefaultBinder):
    """Binds as the default does, and writes it down before."""

    name = "Announcing"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        Diary.lines.append(f"announce {node_name}")
        return super().bind(state, pod, node_name)


@pytest.fixture(autouse=True)
def _empty_diary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Diary, "lines", [])
    monkeypatch.setattr(Diary, "raises", {})


def scheduled(point: str, *plugins: type[Plugin], without_default: bool = False) -> ApiServer:
    """A server after a pod was scheduled with some plugins."""

    async def story() -> ApiServer:
        server = ApiServer(make_node("a"), make_pod("web"))
        enabled = {"enabled": [{"name": plugin.name} for plugin in plugins]}
        disabled = {"disabled": [{"name": "DefaultBinder"}]} if without_default else {}
        config = make_config({"plugins": {point: {**enabled, **disabled}}})
        registry = Registry((*IN_TREE.values(), *plugins))
        async with running(server, config=config, registry=registry):
            await until(lambda: server.events("Scheduled"))
        return server

    return run(story())


def test_plugins_are_called_around_the_binding() -> None:
    server = scheduled("multiPoint", Diary)

    assert Diary.lines == ["reserve", "pre-bind", "post-bind a"]
    assert server.node_of("web") == "a"


def test_a_fault_of_a_plugin_before_the_binding_is_told_and_the_pod_tried_again() -> None:
    Diary.raises = {"pre-bind": ConnectionError("nobody there")}

    server = scheduled("multiPoint", Diary)

    assert Diary.lines == ["reserve", "pre-bind", "unreserve", "reserve", "pre-bind", "post-bind a"]
    (failed,) = server.events("FailedScheduling")
    assert failed["note"].startswith('running PreBind plugin "Diary": ')
    assert "nobody there" in failed["note"]
    assert len(server.asked("POST", "/binding")) == 1


def test_a_fault_of_a_plugin_after_the_binding_is_logged_only(caplog: pytest.LogCaptureFixture) -> None:
    Diary.raises = {"post-bind a": ConnectionError("nobody there")}

    server = scheduled("multiPoint", Diary)

    assert [event["reason"] for event in server.events()] == ["Scheduled"]
    assert "pod default/web is bound, but " in caplog.text
    assert "nobody there" in caplog.text


def test_a_plugin_may_leave_the_binding_to_the_next_one() -> None:
    server = scheduled("bind", Leaving, Announcing, without_default=True)

    assert Diary.lines == ["announce a"]
    assert (server.node_of("web"), len(server.asked("POST", "/binding"))) == ("a", 1)
