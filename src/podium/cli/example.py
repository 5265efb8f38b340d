"""`podium demo`: two pods of the example cluster, explained."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from podium.cli import options

PLACED = "shop/web-5f7c9-new"
STUCK = "ml/train-0"
KUBECTL = (
    "kubectl get nodes,pods,namespaces,services,rs,sts,priorityclasses,pdb,pv,pvc,sc,csinodes,csidrivers,"
    "csistoragecapacities,volumeattachments,resourceclaims,resourceclaimtemplates,resourceslices,deviceclasses "
    "-A -o json > cluster.json"
)
"""The dump that holds everything Podium reads."""
NEXT = """\
Now with a cluster of your own:
  {kubectl}
  podium explain POD -f cluster.json"""


def demo(release: options.Releases = options.CURRENT, feature_gates: options.FeatureGates = None) -> None:
    """Explain two pods of an example cluster that comes with Podium."""
    from importlib.resources import as_file, files

    from podium.cli.inputs import choose_release
    from podium.cli.output import print_lines, text_width
    from podium.cluster import Cluster
    from podium.engine import Scheduler
    from podium.manifests import load
    from podium.model import Pod
    from podium.present.explanation import explain_pod, to_lines
    from podium.present.text import Line

    with as_file(files("podium.example") / "cluster.yaml") as path:
        objects = load(path)
    cluster = Cluster.from_objects(objects)
    pods = {pod.key: pod for pod in objects.of(Pod)}
    chosen = choose_release(release, feature_gates, objects)
    scheduler = Scheduler(cluster, release=chosen)
    print(f"An example cluster of {cluster.node_count} nodes has two pending pods. Where do they go, and why?")
    extra = "" if release == options.CURRENT else f" --release {chosen.name}"
    for key in (PLACED, STUCK):
        print_lines([Line(""), Line(f"$ podium explain {key} -f example.yaml{extra}", "bold")])
        print_lines(to_lines(explain_pod(scheduler, pods[key]), width=text_width()))
    print(f"\n{NEXT.format(kubectl=KUBECTL)}")


class Cluster(StrEnum):
    FLEET = "fleet"
    GPUS = "gpus"
    SHOP = "shop"


class Format(StrEnum):
    YAML = "yaml"
    JSON = "json"


def example(
    cluster: Annotated[
        Cluster,
        typer.Argument(
            help="`fleet` has 63 nodes and some 400 pods; `shop` is what `podium demo` explains; `gpus` has devices."
        ),
    ],
    output: Annotated[Format, typer.Option("-o", "--output", help="What to write.")] = Format.YAML,
) -> None:
    """Write an example cluster to stdout, for the commands that take -f."""
    from podium.example.fleet import fleet_text, gpus_text, shop_text

    text = {Cluster.FLEET: fleet_text, Cluster.GPUS: gpus_text, Cluster.SHOP: shop_text}[cluster]
    sys.stdout.write(text(json=output is Format.JSON))
