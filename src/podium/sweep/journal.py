"""The runs that are done, written down one by one, so that a sweep that was interrupted goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from podium.errors import InputError
from podium.sweep.running import Outcome
from podium.sweep.space import Point

NAME = "journal.jsonl"


class Journal:
    """A file of JSON lines: the digest of the inputs, then a line per run."""

    def __init__(self, folder: Path, digest: str) -> None:
        """InputError if the folder has the runs of a sweep with other inputs."""
        self._path = folder / NAME
        self._done: dict[tuple[str, ...], Outcome] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            kept = self._read(digest) if self._path.exists() else b""
            if kept is not None:
                # What an interruption left of a line is no line.
                self._path.write_bytes(kept or msgspec.json.encode({"digest": digest}) + b"\n")
            self._file = open(self._path, "ab")  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise InputError((error.strerror or str(error)).lower(), str(self._path)) from None

    def _read(self, digest: str) -> bytes:
        """The whole lines of the file."""
        lines = self._path.read_bytes().split(b"\n")[:-1]
        if not lines:
            return b""
        try:
            first, *records = [msgspec.json.decode(line) for line in lines]
            if first["digest"] != digest:
                raise InputError(
                    "has runs of a sweep with other inputs; choose another --out, or delete it", str(self._path)
                )
            for record in records:
                # One that failed is tried again.
                if not record["error"]:
                    self._done[_key(record["point"])] = Outcome(record["numbers"])
        except (msgspec.DecodeError, KeyError, TypeError):
            raise InputError("is not the journal of a sweep; choose another --out", str(self._path)) from None
        return b"".join(line + b"\n" for line in lines)

    def __len__(self) -> int:
        return len(self._done)

    def get(self, point: Point) -> Outcome | None:
        """What came of a run, if it was done and did not fail."""
        return self._done.get(_key(point))

    def add(self, point: Point, outcome: Outcome) -> None:
        record = {"point": dict(point), "numbers": outcome.numbers, "error": outcome.error}
        self._file.write(msgspec.json.encode(record) + b"\n")
        self._file.flush()
        self._done[_key(point)] = outcome

    def close(self) -> None:
        self._file.close()


def _key(point: Any) -> tuple[str, ...]:
    return tuple(text for pair in point.items() for text in pair)
