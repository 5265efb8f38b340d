"""Reads input: files, directories, stdin and values; large JSON lists are read in parts."""

from __future__ import annotations

import gzip
import json
import mmap
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, Generic, Literal, NamedTuple, TypeVar, cast

import msgspec

from podium.errors import InputError, os_problem
from podium.input_files import most_bytes, open_input, too_large
from podium.manifests.yaml_documents import yaml_documents
from podium.model import Pod

SEARCHED_FOR_KEYS = 1 << 20
"""JSON documents of up to this many bytes are searched for duplicate keys; larger ones are dumps."""


def refuse_duplicate_keys(text: bytes, where: str) -> None:
    """InputError for a duplicate key in a map of the document; it names the object around it."""
    search = _Search()
    try:
        json.loads(text, object_pairs_hook=search.map)
    except (ValueError, RecursionError):
        return  # text that is not JSON is refused where it is decoded
    if search.key is not None:
        name = f": {search.name}" if search.name else ""
        raise InputError(f"key {search.key!r} is set twice", where + name)


class _Search:
    """Visits every map of a document, the inner ones first."""

    def __init__(self) -> None:
        self.key: str | None = None
        """The first duplicate key."""
        self.name = ""
        """The object that contains the key."""

    def map(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if self.key is None and len(value) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            self.key = next(key for key, count in counts.items() if count > 1)
        if self.key is not None and not self.name and isinstance(value.get("metadata"), dict) and "kind" in value:
            self.name = f"{value['kind']} {value['metadata'].get('name', 'without a name')}"
        return value


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
"""From this many bytes on, a document is read in parts."""
PART_SIZE = 1 << 17
"""The approximate number of bytes decoded at a time, so that the results are used while they are in the CPU cache."""
LARGEST_PART = 1 << 26
"""If no item ends as expected within this many bytes, the list is formatted in another way."""

_START = re.compile(rb'\{(?:\s*"(?:apiVersion|kind)"\s*:\s*"[^"\\]*"\s*,)*\s*"items"\s*:\s*\[(\s*\n[ \t]*)\{')
_ITEM = b'{"stands": "for all items"}'
_ENVELOPE = msgspec.json.Decoder(RawEnvelope)


class ListedPod(Pod, frozen=True, kw_only=True):
    """A pod that states its kind, as most items of large lists do."""

    kind: Literal["Pod"]
    api_version: Literal["v1"]


_PODS = msgspec.json.Decoder(list[ListedPod])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
MOST_SEARCHED = 1_000
"""How many objects of a kind in large files are searched for unknown names. A program that misspells a name does so in
all objects, and searching takes longer than reading.
"""


class GuessError(Exception):
    """A text that looked like a large list is something else."""


Reader = Callable[[int, int], bytes]
"""Returns the bytes of a text between two positions."""


class LargeList:
    """The items of a list, found by their indentation and read in parts."""

    def __init__(self, read: Reader, first: int, end: int, indent: bytes, envelope: RawEnvelope) -> None:
        """The items are between `first` and `end`, each after an `indent`; `envelope` is that of the whole list."""
        self._read, self._first, self._end = read, first, end
        self._close, self._between = indent + b"}", indent + b"}," + indent + b"{"
        self.kind, self.api_version = envelope.kind or "", envelope.api_version or ""

    @classmethod
    def of(cls, read: Reader, size: int) -> LargeList | None:
        """The list in a text of this size, if it is a large list, else None."""
        if size <= LARGE:
            return None
        start_of_text = read(0, min(size, _HEAD))
        start = _first_place(start_of_text)
        head = _START.match(start_of_text, start)
        if head is None:
            return None
        first, close = head.end() - 1, head[1] + b"}"
        rest_from = max(first, size - _HEAD)
        rest = read(rest_from, size)
        last = rest.rfind(close, 0, rest.rfind(b"]"))
        if last < 0:
            return None
        end = last + len(close)
        try:
            envelope = _ENVELOPE.decode(start_of_text[start:first] + _ITEM + rest[end:])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        is_list = envelope.items == [msgspec.Raw(_ITEM)] and (envelope.kind or "").endswith("List")
        return cls(read, first, rest_from + end, head[1], envelope) if is_list else None

    def parts(self) -> Iterator[Items]:
        """The items, as many at a time as are likely to be complete; GuessError if they are not."""
        start, searched = self._first, 0
        while start < self._end:
            part = self._part(start)
            items, without_uid = _decoded_items(b"".join([b"[", part, b"]"]), searched < MOST_SEARCHED)
            searched += without_uid
            yield items
            start += len(part) + len(self._between) - len(self._close) - 1

    def _part(self, start: int) -> memoryview:
        """Some complete items, beginning at a position."""
        text = self._read(start, min(start + PART_SIZE, self._end))
        if start + len(text) == self._end:
            return memoryview(text)
        found = text.rfind(self._between)
        if found < 0:
            text = self._read(start, min(start + LARGEST_PART, self._end))
            found = text.find(self._between)
        if found >= 0:
            return memoryview(text)[: found + len(self._close)]
        if start + len(text) < self._end:
            raise GuessError
        return memoryview(text)


def _decoded_items(text: bytes, is_searched: bool) -> tuple[Items, int]:
    """Pods, or undecoded items; and how many pods have no UID.

    Pods are left undecoded if one has no UID and their text is to be searched for unknown names.
    """
    try:
        try:
            pods = _PODS.decode(text)
            without_uid = sum(not pod.metadata.uid for pod in pods)
            return (_ITEMS.decode(text) if without_uid and is_searched else pods), without_uid
        except (msgspec.ValidationError, UnicodeDecodeError):
            return _ITEMS.decode(text), 0
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise GuessError from None


Source = str | os.PathLike[str] | Mapping[str, object] | Sequence[Mapping[str, object]]
"""A path, `-` for stdin, an object as a dict, or a list of those."""


STDIN = "-"
VALUES = "input"

_SUFFIXES = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
GZIP_MAGIC = b"\x1f\x8b"
# PowerShell's redirection writes UTF-16.
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 64 * 1024
_CHUNK = 1 << 24
_MAPPED_FROM = 1 << 26
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?\s*")
_BETWEEN = re.compile(rb"(?:\s|---[^\n]*(?:\n|$))*")
_BYTE = re.compile(r"\(byte (\d+)\)")
_RAW = msgspec.json.Decoder(msgspec.Raw)

# YAML's `{a: b}` looks like JSON at first; an error further in means broken JSON.
_FLOW_YAML_SHOWS_WITHIN = 4096


class Document(NamedTuple):
    """One document as read: `value` is undecoded JSON (`msgspec.Raw`) or a plain value."""

    where: str
    file: str
    value: object
    envelope: RawEnvelope | None = None
    """The envelope of a JSON document, if it has one: reading finds the kind and the items in the same pass."""
    found: bool = False
    """Whether a directory search found it, as opposed to the user naming its file."""
    mapped: mmap.mmap | None = None
    """The mapped file that contains it."""
    listed: LargeList | None = None
    """For a text that looks like a large list, in place of the value: where its items are likely to be."""

    def release(self) -> None:
        """Free the memory of the mapped file's pages; they are read again from the file if needed."""
        if self.mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.mapped.madvise(mmap.MADV_DONTNEED)


def load_documents(source: Source) -> Iterator[tuple[str, object]]:
    """Every document of a source as plain values, each with its position (`cluster.yaml document 3`)."""
    for document in read_documents(source):
        value = document.value
        if isinstance(value, msgspec.Raw):
            try:
                value = msgspec.json.decode(value)
            except UnicodeDecodeError as error:
                raise InputError(f"is not UTF-8 text: {error.reason}", document.where) from None
            except (msgspec.DecodeError, RecursionError) as error:
                raise InputError(f"cannot be read as JSON: {error}", document.where) from None
        yield document.where, value


def read_documents(source: Source, *, guess: bool = False) -> Iterator[Document]:
    """Every document of a source, in order; empty documents are left out.

    With `guess`, a file that looks like a large list yields one document with nothing but `listed`.
    """
    if isinstance(source, str) and source == STDIN:
        yield from _documents(_unpacked(stdin(), "stdin"), "stdin")
    elif isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if os.path.isdir(path):
            for file in files_under(path):
                for document in _of_file(file, guess):
                    yield document._replace(found=True)
        else:
            yield from _of_file(path, guess)
    elif isinstance(source, Mapping):
        yield Document(VALUES, VALUES, source)
    else:
        yield Document(VALUES, VALUES, list(source))


def files_under(directory: str) -> list[str]:
    """The YAML and JSON files under a directory, sorted, each real file once; hidden names are skipped.

    A link that leads out of the directory is an InputError: whoever made the directory must not choose other files.
    """
    found: list[str] = []
    top = os.path.realpath(directory)
    seen = {top}
    for folder, subfolders, names in os.walk(directory, followlinks=True):
        # Sorting in place also sets the order of the walk; a folder seen before is a loop of links.
        subfolders[:] = sorted(
            name
            for name in subfolders
            if not name.startswith(".") and _first_time(os.path.join(folder, name), top, seen)
        )
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(_SUFFIXES) and not name.startswith(".") and _first_time(path, top, seen):
                found.append(path)
    if not found:
        raise InputError(f"no {', '.join(_SUFFIXES[:3])} file in this directory", directory)
    return sorted(found)


def _first_time(path: str, top: str, seen: set[str]) -> bool:
    real = os.path.realpath(path)
    if os.path.commonpath((top, real)) != top:
        raise InputError("is a link that leads out of the directory; name its target with -f if it belongs", path)
    if real in seen:
        return False
    seen.add(real)
    return True


def _of_file(path: str, guess: bool) -> Iterator[Document]:
    """The documents of a file; with `guess`, a huge list is read in parts while its document is in use."""
    if guess and _may_be_huge_list(path):
        with open_input(path) as file:
            before = os.fstat(file.fileno())
            listed = LargeList.of(partial(_piece, path, file), before.st_size)
            if listed is not None:
                yield Document(f"{path} document 1", path, None, listed=listed)
                if os.fstat(file.fileno()).st_mtime_ns != before.st_mtime_ns:
                    raise _changing(path)
                return
    yield from _documents(_text(path), path, guess)


def _may_be_huge_list(path: str) -> bool:
    try:
        return _MAPPED_FROM < os.stat(path).st_size <= most_bytes() and os.access(path, os.R_OK)
    except OSError:
        return False


def _piece(path: str, file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    found = file.read(end - start)
    if len(found) < end - start:
        raise _changing(path)
    return found


def _changing(path: str) -> InputError:
    return InputError("changed while it was read; try again when nothing writes to it", path)


def _text(path: str) -> Text:
    """A file's bytes, unpacked; large plain files are mapped instead of read, so that their memory can be freed.

    A copy is mapped: if the file itself shrank while it is mapped, the process would crash.
    """
    try:
        with open_input(path) as file:
            plain = file.peek(2)[:2] not in (GZIP_MAGIC, *UTF_16_MARKS)
            size = os.fstat(file.fileno()).st_size
            if size > most_bytes():
                raise too_large(path)
            if plain and size > _MAPPED_FROM:
                with tempfile.TemporaryFile() as copy:
                    shutil.copyfileobj(file, copy, _CHUNK)
                    copy.flush()
                    return mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)
            return _unpacked(file, path)
    except OSError as error:
        raise InputError(os_problem(error), path) from None


def stdin() -> BinaryIO:
    """The bytes of stdin; InputError if it is closed, as with the shell's `<&-`."""
    if sys.stdin is None:
        raise InputError("is closed; there is nothing to read", "stdin")
    return cast(BinaryIO, sys.stdin.buffer)


def read_bytes(source: str) -> bytes:
    """All of a file, or of stdin (`-`), unpacked; InputError for input that cannot be read, is garbage or has
    no end.
    """
    if source == STDIN:
        return _unpacked(stdin(), "stdin")
    text = _text(source)
    return text if isinstance(text, bytes) else bytes(text)


def _unpacked(stream: BinaryIO, name: str) -> bytes:
    """All of a stream, unpacked and as UTF-8; InputError for a stream that is garbage or has no end."""
    try:
        start = stream.read(2)
        whole = cast(BinaryIO, _Rest(start, stream))
        data = _all_of(cast(BinaryIO, gzip.GzipFile(fileobj=whole)) if start == GZIP_MAGIC else whole, name)
        return data.decode("utf-16").encode() if data[:2] in UTF_16_MARKS else data
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"cannot be unpacked as gzip: {error}", name) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-16 text: {error.reason}", name) from None


