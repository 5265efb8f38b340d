"""What several commands read: objects, a configuration, plugins of the user's own."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

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


def mention(objects: Objects, *, verbose: bool, assume_volumes: bool = False) -> None:
    """What was noticed while loading; with `assume_volumes`, missing storage is no matter."""
    from podium.load import missing_storage

    of_no_matter = missing_storage(objects) if assume_volumes else []
    for warning in objects.warnings:
        if warning not in of_no_matter:
            warn(warning)
    if verbose:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(objects.ignored.items()))
        remark(f"{len(objects)} objects read; not read by scheduling: {kinds or 'none'}")


def read_config(
    file: str | None, objects: Objects, registry: Registry, release: str = "v1.36"
) -> KubeSchedulerConfiguration | dict[str, Any] | None:
    """The configuration of a file, else the one among the objects; None if there is neither.

    That of an old release is given as it stands: a Policy, or what v1.18 reads.
    """
    from podium.config import parse_config
    from podium.errors import InputError
    from podium.legacy import CURRENT, release_of
    from podium.load import load_documents

    if file is None and objects.scheduler_config is None:
        _mention_unused(registry, frozenset())
        return None
    if file is None:
        where, document = "schedulerConfig of the input", objects.scheduler_config
    else:
        where, documents = file, list(load_documents(file))
        if len(documents) != 1:
            raise InputError(f"has {len(documents)} documents; a configuration is one {CONFIGURATION}", file)
        document = documents[0][1]
    if release == CURRENT:
        config = parse_config(document, registry.points, where)
        _mention_unused(registry, {ref.name for p in config.profiles for refs in p.points.values() for ref in refs})
        return config
    if not isinstance(document, dict):
        raise InputError("is not a configuration; it must be an object with apiVersion and kind", where)
    try:
        release_of(release).set_up(document, registry=registry)
    except InputError as error:
        raise error.at(where) from None
    return document


def _mention_unused(registry: Registry, used: Set[str]) -> None:
    for name in registry.asked_for:
        if name not in used:
            warn(f"plugin {name} is in no profile, so it does not run: enable it in a configuration, with --config")


def registry_with(plugins: Sequence[str]) -> Registry:
    """The in-tree plugins, those of installed packages, and those named `module:Class`, here or installed."""
    import sys

    from podium.plugins import IN_TREE

    if plugins and "" not in sys.path:
        sys.path.insert(0, "")
    return IN_TREE.with_installed(plugins)
