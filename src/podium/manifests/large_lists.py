"""Large lists as kubectl prints them, some items at a time: one look at the text instead of two.

Where an item of a list ends is known only when all of it was read, so a list is looked through for its items before
these are decoded. kubectl begins every item on a line of its own, which shows where items are likely to end. Text that
decodes as some values after one another is just that, so once all parts were decoded the guess is known to be right.
Until then it may turn out to be wrong, and nothing of what was read may be used.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from typing import Generic, Literal, TypeVar

import msgspec

from podium.model import Pod

Text = bytes | mmap.mmap
Items = list[msgspec.Raw] | list["ListedPod"]

T = TypeVar("T")


class Envelope(msgspec.Struct, Generic[T], rename="camel", gc=False):
    kind: str | None = None
    api_version: str | None = None
    items: list[T] | None = None


RawEnvelope = Envelope[msgspec.Raw]
"""The envelope of JSON: the items stay undecoded."""

LARGE = 1 << 20
"""How many bytes a document has at least for which this is worth the effort."""
AT_ONCE = 1 << 17
"""About how many bytes are decoded at a time: what comes of them is used while it is still in the processor's cache."""
MOST_AT_ONCE = 1 << 26
"""More bytes without any item that ends where it was expected mean that the list is printed in another way."""

_START = re.compile(rb'\{(?:\s*"(?:apiVersion|kind)"\s*:\s*"[^"\\]*"\s*,)*\s*"items"\s*:\s*\[(\s*\n[ \t]*)\{')
_ITEM = b'{"stands": "for all items"}'
_ENVELOPE = msgspec.json.Decoder(RawEnvelope)


class ListedPod(Pod, frozen=True, kw_only=True):
    """A pod that says it is one, which is what most items of large lists are."""

    kind: Literal["Pod"]
    api_version: Literal["v1"]


_PODS = msgspec.json.Decoder(list[ListedPod])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


class GuessError(Exception):
    """What looked like a large list is something else."""


class LargeList:
    """The items of a list, found by their indentation."""

    def __init__(self, text: Text, first: int, end: int, indent: bytes, envelope: RawEnvelope) -> None:
        """The items are in `text[first:end]`, each of them after an `indent`; `envelope` is that of the whole list."""
        self._text, self._first, self._end = text, first, end
        self._close, self._between = indent + b"}", indent + b"}," + indent + b"{"
        self.kind, self.api_version = envelope.kind or "", envelope.api_version or ""

    @classmethod
    def at(cls, text: Text, start: int) -> LargeList | None:
        """The list at a place in a text, if it is a large one that fills the text."""
        head = _START.match(text, start) if len(text) - start > LARGE else None
        if head is None:
            return None
        first, close = head.end() - 1, head[1] + b"}"
        end = text.rfind(close, first, text.rfind(b"]")) + len(close)
        if end < first:
            return None
        try:
            envelope = _ENVELOPE.decode(text[start:first] + _ITEM + text[end:])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        is_list = envelope.items == [msgspec.Raw(_ITEM)] and (envelope.kind or "").endswith("List")
        return cls(text, first, end, head[1], envelope) if is_list else None

    def parts(self) -> Iterator[Items]:
        """The items, as many at a time as are likely to be read whole; GuessError where that was wrong."""
        start = self._first
        while start < self._end:
            end = self._end_of_part(start)
            yield _decoded(b"".join([b"[", memoryview(self._text)[start:end], b"]"]))
            start = end + len(self._between) - len(self._close) - 1

    def _end_of_part(self, start: int) -> int:
        if self._end - start <= AT_ONCE:
            return self._end
        found = self._text.rfind(self._between, start, start + AT_ONCE)
        if found < 0:
            found = self._text.find(self._between, start, start + MOST_AT_ONCE)
        if found >= 0:
            return found + len(self._close)
        if self._end - start > MOST_AT_ONCE:
            raise GuessError
        return self._end


def _decoded(text: bytes) -> Items:
    try:
        try:
            return _PODS.decode(text)
        except (msgspec.ValidationError, UnicodeDecodeError):
            return _ITEMS.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise GuessError from None
