"""A live cluster as input: `podium dump`, and `podium run` and `podium shadow`, which follow a live cluster."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from podium.cli import options
from podium.cli.output import remark

if TYPE_CHECKING:
    from podium.config import KubeSchedulerConfiguration
    from podium.engine.release import Release
    from podium.framework import Registry
    from podium.live.client import Access
    from podium.live.rights import Right
    from podium.live.shadow import Compared, Shadow
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
    """How to reach the cluster; InputError also if the extra for live clusters is not installed."""
    import importlib.util

    from podium.errors import InputError
    from podium.live.client import find_access

    for needed in ("aiohttp", "prometheus_client"):
        if importlib.util.find_spec(needed) is None:
            raise InputError(
                f"reading a cluster needs {needed}, which is not installed: pip install 'podium[live]', or give files "
                "with -f"
            )
    return find_access(kubeconfig, context)


def _said(counts: Counter[str]) -> str:
    from podium.wording import counted

    others = sum(count for kind, count in counts.items() if kind not in ("Node", "Pod"))
    return f"{counted(counts['Node'], 'node')}, {counted(counts['Pod'], 'pod')}, {counted(others, 'other object')}"


class _Progress:
    """Shows how many objects have been read, on a terminal and if it takes long."""

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
    """Log to stderr, one line each with its time."""
    import logging

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("podium.live").setLevel(logging.DEBUG if verbose else logging.INFO)


def ask_scheduler(url: str, pod: str, namespace: str | None, output: str, token_file: str | None) -> int:
    """Print a running scheduler's answer about a pod; returns the exit code, 1 if the pod fits nowhere."""
    from podium.errors import InputError
    from podium.live.loopback import is_loopback
    from podium.present import to_json, to_yaml

    if token_file is None:
        raise InputError("name the file given to podium run as --decisions-token-file with --token-file", url)
    if not url.startswith("https://") and not is_loopback(url):
        raise InputError("the token is sent over plain http to this machine only; use kubectl port-forward", url)
    within, _, name = pod.rpartition("/")
    address = f"{url.rstrip('/')}/decisions/{within or namespace or 'default'}/{name}"
    found = _answer(url, address, read_token(token_file))
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


def _answer(url: str, address: str, token: str) -> Any:
    """The decoded answer of a scheduler; InputError about the URL if there is none."""
    import json
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    from podium.errors import InputError

    class Stays(HTTPRedirectHandler):
        """Follows no redirect: the token is for this host alone."""

        def redirect_request(self, *_: object) -> None:
            return None

    request = Request(address, headers={"Authorization": f"Bearer {token}"})
    try:
        with build_opener(Stays).open(request, timeout=30) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error:
            said = _said_by(error.read())
        raise InputError(said or f"HTTP status {error.code}", url) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        problem = reason.strerror.lower() if isinstance(reason, OSError) and reason.strerror else str(reason)
        raise InputError(f"does not answer as a scheduler: {problem}", url) from None


def read_token(path: str) -> str:
    """The token in a file, without white space around it; InputError if there is none."""
    from podium.errors import InputError, os_problem

    try:
        token = Path(path).read_text().strip()
    except OSError as error:
        raise InputError(os_problem(error), path) from None
    except UnicodeDecodeError:
        raise InputError("is not a text", path) from None
    if not token or not token.isascii() or not token.isprintable():
        raise InputError("has no token: one line of printable ASCII characters is expected", path)
    return token


def _said_by(body: bytes) -> str:
    import json

    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return ""


def dump(
    out: Annotated[str, typer.Option("-o", "--out", metavar="FILE", help="Where to write it; `-` for stdout.")],
    source: options.Source = options.Source(),
    anonymous: Annotated[
        bool,
        typer.Option("--anonymize", help="Replace names, labels and images by words; decisions stay the same."),
    ] = False,
) -> None:
    """Write everything that scheduling reads of a cluster into one file of JSON, for `-f`.

    Other fields of the objects, such as environment variables, are left out.
    """
    import sys

    from podium.cli.inputs import mention, read_input
    from podium.cli.output import write_text
    from podium.live.reading import anonymize, documents
    from podium.live.reading import dump as encode

    objects = read_input(source).settled
    mention(objects, source)
    items = documents(objects)
    text = encode(anonymize(items) if anonymous else items)
    if out == "-":
        sys.stdout.write(text.decode())
    else:
        write_text(out, text.decode())


SCHEDULER_NAME = "podium"
"""Without a configuration, pods with this schedulerName are scheduled."""


