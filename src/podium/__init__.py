"""Podium decides where a Kubernetes pod goes, exactly as kube-scheduler would, and shows why."""

from __future__ import annotations

from importlib import import_module
from pkgutil import get_data

__version__ = "0.1.0"


def _modules() -> dict[str, str]:
    """The module of each public name, from `__init__.pyi`: `from module import name as name`, one a line."""
    lines = (get_data(__name__, "__init__.pyi") or b"").decode().splitlines()
    return {line.split()[3]: line.split()[1] for line in lines if line.startswith("from ")}


_MODULES = _modules()
"""Imported on first use, so that `podium --help` does not wait for NumPy."""

__all__ = [*sorted(_MODULES), "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
