from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from podium.errors import InputError
from podium.manifests import load, load_documents

A, B = {"kind": "A"}, {"kind": "B"}


def write(path: Path, content: str | bytes = "kind: A\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path) -> list[Any]:
    return [value for _, value in load_documents(path)]


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        ("kind: A\n---\nkind: B\n", [A, B]),
        ("---\n# nothing\n---\nkind: A\n", [A]),
        ('{"kind": "A"}', [A]),
        ('\n  {"kind": "A"}\n\n', [A]),
        ('{"kind": "A"}\n{"kind": "B"}\n', [A, B]),
        ('{"kind": "A"}\r\n{"kind":\n"B"}\r\n', [A, B]),
        ('{"kind": "A"}{"kind": "B"}', [A, B]),
        ('{\n  "kind": "A"\n}\n---\n{\n  "kind": "B"\n}\n---\n', [A, B]),
        ('[{"kind": "A"}, {"kind": "B"}]', [[A, B]]),
        ('{"kind": 5}\n{"kind": "B"}', [{"kind": 5}, B]),
        ("{kind: A}", [A]),
        ("[{kind: A}]", [[A]]),
        (b"\xef\xbb\xbf" + b'{"kind": "A"}', [A]),
        ('{"kind": "A"}'.encode("utf-16"), [A]),
        (gzip.compress(b"kind: A\n", mtime=0), [A]),
        (gzip.compress(b'{"kind": "A"}', mtime=0), [A]),
        ("", []),
        ("# nothing\n", []),
        ('{"kind": "A", "text": "' + "x" * 100_000 + '"}', [{"kind": "A", "text": "x" * 100_000}]),
    ],
)
def test_reads_whatever_the_name_says(tmp_path: Path, content: str | bytes, documents: list[object]) -> None:
    assert read(write(tmp_path / "objects", content)) == documents


def test_says_where_documents_are(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", "kind: A\n---\n---\nkind: B\n")

    assert list(load_documents(path)) == [(f"{path} document 1", A), (f"{path} document 3", B)]


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"kind: A\n---\nkind: B", mtime=0))))

    assert list(load_documents("-")) == [("stdin document 1", A), ("stdin document 2", B)]


def test_values() -> None:
    assert list(load_documents(A)) == [("input", A)]
    assert list(load_documents([A, B])) == [("input", [A, B])]


def test_directories_are_searched_in_order(tmp_path: Path) -> None:
    for name in (
        "b.yaml",
        "a.yml",
        "c/d.json",
        "c/e.yaml.gz",
        ".hidden.yaml",
        ".git/f.yaml",
        "notes.txt",
        "c/.x/g.json",
    ):
        text = f"{{name: {name}}}" if not name.endswith("json") else f'{{"name": "{name}"}}'
        write(tmp_path / name, gzip.compress(text.encode(), mtime=0) if name.endswith(".gz") else text)

    assert [document["name"] for document in read(tmp_path)] == ["a.yml", "b.yaml", "c/d.json", "c/e.yaml.gz"]


def test_linked_directories_are_followed_once(tmp_path: Path) -> None:
    write(tmp_path / "here" / ".elsewhere" / "b.yaml", "kind: B")
    write(tmp_path / "here" / "a.yaml", "kind: A")
    (tmp_path / "here" / "loop").symlink_to(tmp_path / "here")
    (tmp_path / "here" / "linked").symlink_to(tmp_path / "here" / ".elsewhere")
    (tmp_path / "here" / "again").symlink_to(tmp_path / "here" / ".elsewhere")
    (tmp_path / "here" / "same.yaml").symlink_to(tmp_path / "here" / "a.yaml")

    assert read(tmp_path / "here") == [A, B]


@pytest.mark.parametrize("target", ["elsewhere", "elsewhere/b.yaml"])
def test_a_link_out_of_the_directory_is_refused(target: str, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "b.yaml", "kind: B")
    write(tmp_path / "here" / "a.yaml", "kind: A")
    (tmp_path / "here" / "out.yaml").symlink_to(tmp_path / target)

    with pytest.raises(InputError, match=r"here/out.yaml: is a link that leads out of the directory"):
        read(tmp_path / "here")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"kind": "A"', "the JSON ends in the middle; is the file complete?"),
        ('{"kind": "A"}\n\n{"kind": oops}', "line 3 is not JSON: invalid character"),
        ('{"kind": "A",}', "line 1 is not JSON: trailing comma in object"),
        (b"\x1f\x8bnot gzip", "cannot be unpacked as gzip: "),
        (b"\xff\xfea", "is not UTF-16 text: truncated data"),
        (b"\x89PNG\r\n\x1a\n\0\0", "neither YAML nor JSON of Kubernetes objects: starts with '\ufffdPNG\\r'"),
        ("lorem ipsum\n" * 100_000, "neither YAML nor JSON of Kubernetes objects: starts with 'lorem ipsum'"),
        ("{" * 100_000, "line 1 is not JSON: "),
    ],
)
def test_refuses_at_once_and_in_one_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = write(tmp_path / "a.json", content)

    with pytest.raises(InputError) as error:
        read(path)

    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < len(str(path)) + 150


def test_refuses_json_too_deep_or_not_utf_8(tmp_path: Path) -> None:
    for content, problem in ((b"[" * 100_000, "nested too deeply$"), (b'{"kind": "\xff"}', "")):
        with pytest.raises(InputError, match=rf"a\.json document 1: cannot be read as JSON: {problem}"):
            read(write(tmp_path / "a.json", content))


def test_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gone: no such file or directory"):
        read(tmp_path / "gone")


def test_refuses_a_directory_without_objects(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.yaml, \.yml, \.json file in this directory"):
        read(tmp_path)


POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n"
TEMPLATES = {
    "a value": ("kind: Pod\nmetadata:\n  name: {{ .Release.Name }}-web\n", "document 1 line 3: {{ .Release.Name }}"),
    "a condition": ("{{- if .Values.enabled }}\n" + POD, "document 1 line 1: {{- if .Values.enabled }}"),
    "labels": (
        POD + '  labels:\n    {{- include "web.labels" . | nindent 4 }}\n    a: b\n',
        'document 1 line 6: {{- include "web.labels" . | nindent 4 }}',
    ),
    "a name in quotes": (POD.replace("p\n", '"{{ .Release.Name }}"\n'), "document 1: {{ .Release.Name }}"),
    "a label in quotes": (POD + "  labels: {a: '{{ .Values.a }}'}\n", "document 1: {{ .Values.a }}"),
    "a number in quotes": (
        POD + "spec:\n  priority: '{{ .Values.priority }}'\n",
        "Pod default/p: spec.priority: expected int | null, got str; {{ .Values.priority }}",
    ),
}


@pytest.mark.parametrize(("text", "problem"), TEMPLATES.values(), ids=TEMPLATES)
def test_a_template_of_helm_is_told_from_what_it_makes(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "deployment.yaml"
    file.write_text(text)
    between = ": " if problem.startswith("Pod") else " "

    with pytest.raises(InputError) as refused:
        load(file)

    assert str(refused.value) == (
        f"{file}{between}{problem} looks like an unrendered Helm template; run `helm template` first"
    )


def test_templates_in_texts_are_none_of_helms(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(POD + "  annotations: {text: '{{ .Values.text }}'}\nspec: {containers: [{name: c}]}\n")
    assert len(load(file)) == 1

    file.write_text(POD + "  annotations: {text: '{{ .Values.text }}'}\n  a: b\n  c: d\n  e: f\n  g: [\n")
    with pytest.raises(InputError, match="is it YAML"):
        load(file)
