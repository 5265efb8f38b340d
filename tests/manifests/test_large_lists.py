"""Lists that are decoded some items at a time come out as if they were read whole, whatever they turn out to be."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import InputError
from podium.manifests import files as module
from podium.manifests import load, load_documents
from podium.manifests.files import LargeList, ListedPod

Fields = dict[str, Any]
PODS: list[Fields] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{k}", "namespace": "a", "labels": {"app": f"x{k % 2}"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": f"{k}m"}}}]},
        "status": {"phase": "Running", "startTime": f"2026-01-01T00:00:{k:02d}Z"},
    }
    for k in range(12)
]
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
UNKIND = [{field: pod[field] for field in ("metadata", "spec")} for pod in PODS]
NODE_ITEM = {field: NODE[field] for field in ("metadata", "status")}
BAD = PODS[0] | {"spec": {"overhead": {"cpu": "x y"}}}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"text": "},\n        {" * 30}}
POD_LIKE = {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "no pod"}}


def printed(items: list[Fields], indent: int | None = 4, kind: str = "List", **more: Any) -> str:
    """A list as kubectl prints it."""
    return json.dumps({"apiVersion": "v1", "items": items, "kind": kind, **more}, indent=indent)


def outcome(path: Path) -> Any:
    """All that comes of reading a file, be it an error."""
    try:
        objects = load(path)
    except InputError as error:
        return str(error)
    return list(objects), objects.warnings, objects.ignored, objects.scheduler_config


def compared(text: str | bytes, path: Path) -> Any:
    """What comes of a text, which is the same whether it counts as large or not."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = []
    # Read whole; a list in memory; a list that is read from its file part by part.
    for large, huge in ((1 << 40, 1 << 40), (0, 1 << 40), (0, 0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "LARGE", large)
            patch.setattr(module, "_MAPPED_FROM", huge)
            patch.setattr(module, "PART_SIZE", 1000)
            found.append(outcome(path))
    assert found[0] == found[1] == found[2]
    return found[0]


def whole(text: str) -> LargeList | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LARGE", 0)
        return of_text(text)


def of_text(text: str) -> LargeList | None:
    data = text.encode()
    return LargeList.of(lambda first, end: data[first:end], len(data))


def test_pods_are_decoded_some_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "PART_SIZE", 1500)
    accepted = [pod | {"metadata": {**pod["metadata"], "uid": f"u{place}"}} for place, pod in enumerate(PODS)]
    text = printed([NODE, *accepted, OTHER])
    listed = whole(text)
    assert listed is not None
    parts = list(listed.parts())
    assert len(parts) > 3
    assert sum(map(len, parts)) == 14
    assert sum(isinstance(item, ListedPod) for part in parts for item in part) >= 8
    objects, _, ignored, _ = compared(text, tmp_path / "list.json")
    assert [obj.name for obj in objects] == ["n", *(f"p{k}" for k in range(12))]
    assert {type(obj).__name__ for obj in objects} == {"Node", "Pod"}
    assert ignored == {"ConfigMap": 1}