class _Rest:
    """A stream whose first bytes have been read already."""

    def __init__(self, start: bytes, stream: BinaryIO) -> None:
        self._start, self._stream = start, stream

    def read(self, size: int = -1) -> bytes:
        start, self._start = self._start, b""
        return start + self._stream.read(size - len(start) if size >= 0 else size) if start else self._stream.read(size)


def _all_of(stream: BinaryIO, name: str) -> bytes:
    """The contents of a stream, up to the limit; its first bytes show whether it is text at all."""
    data = bytearray()
    while part := stream.read(_CHUNK if data else _HEAD):
        if not data and part[:2] not in UTF_16_MARKS and _is_garbage(part, len(part) == _HEAD):
            raise _garbage(part, name)
        data += part
        if len(data) > most_bytes(unpacked=True):
            raise too_large(name, unpacked=True)
    return bytes(data)


def _is_garbage(head: bytes, there_is_more: bool) -> bool:
    """Whether input that starts like this can be neither YAML nor JSON of objects.

    To YAML, text without a colon is one long scalar; a large file of it is refused before it is parsed.
    """
    is_json = head.lstrip()[:1] in (b"{", b"[")
    return b"\0" in head or (there_is_more and b":" not in head and not is_json)


def _garbage(head: bytes, name: str) -> InputError:
    return InputError(f"neither YAML nor JSON of Kubernetes objects: starts with {_snippet(head)}", name)


