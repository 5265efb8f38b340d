"""Keeps what is too long for an address, under a short id: scenarios and the events of a timeline."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from podium.errors import InputError

ID_LENGTH = 16


class Kept:
    """Texts by id, the least recently used one going first; the same text has the same id."""

    def __init__(
        self,
        *,
        most: int = 256,
        most_bytes: int = 64 * 2**20,
        seconds: float = 86_400.0,
        now: Callable[[], float] = monotonic,
    ) -> None:
        """`most` texts of together `most_bytes` are kept, each for `seconds` after it was last used."""
        self._most, self._most_bytes, self._seconds, self._now = most, most_bytes, seconds, now
        self._texts: OrderedDict[str, tuple[bytes, float]] = OrderedDict()

    def keep(self, text: bytes) -> str:
        """Keep a text; returns its id. InputError if it is larger than all that may be kept."""
        if len(text) > self._most_bytes:
            raise InputError(f"{len(text):,} bytes are too many to be kept; at most {self._most_bytes:,} are")
        name = hashlib.sha256(text).hexdigest()[:ID_LENGTH]
        self._texts[name] = (text, self._now())
        self._texts.move_to_end(name)
        self._drop()
        return name

    def find(self, name: str) -> bytes | None:
        """The text with this id, which counts as used now; None if it is not kept any more."""
        self._drop()
        found = self._texts.get(name)
        if found is None:
            return None
        self._texts[name] = (found[0], self._now())
        self._texts.move_to_end(name)
        return found[0]

    def _drop(self) -> None:
        """Forget what is too old or too much; the text used last stays."""
        oldest = self._now() - self._seconds
        size = sum(len(text) for text, _ in self._texts.values())
        while self._texts:
            name, (text, used) = next(iter(self._texts.items()))
            is_too_much = len(self._texts) > self._most or size > self._most_bytes
            if used >= oldest and not is_too_much:
                return
            size -= len(text)
            del self._texts[name]
