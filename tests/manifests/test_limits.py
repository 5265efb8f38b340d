"""Input that has no end, unpacks to too much, or changes while it is read."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.errors import InputError
from podium.manifests import files, load

NODE = b"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
LIMIT = 1 << 20


@pytest.fixture
def limit() -> Iterator[None]:
    token = files.MAX_INPUT.set(LIMIT)
    yield
    files.MAX_INPUT.reset(token)


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
    with pytest.raises(InputError, match=f"{source}: neither YAML nor JSON"):
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
