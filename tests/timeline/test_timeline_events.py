"""The event format: what is read, in which order, and what is wrong with what cannot be used."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podium.errors import InputError
from podium.timeline import Verb, read_timeline

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
OTHER = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}


def line(time: Any = 1, event: str = "add", **fields: Any) -> dict[str, Any]:
    return {"time": time, "event": event, **(fields or {"object": NODE})}


def test_events_come_in_the_order_of_their_time_and_otherwise_as_they_stand() -> None:
    read = read_timeline([line(5), line(1, object=POD), line(1, "delete"), line(0.5, "Update")])
    assert [(event.time, event.verb) for event in read.events] == [
        (0.5, "update"),
        (1, "add"),
        (1, "delete"),
        (5, "add"),
    ]
    assert read.epoch is None
    assert not read.is_record


def test_dates_count_from_the_first() -> None:
    read = read_timeline([line("2026-03-01T10:00:30+01:00"), line("2026-03-01T09:00:00.250000000Z")])
    assert [event.time for event in read.events] == [0, 29.75]
    assert read.epoch == datetime(2026, 3, 1, 9, 0, 0, 250000, tzinfo=UTC)


def test_objects_are_as_the_api_server_would_store_them() -> None:
    (event,) = read_timeline([line(object=POD)]).events
    assert event.object.key == "default/p"


def test_a_recording_of_the_simulator_is_recognised() -> None:
    read = read_timeline(
        [line("2026-03-01T10:00:30Z", "Add", resource=NODE), line("2026-03-01T10:01:30Z", "Delete", resource=POD)]
    )
    assert read.is_record
    assert [event.verb for event in read.events] == [Verb.ADD, Verb.DELETE]


def test_kinds_that_scheduling_does_not_read_are_left_out() -> None:
    read = read_timeline([line(object=OTHER), line()])
    assert len(read.events) == 1
    assert read.ignored == {"Gadget": 1}


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"lifetime": 30}, 30.0),
        ({"lifetime": "1m30s"}, 90.0),
        ({"object": {**POD, "metadata": {"name": "p", "annotations": {"podium/lifetime": "2h"}}}}, 7200.0),
        ({"object": {**POD, "metadata": {"name": "p", "annotations": {"podium/lifetime": "2h"}}}, "lifetime": 1}, 1.0),
        ({}, None),
    ],
)
def test_a_pod_may_have_a_lifetime(given: dict[str, Any], seconds: float | None) -> None:
    (event,) = read_timeline([line(**{"object": POD, **given})]).events
    assert event.lifetime == seconds


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_files_are_json_lines_plain_or_packed(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(pack(b"\n".join(json.dumps(each).encode() for each in (line(), line(2))) + b"\n\n"))
    assert [event.time for event in read_timeline(str(path)).events] == [1, 2]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "no events"),
        ([line(event="explode")], "event 1: event 'explode' is unknown; use add, update, delete, fail, cordon"),
        ([{"time": 1, "event": "add"}], "event 1: needs an `object`, or a `resource`"),
        ([line(object=NODE, resource=NODE)], "event 1: needs an `object`, or a `resource`"),
        ([line(-1)], "event 1: time -1.0 is not a number of seconds from 0 on, up to ten years"),
        ([line(1e18)], "event 1: time 1e+18 is not a number of seconds from 0 on, up to ten years"),
        ([line("soon")], "event 1: time 'soon' is neither seconds nor like 2026-01-31T09:30:00Z"),
        ([line(1), line("2026-01-01T00:00:00Z")], "some times are seconds, others dates"),
        ([line(), line(resource=NODE)], "some lines have a `resource`, others an `object`"),
        ([line(event="drain", object=POD)], "event 1: only a Node can drain, not a Pod"),
        ([line(object=POD, lifetime="long")], "event 1: lifetime 'long' is not a duration such as 300s"),
        ([line(object=POD, lifetime=-3)], "event 1: lifetime -3.0 is not a duration from 0 on"),
        ([line(object={"kind": "Node", "apiVersion": "v1"})], "event 1: Node has no metadata.name"),
        ([line(object={"metadata": {"name": "x"}})], "has no kind"),
        ([line(object=3)], "event 1: expected object, got int"),
        ([line(object=[NODE, NODE])], "event 1: needs one object, has 2"),
        ([line(object={**NODE, "spec": {"taints": 3}})], "event 1: Node n: spec.taints: expected array, got int"),
        ([{"time": [], "event": "add", "object": NODE}], "event 1: is not an event such as"),
        ([line(object=POD, lifetme=3)], "event 1: unknown field 'lifetme'; an event has time, event, object, lifetime"),
        ([line(object=NODE, lifetime=3)], "event 1: lifetime is that of a Pod, not of a Node"),
        ([line(event="delete", object=POD, lifetime=3)], "event 1: lifetime has no use when a Pod is deleted"),
        ([line(object=OTHER)], "input: no events about objects that scheduling reads, only 1 Gadget"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(lines: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_timeline(lines)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"not json\n", "events.jsonl line 1: is not an event"), (b"\x1f\x8bxx", "cannot be unpacked as gzip")],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError, match=problem):
        read_timeline(str(path))
    with pytest.raises(InputError, match="no such file"):
        read_timeline(str(tmp_path / "missing"))
