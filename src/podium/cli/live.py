"""A live cluster as the input of a command, and `podium dump`, which writes it to a file."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options
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


def ask_scheduler(url: str, pod: str, namespace: str | None, output: str) -> int:
    """Print what a running scheduler says of a pod; the exit code, 1 if the pod fits nowhere."""
    import json
    from urllib.error import HTTPError
    from urllib.request import urlopen

    from podium.errors import InputError
    from podium.present.text import to_json, to_yaml

    within, _, name = pod.rpartition("/")
    address = f"{url.rstrip('/')}/decisions/{within or namespace or 'default'}/{name}"
    try:
        with urlopen(address, timeout=30) as answer:
            found = json.load(answer)
    except HTTPError as error:
        with error:
            said = _said_by(error.read())
        raise InputError(said or f"HTTP status {error.code}", url) from None
    except (OSError, ValueError) as error:
        raise InputError(f"is no scheduler that answers: {getattr(error, 'reason', error)}", url) from None
    explanation, decided = found["explanation"], found["decided"]
    if output in ("json", "yaml"):
        print((to_json if output == "json" else to_yaml)(found))
    else:
        if decided is not None:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(decided["at"]))
            print(f"{when}, attempt {decided['attempts']}: {decided['node'] or decided['message']}")
        when = "As it was then:" if found["asOf"] == "then" else "As things are now:"
        print("\n".join([when, *explanation["words"]]))
    return 0 if explanation["node"] else 1


def _said_by(body: bytes) -> str:
    import json

    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return ""


def dump(
    out: Annotated[str, typer.Option("-o", "--out", metavar="FILE", help="Where to write it; `-` for stdout.")],
    files: options.Files = [],
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    anonymous: Annotated[
        bool,
        typer.Option("--anonymize", help="Put words for names, labels and images; decisions stay as they are."),
    ] = False,
    verbose: options.Verbose = False,
) -> None:
    """Write everything that scheduling reads of a cluster into one file of JSON, for `-f`.

    Other fields of the objects, such as environment variables, are left out.
    """
    import sys

    from podium.cli.inputs import mention, read_objects
    from podium.cli.output import write_text
    from podium.live.reading import anonymize, documents
    from podium.live.reading import dump as encode

    objects = read_objects(files, kubeconfig, context)
    mention(objects, verbose=verbose)
    items = documents(objects)
    text = encode(anonymize(items) if anonymous else items)
    if out == "-":
        sys.stdout.write(text.decode())
    else:
        write_text(out, text.decode())
