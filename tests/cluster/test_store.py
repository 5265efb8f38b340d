from __future__ import annotations

import pytest

from builders import make_object
from podium.cluster.store import Store
from podium.model import Namespace, Service


def service(name: str, namespace: str = "default", **selector: str) -> Service:
    made = make_object("Service", name, namespace=namespace, spec={"selector": selector})
    assert isinstance(made, Service)
    return made


def test_objects_are_found_by_kind_namespace_and_name() -> None:
    store = Store()
    web, namespace = service("web"), make_object("Namespace", "web")
    store.put(web)
    store.put(namespace)
    assert store.of(Service).get("web", "default") is web
    assert store.of(Service).get("web", "team") is None
    assert store.of(Namespace).get("web") is namespace
    assert len(store.of(Service)) == 1


def test_a_newer_version_takes_the_place_of_the_older() -> None:
    store = Store()
    store.put(service("web", a="1"))
    store.put(newer := service("web", a="2"))
    assert list(store.of(Service)) == [newer]


def test_objects_come_by_namespace_and_name_whatever_the_order_they_were_put_in() -> None:
    store = Store()
    for name, namespace in (("b", "team"), ("c", "default"), ("a", "team"), ("a", "default")):
        store.put(service(name, namespace))
    assert [item.key for item in store.of(Service)] == ["default/a", "default/c", "team/a", "team/b"]
    assert [item.name for item in store.of(Service).within("team")] == ["a", "b"]
    assert store.of(Service).within("nowhere") == []


def test_removing_what_is_not_there_is_no_error() -> None:
    store = Store()
    store.remove(service("web"))
    store.put(service("web"))
    store.remove(service("web"))
    assert len(store.of(Service)) == 0


def test_a_copy_goes_its_own_way() -> None:
    store = Store()
    store.put(web := service("web"))
    twin = store.copy()
    assert twin.version == store.version
    store.put(service("more"))
    twin.remove(web)
    assert twin.version != store.version
    assert [item.name for item in store.of(Service)] == ["more", "web"]
    assert list(twin.of(Service)) == []


def test_what_changed_since_a_version_is_known_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "MOST_RECENT", 2)
    store = Store()
    store.put(service("a"))
    first = store.version
    store.put(service("b"))
    store.put(service("c"))
    assert store.since(store.version) == []
    assert store.since(first) is None
    second = store.version
    store.remove(b := service("b"))
    assert store.since(second) == [b]
