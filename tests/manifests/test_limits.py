"""Input that has no end, unpacks to too much, or changes while it is read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium import input_files
from podium.errors import InputError
from podium.manifests import files, load

NODE = b"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
LIMIT = 1 << 20


@pytest.fixture
def limit() -> Iterator[None]:
    token = input_files.MAX_INPUT.set(LIMIT)
    yield
    input_files.MAX_INPUT.reset(token)


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_more_than_the_limit_is_refused(packed: bool, tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    text = NODE + b"# filler: x\n" * LIMIT
    file.write_bytes(gzip.compress(text) if packed else text)

    with pytest.raises(InputError, match=r"large.yaml: has more than the 1,048,576 bytes that are read"):
        load(str(file))


@pytest.mark.parametrize("source", ["/dev/zero", "/dev/urandom"])
def test_a_file_without_an_end_is_refused_at_its_start(source: str) -> None:
    with pytest.raises(InputError, match=f"{source}: is a device, not a regular file"):
        load(source)


def test_a_gzip_bomb_is_refused_at_its_start(tmp_path: Path) -> None:
    file = tmp_path / "bomb.yaml.gz"
    file.write_bytes(gzip.compress(bytes(1 << 24)))

    with pytest.raises(InputError, match=r"bomb.yaml.gz: neither YAML nor JSON"):
        load(str(file))


def test_a_mapped_file_may_shrink_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MAPPED_FROM", 1 << 16)
    file = tmp_path / "nodes.json"
    node = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n%d"}}\n'
    file.write_text("".join(node % number for number in range(4000)))

    documents = files.read_documents(str(file))
    first = next(documents)
    file.write_text("")

    assert first.mapped is not None
    assert len(list(documents)) == 3999


def listed(file: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Iterator[files.Document], Iterator[files.Items]]:
    """The documents of a file with a list that is read part by part, and the parts of the first one."""
    monkeypatch.setattr(files, "_MAPPED_FROM", 1 << 16)
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}} for number in range(9000)]
    file.write_text(json.dumps({"apiVersion": "v1", "items": nodes, "kind": "List"}, indent=4))
    documents = files.read_documents(str(file), guess=True)
    first = next(documents).listed
    assert first is not None
    return documents, first.parts()


def test_a_list_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, parts = listed(tmp_path / "nodes.json", monkeypatch)
    next(parts)
    (tmp_path / "nodes.json").write_text("")

    with pytest.raises(InputError, match=r"nodes.json: changed while it was read; try again"):
        next(parts)


def test_a_list_that_changes_while_it_is_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents, parts = listed(tmp_path / "nodes.json", monkeypatch)
    assert sum(map(len, parts)) == 9000
    os.utime(tmp_path / "nodes.json", ns=(0, 0))

    with pytest.raises(InputError, match=r"nodes.json: changed while it was read; try again"):
        next(documents)