def _first_place(text: Text) -> int:
    """The position of the first character after a byte-order mark and blanks."""
    blank = _BLANK.match(text)
    return 0 if blank is None else blank.end()


def _documents(text: Text, name: str, guess: bool = False) -> Iterator[Document]:
    start = _first_place(text)
    if text[start : start + 1] in (b"{", b"["):
        listed = LargeList.of(lambda first, end: text[first:end], len(text)) if guess else None
        if listed is None:
            yield from _json_or_flow_yaml(text, start, name)
        else:
            yield Document(f"{name} document 1", name, None, listed=listed)
        return
    head = text[start : start + _HEAD]
    if _is_garbage(head, len(text) > _HEAD):
        raise _garbage(head, name)
    yield from _yaml(text, name)


def _yaml(text: Text, name: str) -> Iterator[Document]:
    for number, value in enumerate(yaml_documents(bytes(text), name), 1):
        if value is not None:
            yield Document(f"{name} document {number}", name, value)


def _json_or_flow_yaml(text: Text, start: int, name: str) -> Iterator[Document]:
    try:
        yield from _json(text, start, name)
    except _NotJSONError as error:
        if ".json" in name or error.position > _FLOW_YAML_SHOWS_WITHIN or error.documents:
            raise InputError(str(error), name) from None
        yield from _yaml(text, name)


