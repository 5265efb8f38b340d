from __future__ import annotations

from typing import Any

import pytest

from podium.errors import InputError
from podium.manifests.yaml_documents import yaml_documents


def read(text: str) -> list[Any]:
    return list(yaml_documents(text.encode(), "a.yaml"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: [1, yes, 'yes', \"1\", 2024-01-01, ~]", {"a": [1, True, "yes", "1", "2024-01-01", None]}),
        ("a:\n  b: |\n    line\n  c: >-\n    folded\n    text", {"a": {"b": "line\n", "c": "folded text"}}),
        ("- a\n- - b\n  - c", ["a", ["b", "c"]]),
        ("1: a\ntrue: b\n1.5: c", {"1": "a", "true": "b", "1.5": "c"}),
        ("on: push", {"true": "push"}),
        ("a:", {"a": None}),
        ("plain text", "plain text"),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x yes\nc: *x", {"a": True, "c": True}),
    ],
)
def test_builds_values(text: str, value: object) -> None:
    assert read(text) == [value]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: !!str 1", "1"),
        ("a: !!int '1'", 1),
        ("a: !!float 1", 1),
        ("a: !!bool yes", True),
        ("a: !!null ''", None),
        ("a: !!binary aGVsbG8=", "hello"),
        ("a: !mine 5", "5"),
    ],
)
def test_explicit_tags(text: str, value: object) -> None:
    assert read(text) == [{"a": value}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<<: *x\nb: 2", {"a": 1, "b": 2}),
        ("<<: *x\na: 2", {"a": 2}),
        # Go merges where the key stands: what comes before it gives way.
        ("a: 2\n<<: *x", {"a": 1}),
        ("<<: [*y, *x]", {"a": 9, "b": 9}),
        ("'<<': 1", {"<<": 1}),
    ],
)
def test_merge_keys(text: str, value: object) -> None:
    anchors = "anchors:\n- &x {a: 1}\n- &y {a: 9, b: 9}\nvalue:\n  "

    (document,) = read(anchors + text.replace("\n", "\n  "))

    assert document["value"] == value


def test_several_documents() -> None:
    assert read("a: 1\n---\n---\n# nothing\n---\nb: 2\n...\n") == [{"a": 1}, None, None, {"b": 2}]


def test_empty_text_has_no_documents() -> None:
    assert read("# nothing\n") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "a.yaml document 1 line 3: key 'a' is set twice"),
        ("1: a\n'1': b", "a.yaml document 1 line 2: key '1' is set twice"),
        ("x: 1\n---\na:\n\tb: 2", "a.yaml document 2 line 4: found character that cannot start any token; is it YAML?"),
        ("a: [1, 2\nb: 3", "a.yaml document 1 line 2: did not find expected ',' or ']'; is it YAML?"),
        ("a: *x", "a.yaml document 1 line 1: anchor 'x' is unknown, or its value contains itself"),
        ("a: &x [*x]", "a.yaml document 1 line 1: anchor 'x' is unknown, or its value contains itself"),
        ("~: a", "a.yaml document 1 line 1: a map key must be a string, a number or a boolean"),
        ("? [a]\n: b", "a.yaml document 1 line 1: a map key must be a string, a number or a boolean"),
        ("a: .nan", "a.yaml document 1 line 1: NaN and infinity are not allowed"),
        ("<<: 1", "a.yaml document 1 line 1: << needs a map or a list of maps"),
        ("a: !!int b", "a.yaml document 1 line 1: 'b' is not a !!int"),
        ("a: !!binary '*'", "a.yaml document 1 line 1: !!binary value is not base64 text"),
        ("[" * 2000, "a.yaml document 1 line 1: nested deeper than 1000 levels"),
        ("a: \x01", "a.yaml: cannot be read as YAML: control characters are not allowed"),
    ],
)
def test_refuses(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(text)

    assert str(error.value) == message


def test_refuses_what_is_not_utf_8() -> None:
    with pytest.raises(InputError, match=r"^a\.yaml: cannot be read as YAML: invalid"):
        list(yaml_documents(b"a: '\xff'", "a.yaml"))
