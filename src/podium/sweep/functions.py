"""Functions and plugins of the user's own that a sweep names as `module:function`, also in other processes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from podium.errors import InputError

Sources = Mapping[str, bytes]
"""Python files by name."""


def sources_of(folder: Path) -> Sources:
    """The Python files of a folder, which those that a sweep names may import."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.py"))}


def make_importable(sources: Sources) -> None:
    """Let this process import files that were sent to it."""
    if sources:
        folder = Path(mkdtemp(prefix="podium-sweep-"))
        for name, text in sources.items():
            (folder / name).write_bytes(text)
        import_from(folder, sources)


def import_from(folder: Path, sources: Sources) -> None:
    """Let modules come from a folder, also those that came from elsewhere before, as in an earlier sweep."""
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    for name in sources:
        loaded = sys.modules.get(Path(name).stem)
        if loaded is not None and getattr(loaded, "__file__", None) != str(folder / name):
            del sys.modules[Path(name).stem]
    importlib.invalidate_caches()


def function_named(name: str) -> Callable[..., Any]:
    """The function of a module; InputError if it cannot be had."""
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise InputError(f"{name!r} is not a function as module:function")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way; say which and how
        raise InputError(f"module {module_name!r} cannot be imported: {error}") from error
    function: Callable[..., Any] | None = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"module {module_name!r} has no function {function_name!r}")
    return function
