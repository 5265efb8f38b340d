"""Naming the plugin that raised an exception: users need to know which of the plugins broke."""

from __future__ import annotations

import traceback
from types import TracebackType

from podium.errors import PluginError, PodiumError
from podium.framework import Plugin


class PluginFaults:
    """A context in which any exception that a plugin raises becomes a PluginError that names the plugin."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, PodiumError):
            return
        running: Plugin | None = None
        for frame, _ in traceback.walk_tb(trace):
            caller = frame.f_locals.get("self")
            running = caller if isinstance(caller, Plugin) else running
        if running is not None:
            raise PluginError(running.name, f"failed: {type(error).__name__}: {error}") from error


PLUGIN_FAULTS = PluginFaults()
