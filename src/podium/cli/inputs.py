"""What several commands read: objects, a configuration, plugins of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.cli.output import remark, warn

if TYPE_CHECKING:
    from podium.config import KubeSchedulerConfiguration
    from podium.framework import Registry
    from podium.load import Objects

CONFIGURATION = "KubeSchedulerConfiguration"


def read_objects(files: Sequence[str]) -> Objects:
    """The objects of all files together; a cluster needs nodes."""
    from podium.errors import InputError
    from podium.load import load
    from podium.objects import Node

    objects = load(*dict.fromkeys(files))
    if not objects.of(Node):
        raise InputError(f"no node in {', '.join(files)}: get them with `kubectl get nodes -o json`")
    return objects


def mention(objects: Objects, *, verbose: bool) -> None:
    """What was noticed while loading."""
    for warning in objects.warnings:
        warn(warning)
    if verbose:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(objects.ignored.items()))
        remark(f"{len(objects)} objects read; not read by scheduling: {kinds or 'none'}")


def read_config(file: str | None, objects: Objects, registry: Registry) -> KubeSchedulerConfiguration | None:
    """The configuration of a file, else the one among the objects; None if there is neither."""
    from podium.config import parse_config
    from podium.errors import InputError
    from podium.load import load_documents

    if file is None:
        found = objects.scheduler_config
        return None if found is None else parse_config(found, registry.points, "schedulerConfig of the input")
    documents = list(load_documents(file))
    if len(documents) != 1:
        raise InputError(f"has {len(documents)} documents; a configuration is one {CONFIGURATION}", file)
    return parse_config(documents[0][1], registry.points, file)


def registry_with(plugins: Sequence[str]) -> Registry:
    """The in-tree plugins, those of installed packages, and those named `module:Class`, here or installed."""
    import sys

    from podium.plugins import IN_TREE

    if plugins and "" not in sys.path:
        sys.path.insert(0, "")
    return IN_TREE.with_installed(plugins)
