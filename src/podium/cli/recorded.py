"""`podium verify`, `decide` and `bench`, `podium demo` and `example`: recorded decisions, speed, and the embedded
clusters.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options
from podium.cli.output import progress
from podium.rules.gates import NEWEST

if TYPE_CHECKING:
    from podium.engine.release import Release


@dataclass(frozen=True, kw_only=True)
class CaseOptions(options.WithPlugins):
    """Which release decides the cases, and with which plugins."""

    release: Annotated[
        str,
        typer.Option(
            "--release",
            metavar="RELEASE",
            help=f"Which release of kube-scheduler decides, v1.29 to {NEWEST}; for v1.8, v1.14 and v1.18 a "
            "`config` is a Policy.",
        ),
    ] = NEWEST
    cache: options.EquivalenceCache = True

    def choose(self) -> Release:
        """The release that was asked for."""
        from podium.cli.inputs import choose_release
        from podium.errors import InputError

        if self.release == options.AUTO:
            raise InputError("--release auto: every case is a cluster of its own; name the release that decides them")
        return choose_release(self, ())


def decide(
    files: Annotated[
        list[str],
        typer.Option("-f", "--filename", metavar="FILE", help="JSON lines, plain, gzip or xz; `-` for stdin."),
    ] = ["-"],
    deciding: CaseOptions = CaseOptions(),
) -> None:
    """Decide cases given as JSON lines; one line of decisions for each, as soon as it is decided.

    A case has `objects`, `pods` and possibly a `config`. The smallest node name wins a tie.
    """
    import msgspec

    from podium.cli.inputs import registry_with
    from podium.recorded import decide, read_records

    registry, chosen = registry_with(deciding.plugins), deciding.choose()
    for file in files:
        for record in read_records(file, chosen):
            answer = decide(record.case, registry, chosen, equivalence_cache=deciding.cache)
            sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
            sys.stdout.flush()


def verify(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Recordings: JSON lines, plain, gzip or xz; `-` for stdin.")
    ],
    limit: Annotated[int, typer.Option(min=0, help="How many differences to print per file; 0 for all.")] = 20,
    deciding: CaseOptions = CaseOptions(),
) -> int:
    """Decide recorded cases again and report every difference. Exit code 1 if there is any."""
    from podium.cli.inputs import registry_with
    from podium.recorded import read_records, verify

    registry, chosen = registry_with(deciding.plugins), deciding.choose()
    code = 0
    for file in files:
        records = list(read_records(file, chosen))
        differing = []
        with progress(f"verifying {file}", len(records)) as advance:
            for record in records:
                differing.append(verify(record, registry, chosen, equivalence_cache=deciding.cache))
                advance()
        _report(file, differing, limit)
        code |= any(differing)
    return code


def _report(file: str, differing: Sequence[Sequence[object]], limit: int) -> None:
    """Print one line for the file, and one for each difference: `differing` has those of each case."""
    from podium.wording import counted

    cases, disagree = len(differing), sum(map(bool, differing))
    print(f"{file}: {cases - disagree} of {cases} cases agree ({(cases - disagree) / cases:.1%})")
    differences = [difference for found in differing for difference in found]
    shown = differences[: limit or None]
    for difference in shown:
        print(f"  {difference}")
    if len(shown) < len(differences):
        print(f"  and {counted(len(differences) - len(shown), 'more difference')}; see them with --limit 0")


def bench(
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case of `objects` and `pods` as JSON.")],
    deciding: options.WhichRelease = options.WhichRelease(),
) -> None:
    """Schedule a case's pods one after the other and print how fast that went, loading not counted."""
    import gc
    import json
    import time

    from podium.cli.inputs import choose_release
    from podium.errors import InputError, PodiumError
    from podium.manifests import load
    from podium.memory import collector_relaxed
    from podium.recorded import prepare, read_case

    try:
        asked = read_case(case)
        nodes = (
            load([each for each in asked.objects if each.get("kind") == "Node"])
            if deciding.release == options.AUTO
            else ()
        )
        scheduler, pods = prepare(asked, release=choose_release(deciding, nodes))
    except InputError as error:
        raise error if error.where.startswith(case) else error.at(case) from None
    for pod in pods:
        if not pod.spec.node_name:
            scheduler.cluster.add(pod)  # they wait in the cluster, as they do where a scheduler runs
    scheduled = 0
    gc.collect()
    gc.freeze()  # what was loaded stays, so there is no use in looking through it again and again
    start = time.perf_counter()
    with collector_relaxed():
        for pod in pods:
            try:
                scheduled += scheduler.schedule(pod) is not None
            except PodiumError:
                continue  # a pod that cannot be decided, such as one with a scheduling gate, has failed
    seconds = time.perf_counter() - start
    result = {
        "scheduled": scheduled,
        "failed": len(pods) - scheduled,
        "seconds": round(seconds, 3),
        "pods_per_s": round(len(pods) / seconds, 1) if pods else 0.0,
    }
    print(json.dumps(result))


PLACED = "shop/web-5f7c9-new"
STUCK = "ml/train-0"
NEXT = """\
Now with a cluster of your own:
  {kubectl}
  podium explain POD -f cluster.json"""


def demo(deciding: options.WhichRelease = options.WhichRelease()) -> None:
    """Explain two pods of an example cluster that comes with Podium."""
    from importlib.resources import as_file, files

    from podium.answers.explanation import explain_pod
    from podium.cli.inputs import choose_release
    from podium.cli.output import print_lines, text_width
    from podium.cluster import Cluster
    from podium.engine import Scheduler
    from podium.manifests import load
    from podium.manifests.kubectl import KUBECTL_COMMAND
    from podium.model import Pod
    from podium.present.explanation import to_lines
    from podium.present.text import Line

    with as_file(files("podium.example") / "cluster.yaml") as path:
        objects = load(path)
    cluster = Cluster.from_objects(objects)
    pods = {pod.key: pod for pod in objects.of(Pod)}
    chosen = choose_release(deciding, objects)
    scheduler = Scheduler(cluster, release=chosen)
    print(f"An example cluster of {cluster.node_count} nodes has two pending pods. Where do they go, and why?")
    extra = "" if chosen.name == NEWEST else f" --release {chosen.name}"
    for key in (PLACED, STUCK):
        print_lines([Line(""), Line(f"$ podium explain {key} -f example.yaml{extra}", "bold")])
        print_lines(to_lines(explain_pod(scheduler, pods[key]), width=text_width()))
    print(f"\n{NEXT.format(kubectl=KUBECTL_COMMAND)}")


class ExampleName(StrEnum):
    FLEET = "fleet"
    GPUS = "gpus"
    SHOP = "shop"


class ManifestFormat(StrEnum):
    YAML = "yaml"
    JSON = "json"


def example(
    cluster: Annotated[
        ExampleName,
        typer.Argument(
            metavar="fleet|gpus|shop",
            help="`fleet` has 63 nodes and some 400 pods; `shop` is what `podium demo` explains; `gpus` has devices.",
        ),
    ],
    output: Annotated[ManifestFormat, typer.Option("-o", "--output", help="What to write.")] = ManifestFormat.YAML,
) -> None:
    """Write an example cluster to stdout, for the commands that take -f."""
    from podium.example import fleet_text, gpus_text, shop_text

    text = {ExampleName.FLEET: fleet_text, ExampleName.GPUS: gpus_text, ExampleName.SHOP: shop_text}[cluster]
    sys.stdout.write(text(json=output is ManifestFormat.JSON))
