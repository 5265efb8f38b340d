"""A live cluster as the input of a command."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from podium.cli.output import remark

if TYPE_CHECKING:
    from podium.live.kubeconfig import Access
    from podium.manifests import Objects

SHOWS_PROGRESS_AFTER = 1.0
"""Seconds."""


def read_live(kubeconfig: str | None, context: str | None) -> Objects:
    """The objects of the cluster of a kubeconfig context; a line on stderr says which one and what was read."""
    from podium.errors import InputError
    from podium.model import Node

    access = find(kubeconfig, context)
    from podium.live.reading import read_cluster

    progress = _Progress()
    objects, counts = read_cluster(access, on_page=progress.advance)
    progress.done(f"context {access.context}: {_said(counts)}")
    if not objects.of(Node):
        raise InputError(f"context {access.context}: the cluster has no nodes")
    return objects


def find(kubeconfig: str | None, context: str | None) -> Access:
    """How to reach the cluster; InputError also where Podium was installed without what it takes."""
    import importlib.util

    from podium.errors import InputError
    from podium.live.kubeconfig import find_access

    for needed in ("aiohttp", "prometheus_client"):
        if importlib.util.find_spec(needed) is None:
            raise InputError(
                f"asking a cluster needs {needed}, which is not installed: pip install 'podium[live]', or give files "
                "with -f"
            )
    return find_access(kubeconfig, context)


def _said(counts: Counter[str]) -> str:
    others = sum(count for kind, count in counts.items() if kind not in ("Node", "Pod"))
    return f"{counts['Node']} nodes, {counts['Pod']} pods, {others} other objects"


class _Progress:
    """How many objects have come, on a terminal and when it takes long."""

    def __init__(self) -> None:
        self._start, self._count, self._is_shown = time.monotonic(), 0, False

    def advance(self, count: int) -> None:
        self._count += count
        if sys.stderr.isatty() and time.monotonic() - self._start > SHOWS_PROGRESS_AFTER:
            self._is_shown = True
            print(f"\rreading the cluster: {self._count} objects", end="", file=sys.stderr, flush=True)

    def done(self, text: str) -> None:
        if self._is_shown:
            print("\r\033[K", end="", file=sys.stderr)
        remark(f"{text}, read in {time.monotonic() - self._start:.1f} s")


def log_to_stderr(*, verbose: bool) -> None:
    """Let what happens be said on stderr, a line each with its time."""
    import logging

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("podium.live").setLevel(logging.DEBUG if verbose else logging.INFO)
