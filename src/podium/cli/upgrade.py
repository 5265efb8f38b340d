"""`podium upgrade` and `podium releases`: what changes with another release, and which there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options
from podium.cli.output import FailIf, Format, Output

if TYPE_CHECKING:
    from podium.answers import Condition, Upgrade


def upgrade(
    files: options.Files,
    to: Annotated[str, typer.Option("--to", metavar="RELEASE", help="The release to upgrade to.")] = options.CURRENT,
    from_: Annotated[
        str, typer.Option("--from", metavar="RELEASE", help="The release that runs now; `auto` is that of the nodes.")
    ] = options.AUTO,
    config: options.Config = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Also place all pods from scratch by both releases, and compare.")
    ] = False,
    feature_gates: options.FeatureGates = None,
    fail_if: FailIf = [],  # noqa: B006
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every pod and workload, not the first ten.")] = False,
    plugins: options.Plugins = [],  # noqa: B006
    html: options.Html = None,
    verbose: options.Verbose = False,
) -> int:
    """What changes when the scheduler of this cluster is upgraded: pods that go elsewhere, no longer fit, or fit now.

    Every running and every pending pod is decided by both releases; a tie is not a change. Feature gates are those of
    the new release. Exit code 1 if a pod no longer fits or the configuration is refused; with --fail-if, if that holds.
    """
    from podium import answers
    from podium.answers.upgrade import NAMES
    from podium.cli.inputs import choose_release, find_config, mention, read_objects, registry_with
    from podium.cli.output import exit_code, progress, read_conditions, write_report
    from podium.cluster import Cluster
    from podium.manifests import expand_workloads

    conditions = read_conditions(fail_if, NAMES)
    registry = registry_with(plugins)
    objects = expand_workloads(read_objects(files))
    mention(objects, verbose=verbose)
    before, after = choose_release(from_, None, objects), choose_release(to, feature_gates, objects)
    cluster = Cluster.from_objects(objects)
    pods = len(cluster.pending) + sum(1 for _ in cluster.placed())
    with progress("deciding pods", 2 * pods) as advance:
        found = answers.upgrade(
            cluster,
            find_config(config, objects, after).document,
            before=before,
            after=after,
            registry=registry,
            replay=replay,
            on_decided=advance,
        )
    if not write_report(html, lambda: _page(found)):
        _show(found, conditions, output, everything=everything)
    return exit_code(conditions, found.values, otherwise=not found.is_harmless)


def _page(found: Upgrade) -> str:
    from podium.present.html.upgrades import upgrade_page

    return upgrade_page(found)


def _show(found: Upgrade, conditions: Sequence[Condition], output: Format, *, everything: bool) -> None:
    from podium.cli.output import emit, text_width, with_conditions
    from podium.present.upgrade import to_document, to_lines, to_rows

    emit(
        output,
        lines=lambda: to_lines(found, width=text_width(output), everything=everything),
        document=lambda: with_conditions(to_document(found), conditions, found.values),
        rows=lambda: to_rows(found),
    )


def releases(
    release: Annotated[
        str | None, typer.Argument(metavar="[RELEASE]", help="Only what came with this release, and its feature gates.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """The releases of kube-scheduler that Podium can be, how each was checked, and what each brought."""
    from podium.cli.output import emit, text_width
    from podium.present.releases import to_document, to_lines, to_rows

    emit(
        output,
        lines=lambda: to_lines(release, width=text_width(output)),
        document=lambda: to_document(release),
        rows=lambda: to_rows(release),
    )
