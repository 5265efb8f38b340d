"""Files that people write for Podium: an error names the file, the line and the field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from podium.errors import InputError
from podium.manifests.located import LocatedDocument, Section, path_in

TEXT = """\
name: pool
size: 3
share: 0.5
enabled: true
labels: [a, b]
settings:
  depth:
    limit: -1
groups:
- name: first
- name: second
  size: many
empty:
"""


def document(folder: Path, text: str = TEXT) -> LocatedDocument:
    path = folder / "file.yaml"
    path.write_text(text)
    return LocatedDocument(str(path))


def test_fields_have_the_types_that_are_asked_for(tmp_path: Path) -> None:
    top = document(tmp_path).section()

    assert (top.text("name"), top.text("other", "usual")) == ("pool", "usual")
    assert (top.one_of("name", ("pool", "lake")), top.whole("size"), top.number("share")) == ("pool", 3, 0.5)
    assert (top.truth("enabled", False), top.truth("off", True)) == (True, True)
    assert (top.texts("labels"), top.texts("name"), top.texts("missing")) == (("a", "b"), ("pool",), ())
    assert [each.text("name") for each in top.items("groups")] == ["first", "second"]
    assert top.items("missing") == []
    assert top.inner("missing").fields == {}
    assert ("size" in top, "empty" in top, "missing" in top) == (True, False, False)


REFUSED: dict[str, tuple[Callable[[Section], object], str]] = {
    "a text that is missing": (lambda top: top.text("missing"), "line 1: missing: needs a text"),
    "a text that is a number": (lambda top: top.text("size"), "line 2: size: is 3; it needs a text"),
    "a number that is a text": (lambda top: top.number("name"), "line 1: name: is 'pool'; it needs a number"),
    "a number that is true": (lambda top: top.number("enabled"), "line 4: enabled: is True; it needs a number"),
    "a number that is a list": (lambda top: top.number("labels"), "line 5: labels: is a list; it needs a number"),
    "a whole number that is none": (lambda top: top.whole("share"), "line 3: share: is 0.5; it needs a whole number"),
    "true or false": (lambda top: top.truth("name", True), "line 1: name: is 'pool'; it needs true or false"),
    "another word": (lambda top: top.one_of("name", ("a", "b")), "line 1: name: is 'pool'; use a, b"),
    "a mapping among texts": (lambda top: top.texts("groups"), "line 9: groups: needs a text or a list of texts"),
    "a list that is a mapping": (
        lambda top: top.items("settings"),
        "line 6: settings: is a mapping; it needs a list",
    ),
    "a number that is too small, further in": (
        lambda top: top.inner("settings").inner("depth").number("limit", least=0),
        "line 8: settings.depth.limit: is -1; it needs 0 or more",
    ),
    "a field of the second of a list": (
        lambda top: top.items("groups")[1].whole("size"),
        "line 12: groups.1.size: is 'many'; it needs a number",
    ),
    "a field further in that is missing": (
        lambda top: top.inner("settings").inner("depth").text("title"),
        "line 7: settings.depth.title: needs a text",
    ),
}


@pytest.mark.parametrize(("ask", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_named_with_its_line(ask: Callable[[Section], object], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        ask(document(tmp_path).section())

    assert str(error.value) == f"{tmp_path}/file.yaml {message}"


def test_a_field_that_nobody_asked_for_is_refused(tmp_path: Path) -> None:
    settings = document(tmp_path).section(("settings",))
    settings.text("title", "usual")

    with pytest.raises(InputError, match=r"line 7: settings\.depth: is not a field here; there are title$"):
        settings.done()

    settings.inner("depth")
    settings.done()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\n---\nb: 2\n", "file.yaml: has 2 documents; it needs one"),
        ("- 1\n", "file.yaml line 1: is a list; it needs fields"),
    ],
)
def test_a_file_is_one_mapping(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        document(tmp_path, text).section()

    assert str(error.value) == f"{tmp_path}/{problem}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a:\n  b: [1, .nan]\n", "line 2: a.b.1: is .nan; it needs a number"),
        (b"a: 1\nb: -.inf\n", "line 2: b: is -.inf; it needs a number"),
        (b"a: 1\nb: \0\n", "line 2: is not text: it has a zero byte"),
        (b"a: 1\n\nb: \xe9\n", "line 3: is not UTF-8 text: "),
    ],
)
def test_what_cannot_be_a_value_is_named_with_its_line(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(text)
    with pytest.raises(InputError) as caught:
        LocatedDocument(str(file))
    assert str(caught.value).startswith(f"{file} {message}")


@pytest.mark.parametrize(
    ("problem", "path"),
    [
        ("spec.taints[0].effect: is empty", ("spec", "taints", 0, "effect")),
        ("status.allocatable['x.com/gpu']: 'x' is not a quantity", ("status", "allocatable", "x.com/gpu")),
        ('unknown field "profiles[0].foo"', ("profiles", 0, "foo")),
        ("durationNanosecond is -5; it needs more", ("durationNanosecond",)),
        ("needs a number", ()),
        ("is 5; it needs a text", ()),
    ],
)
def test_the_path_that_a_problem_begins_with(problem: str, path: tuple[str | int, ...]) -> None:
    assert path_in(problem) == path


def test_a_problem_inside_of_a_value_is_on_its_own_line(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a:\n  b:\n  - c: 1\n  - c: x\n")
    document = LocatedDocument(str(file))
    assert str(document.error(("a",), "b[1].c: is 'x'")) == f"{file} line 4: a: b[1].c: is 'x'"
    assert str(document.error(("a",), "b[7].c: is 'x'")) == f"{file} line 2: a: b[7].c: is 'x'"


def test_fields_other_than_the_allowed_ones_are_refused_before_any_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("maxSiez: 3\n")
    with pytest.raises(InputError, match="line 1: maxSiez: is not a field here; there are minSize, maxSize"):
        LocatedDocument(str(file)).section().allow("minSize", "maxSize")
