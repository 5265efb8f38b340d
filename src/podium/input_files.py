"""Opens the files that a user names: regular files only, and not more of them than is allowed.

A named pipe or a device may never end or never begin, and a file of /proc or /sys is part of the kernel.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
from contextvars import ContextVar
from typing import IO, cast

from podium.errors import InputError

MAX_INPUT: ContextVar[int | None] = ContextVar("MAX_INPUT", default=None)
"""The maximum size of a file in bytes, unpacked, as the user set it."""
MOST_BYTES = 4 << 30
"""The maximum size of a plain file, unless the user sets another."""
MOST_UNPACKED = 1 << 30
"""The maximum size of what is held in memory as a whole, packed files and pipes, unless the user sets another."""

_OPEN_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")
_KERNEL_FILES = ("/proc/", "/sys/")
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def most_bytes(*, unpacked: bool = False) -> int:
    """How many bytes of a file are read."""
    return MAX_INPUT.get() or (MOST_UNPACKED if unpacked else MOST_BYTES)


def too_large(name: str, *, unpacked: bool = False) -> InputError:
    """The error for a file of more bytes than are read."""
    most = most_bytes(unpacked=unpacked)
    return InputError(f"has more than the {most:,} bytes that are read; allow more with --max-input", name)


def open_input(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file for reading its bytes; InputError for one that is not regular, OSError as `open` raises it.

    The shell's `<(command)` is a pipe too, but the user has opened it for this very command: it is read.
    """
    name = os.fspath(path)
    is_open_already = name == "/dev/stdin" or name.startswith(_OPEN_DESCRIPTORS)
    if not is_open_already and os.path.realpath(name).startswith(_KERNEL_FILES):
        raise InputError("belongs to the kernel; copy it to a regular file first", name)
    # Opening a named pipe would wait for a writer.
    descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not stat.S_ISREG(mode) and not (is_open_already and stat.S_ISFIFO(mode)):
            kind = next((kind for is_one, kind in _KINDS if is_one(mode)), "no file")
            raise InputError(f"is {kind}, not a regular file; to read it, pass - and redirect stdin", name)
        if hasattr(os, "set_blocking"):
            os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_input(path: str | os.PathLike[str], most: int = 64 << 20) -> bytes:
    """All of a small file such as a certificate or a token."""
    with open_input(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"has more than {most >> 20} MiB", os.fspath(path))
    return data


class Unpacked(io.RawIOBase):
    """A stream of unpacked bytes that ends with an InputError once it has more of them than are read."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, name: str) -> None:
        self._stream, self._name, self._left = stream, name, most_bytes(unpacked=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        data = self._stream.read(len(view))
        self._left -= len(data)
        if self._left < 0:
            raise too_large(self._name, unpacked=True)
        view[: len(data)] = data
        return len(data)