@pytest.mark.parametrize(
    "text",
    [
        printed(PODS, indent=2),
        printed(PODS, indent=1),
        printed(PODS, indent=None),
        printed([POD_LIKE, *PODS, NODE, POD_LIKE]),
        printed(UNKIND, kind="PodList"),
        printed([*PODS, {"apiVersion": "v1", "kind": "List", "items": [NODE]}]),
        printed(PODS, metadata={"resourceVersion": "", "shards": [{"a": 1}, {"b": 2}]}),
        printed(PODS, zones=[{"a": 1}, {"b": 2}]),
        printed(PODS) + "\n" + printed([NODE]),
        printed(PODS) + "\n---\n" + json.dumps(NODE),
        printed(PODS).replace("\n", "\r\n"),
        printed(PODS).replace(
            '        },\n        {\n            "apiVersion"', '        }, {\n            "apiVersion"'
        ),
        printed(PODS).replace("            }", "        }"),
        printed(UNKIND, kind="PodList") + printed([NODE_ITEM], kind="NodeList"),
        json.dumps({"kind": "PodList", "items": UNKIND}, indent=4) + printed([NODE_ITEM], kind="NodeList"),
        printed(PODS, kind="Basket") + printed([NODE]),
        json.dumps({"items": PODS, "kind": "List"}, indent=4),
        printed(PODS).replace('"items": [', '"items": [\n'),
        "\ufeff" + printed(PODS),
    ],
    ids=range(19),
)
def test_whatever_it_is_the_objects_are_the_same(text: str, tmp_path: Path) -> None:
    assert not isinstance(compared(text, tmp_path / "list.json"), str)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (printed(PODS)[:-2000], "the JSON ends in the middle"),
        (printed(PODS).replace('"p7"', '"p7" "p7"'), "is not JSON"),
        (printed(PODS).replace('"p7"', "7"), "metadata.name"),
        (printed(PODS).replace('"7m"', '"7 milli"'), "7 milli"),
        (printed(PODS).replace('"p7"', '"p6"'), "Pod a/p6 is twice"),
        (printed([*PODS, {"kind": 5}]), "kind"),
        (printed([*PODS, {}]), "item 13"),
        (printed(PODS) + "x", "is not JSON"),
        (printed(PODS).replace('"0m"', '"x"').replace('"p7"', '"p7" "p7"'), "is not JSON"),
        (printed(PODS).replace('"p1"', '"p0"').replace('"p7"', '"p7" "p7"'), "is not JSON"),
        (printed(PODS).replace("        }\n    ]", "        }\n        {}\n    ]"), "is not JSON"),
        (printed(PODS).replace("        }\n    ]", "        } 5\n    ]"), "is not JSON"),
        (printed(PODS).replace('"kind": "List"', '"kind": "List", "items": null'), "key 'items' is set twice"),
        (printed(PODS).replace('"kind": "List"', '"kind": "List", "items": []'), "key 'items' is set twice"),
        ('\n\n{"kind":"List","items":[\n{"a":1}]}]}', "has no kind"),
        (printed(PODS, kind="Basket"), "no objects that scheduling reads, such as nodes and pods; only 1 Basket"),
        (printed([]), "no objects"),
    ],
)
def test_errors_are_the_same(text: str, problem: str, tmp_path: Path) -> None:
    assert problem in compared(text, tmp_path / "list.json")


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    found = compared(printed(PODS).encode().replace(b"x1", b"\xff1"), tmp_path / "list.json")
    assert "UTF-8" in found


def test_an_item_may_be_larger_than_what_is_decoded_at_a_time(tmp_path: Path) -> None:
    large = PODS[0] | {"metadata": {"name": "large", "annotations": {"notes": "x" * 5000}}}
    objects, *_ = compared(printed([*PODS, large, NODE]), tmp_path / "list.json")
    assert len(objects) == 14


def test_a_list_printed_in_another_way_is_read_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "LARGEST_PART", 2000)
    one_line = printed(PODS).replace("        },\n        {", "        } ,\n        {")
    listed = whole(one_line)
    assert listed is not None
    objects, *_ = compared(one_line, tmp_path / "list.json")
    assert len(objects) == 12


def test_small_documents_are_read_whole() -> None:
    assert of_text(printed(PODS)) is None


@pytest.mark.parametrize(
    "text",
    [
        printed(PODS) + '{"a": 1}' + printed([NODE]),
        printed([*PODS, {"a": 1}]) + printed([NODE]),
        json.dumps({"items": PODS}, indent=4) + printed([NODE]),
        printed([*PODS, {"a": 1}]),
    ],
)
def test_what_is_no_object_is_skipped_in_a_directory(text: str, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(text)
    found = {}
    for large in (1 << 40, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "LARGE", large)
            found[large] = outcome(tmp_path)
    assert found[0] == found[1 << 40]
    assert "has no kind" in str(found[0])


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "LARGE", 0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(printed([NODE]).encode())))
    path = tmp_path / "list.json"
    path.write_text(printed(PODS) + printed([OTHER]))
    assert len(load("-", path)) == 13


def test_documents_that_are_asked_for_as_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "LARGE", 0)
    path = tmp_path / "two.json"
    path.write_text(printed(PODS) + printed([NODE]))
    first, second = (value for _, value in load_documents(path))
    assert first == json.loads(printed(PODS))
    assert second == json.loads(printed([NODE]))


