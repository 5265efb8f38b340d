"""Files that commands write: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_text(path: str, text: str) -> None:
    """Write a file of text at once."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str, data: bytes) -> None:
    """Write a file at once: whoever reads it finds the old one or the new one, never a part, even if interrupted."""
    from podium.errors import InputError

    target = Path(path)
    temporary = ""
    try:
        # A device or a pipe, such as /dev/stdout, cannot be replaced.
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, _permissions(target))
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        raise InputError((error.strerror or str(error)).lower(), path) from None
    except BaseException:
        _remove(temporary)
        raise


def _remove(temporary: str) -> None:
    with suppress(OSError):
        os.unlink(temporary)


def _permissions(target: Path) -> int:
    """Those of the file that is replaced, or what a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