def run(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration; else one profile named `podium`."),
    ] = None,
    tie_break: options.TiesOfRelease = None,
    seed: options.Seed = 0,
    bind_concurrency: Annotated[
        int, typer.Option("--bind-concurrency", metavar="N", min=1, help="How many pods are bound at once.")
    ] = 64,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, and write nothing.")] = False,
    elect: Annotated[
        bool,
        typer.Option(
            "--leader-elect/--no-leader-elect", help="Whether replicas elect a leader, which alone schedules."
        ),
    ] = True,
    host: Annotated[
        str, typer.Option("--bind-address", metavar="ADDRESS", help="Where to serve health and metrics.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="At which port; 0 for a free one.")] = 10259,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--decisions-token-file",
            metavar="FILE",
            help="Serve /decisions/NAMESPACE/POD too, to those who send the token in this file.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only list the rights that it needs, and whether it has them.")
    ] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Print more about what happens.")] = False,
    deciding: options.WithPlugins = options.WithPlugins(),
) -> int:
    """Schedule the pods of a cluster that name this scheduler, until told to stop.

    Answers /livez, /readyz and /metrics over HTTP. SIGTERM lets bindings under way finish. With --check, exit code 1 if
    a right is missing.
    """
    from podium.cli.inputs import choose_release, registry_with
    from podium.live.process import ServingAddress, check_rights, run_scheduler
    from podium.live.scheduling import RunSettings

    registry, chosen = registry_with(deciding.plugins), choose_release(deciding, ())
    settings = read_settings(config, registry, chosen)
    access = find(kubeconfig or settings.client_connection.kubeconfig or None, context)
    log_to_stderr(verbose=verbose)
    # A dry run leaves the lease to schedulers that write.
    elects = elect and settings.leader_election.leader_elect and not dry_run
    if check:
        return _print_rights(check_rights(access, settings, elect=elects, dry_run=dry_run))
    run_scheduler(
        access,
        settings,
        RunSettings(bind_concurrency, dry_run),
        ServingAddress(host, port, "" if token_file is None else read_token(token_file)),
        elect=elects,
        registry=registry,
        release=chosen,
        tie_break=tie_break,
        seed=seed,
    )
    return 0


def _print_rights(found: Sequence[tuple[Right, bool]]) -> int:
    """Print a line for each right; returns 1 if one is missing."""
    for right, is_there in found:
        print(f"{'yes' if is_there else 'NO':4} {right!s:60} {right.what_for}")
    return 0 if all(is_there for _, is_there in found) else 1


def read_settings(
    file: str | None, registry: Registry, release: Release, name: str = SCHEDULER_NAME
) -> KubeSchedulerConfiguration:
    """The configuration of a file, or one profile with this name and the default plugins."""
    from podium.cli.inputs import ConfigSource, check_config, find_config
    from podium.manifests import Objects

    if file is None:
        profiles = [{"schedulerName": name}]
        kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        given = ConfigSource({**kind, "profiles": profiles}, "the default configuration")
    else:
        given = find_config(file, Objects(), release)
    found = check_config(given, registry, release)
    assert found is not None, "there is a document"
    return found


def shadow(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="The configuration that the cluster's scheduler has."),
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="FILE", help="Also write every pod as a line of JSON.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Serve Prometheus metrics at this port.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0.0, help="Stop after this time; else on Ctrl-C.")
    ] = None,
    deciding: options.WithPlugins = options.WithPlugins(),
) -> None:
    """Follow a cluster without writing to it: decide every pod just before its scheduler binds it, and compare.

    Says for each pod whether the node is the same, as good, or another one and which plugin makes the difference, and
    when it cannot know. At the end, how often the two agree.
    """
    import json

    from podium.cli.inputs import choose_release, registry_with
    from podium.live.shadow import run_shadow
    from podium.model.pod import DEFAULT_SCHEDULER_NAME
    from podium.wording import counted

    registry, chosen = registry_with(deciding.plugins), choose_release(deciding, ())
    settings = read_settings(config, registry, chosen, DEFAULT_SCHEDULER_NAME)
    access = find(kubeconfig, context)
    log_to_stderr(verbose=False)
    with _appended(log) as file:

        def report(compared: Compared) -> None:
            print(_line(compared), flush=True)
            if file is not None:
                file.write(json.dumps(compared.to_dict()) + "\n")

        def begun(found: Shadow) -> None:
            nodes, waiting = counted(found.cluster.node_count, "node"), counted(len(found.cluster.pending), "pod")
            remark(f"context {access.context}: following {nodes}, with {waiting} waiting")

        found = run_shadow(
            access,
            settings,
            report,
            port=port,
            seconds=seconds,
            on_start=begun,
            registry=registry,
            release=chosen,
            tie_break="first",
        )
    print(_summary(found))


def _appended(path: str | None) -> AbstractContextManager[TextIO | None]:
    """A file to append lines to, each written at once; None without a path."""
    from podium.errors import InputError, os_problem

    if path is None:
        return nullcontext()
    try:
        return Path(path).open("a", buffering=1)
    except OSError as error:
        raise InputError(os_problem(error), path) from None


def _line(compared: Compared) -> str:
    match compared.outcome.value:
        case "same" | "tie":
            return f"{compared.outcome.value:8} {compared.pod} on {compared.node}"
        case "unknown":
            return f"unknown  {compared.pod} on {compared.node}: {compared.reason}"
    where = compared.podium or "nowhere"
    return f"other    {compared.pod} on {compared.node}, Podium: {where}: {compared.reason}"


def _summary(found: Shadow) -> str:
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in found.outcomes.items()) or "no pod was bound"
    rate = "" if found.agreement is None else f"; agreement {found.agreement:.1%}"
    by = ", ".join(f"{plugin} {count}" for plugin, count in found.plugins.most_common() if count)
    return f"{counts}{rate}{f'; differences by {by}' if by else ''}"