class _NotJSONError(Exception):
    def __init__(self, message: str, position: int, documents: int) -> None:
        super().__init__(message)
        self.position = position
        self.documents = documents


def _json(text: Text, start: int, name: str) -> Iterator[Document]:
    """One or several JSON documents, with nothing, blanks or `---` between them."""
    view = memoryview(text)
    number = 0
    while start < len(view):
        end_of_line = text.find(b"\n", start)
        try:
            length, envelope = _first_value(view[start:], view[start : end_of_line if end_of_line >= 0 else len(view)])
        except RecursionError:
            raise InputError("cannot be read as JSON: nested too deeply", f"{name} document {number + 1}") from None
        except UnicodeDecodeError as error:
            raise InputError(f"cannot be read as JSON: {error}", f"{name} document {number + 1}") from None
        except msgspec.DecodeError as error:
            at = _BYTE.search(str(error))
            position = start + int(at[1]) if at else len(view)
            raise _NotJSONError(_json_problem(error, text, position), position, number) from None
        number += 1
        end = start + length
        if length <= SEARCHED_FOR_KEYS:
            refuse_duplicate_keys(bytes(view[start:end]), f"{name} document {number}")
        value = msgspec.Raw(view[start:end])
        yield Document(f"{name} document {number}", name, value, envelope, mapped=_mapped(text))
        start = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]


def _mapped(text: Text) -> mmap.mmap | None:
    return text if isinstance(text, mmap.mmap) else None


def _first_value(view: memoryview, line: memoryview) -> tuple[int, RawEnvelope | None]:
    """The length of the first JSON value, and its envelope if it has one; it may well be the whole first line."""
    try:
        return len(line), _ENVELOPE.decode(line)
    except msgspec.DecodeError:
        pass
    try:
        return _decoded(_ENVELOPE, view)
    except msgspec.ValidationError:
        return _decoded(_RAW, view)[0], None


def _decoded(decoder: msgspec.json.Decoder[T], view: memoryview) -> tuple[int, T]:
    try:
        return len(view), decoder.decode(view)
    except msgspec.DecodeError as error:
        at = _BYTE.search(str(error))
        if at is None or "trailing characters" not in str(error):
            raise
        # The position is just after the first character that does not belong to the value.
        end = int(at[1]) - 1
        return end, decoder.decode(view[:end])


def _json_problem(error: msgspec.DecodeError, text: Text, position: int) -> str:
    if "truncated" in str(error):
        return "the JSON ends in the middle; is the file complete?"
    line = text[:position].count(b"\n") + 1
    problem = _BYTE.sub("", str(error)).removeprefix("JSON is malformed:").strip()
    return f"line {line} is not JSON: {problem}"


def _snippet(head: bytes) -> str:
    return repr(head[:40].decode("utf-8", "replace").split("\n")[0])