@given(
    items=st.lists(st.sampled_from([*PODS, NODE, OTHER, POD_LIKE, UNKIND[3], BAD]), unique_by=json.dumps),
    kind=st.sampled_from(["List", "PodList", "Basket"]),
    more=st.sampled_from(["", printed([NODE]), printed(UNKIND, kind="PodList"), '{"a": 1}']),
    indent=st.integers(1, 6),
    place=st.integers(0, 4000),
    inserted=st.sampled_from(["", " ", "\n", "}", "},", "{", "]", "\n        },\n        {\n"]),
)
def test_damaged_lists_are_no_surprise(
    items: list[Fields],
    kind: str,
    more: str,
    indent: int,
    place: int,
    inserted: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    text = printed(items, indent, kind) + more
    place %= len(text)
    compared(text[:place] + inserted + text[place:], tmp_path_factory.mktemp("lists") / "list.json")


REFUSED = [
    PODS[0] | {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 70_000}]}]}},
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "p"},
        "spec": {"minAvailable": 1, "maxUnavailable": 1},
    },
    {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "r"},
        "spec": {"template": {"spec": {"containers": []}}},
    },
]


@pytest.mark.parametrize("item", REFUSED)
def test_what_is_written_by_hand_is_refused_in_a_large_file_too(item: Fields, tmp_path: Path) -> None:
    """What has a UID was accepted by the API server."""
    assert compared(printed([*PODS[2:], item]), tmp_path / "list.json").startswith(f"{tmp_path / 'list.json'}: ")
    accepted = item | {"metadata": item["metadata"] | {"uid": "2"}}
    (tmp_path / "list.json").write_text(printed([*PODS[2:], accepted]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LARGE", 0)
        patch.setattr("podium.manifests.loading.LARGE", 0)
        assert len(load(tmp_path / "list.json")) == len(PODS[2:]) + 1


@pytest.mark.parametrize("metadata", [{"name": "No_Name"}, {"name": "p0", "labels": {"app": "a b"}}])
def test_what_is_written_by_hand_is_doubted_in_a_large_file_too(metadata: Fields, tmp_path: Path) -> None:
    *_, warnings, _, _ = compared(printed([*PODS[2:], PODS[0] | {"metadata": metadata}]), tmp_path / "list.json")

    assert any(warning.endswith("; the API server would refuse it") for warning in warnings)


MISSPELT = [
    PODS[0] | {"spec": {"containers": [{"name": "c", "resorces": {}}]}},
    NODE | {"status": {"allocatible": {}}},
    {"apiVersion": "apps/v1", "kind": "Deploymnet", "metadata": {"name": "d"}},
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {"minAvailible": 1}},
]


@pytest.mark.parametrize("item", MISSPELT)
@pytest.mark.parametrize("indent", [4, None])
def test_names_kubernetes_does_not_know_are_told_in_a_large_file_too(
    item: Fields, indent: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.manifests.loading.LARGE", 0)
    *_, warnings, _, _ = compared(printed([*PODS[2:], item], indent), tmp_path / "list.json")

    assert sum("unknown" in warning for warning in warnings) == 1, warnings


def test_of_very_many_objects_the_first_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.manifests.loading.LARGE", 0)
    monkeypatch.setattr("podium.manifests.loading.MOST_SEARCHED", 3)
    file = tmp_path / "list.json"
    file.write_text(printed([pod | {"spec": {"nodName": "n"}} for pod in PODS]))

    assert sum("unknown" in warning for warning in load(file).warnings) == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"name": "p0"', '"name": "p0", "name": "p0"'),
        ('"app": "x0"', '"app": "\\u0022:", "app": "x0"'),
        ('"apiVersion": "v1"', '"apiVersion": "v7"'),
        ('[{"name": "c"}]', "[]"),
        ('[{"name": "c"}]', "null"),
        ('[{"name": "c"}]', "[null]"),
    ],
)
def test_what_the_text_alone_shows_is_refused_in_a_large_file_too(
    old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.manifests.loading.LARGE", 0)
    text = json.dumps(PODS[0] | {"spec": {"containers": [{"name": "c"}]}})
    assert old in text
    file = tmp_path / "list.json"
    wrong = printed([*PODS[2:], {"stands": "here"}]).replace('{\n            "stands": "here"\n        }', "%s")

    assert len(compared(wrong % text, file)[0]) == len(PODS) - 1
    assert compared(wrong % text.replace(old, new, 1), file).startswith(f"{file}")
