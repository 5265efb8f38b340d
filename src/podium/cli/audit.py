"""`podium audit`: running pods, decided again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import options
from podium.cli.output import FailIf, Format, Output

if TYPE_CHECKING:
    from podium.answers import Audit, Condition


def audit(
    files: options.Files = [],  # noqa: B006
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    config: options.Config = None,
    fail_if: FailIf = [],  # noqa: B006
    output: Output = Format.TABLE,
    everything: Annotated[bool, typer.Option("--all", help="Show every pod, not the first ten.")] = False,
    release: options.Releases = options.CURRENT,
    feature_gates: options.FeatureGates = None,
    plugins: options.Plugins = [],  # noqa: B006
    html: options.Html = None,
    verbose: options.Verbose = False,
) -> int:
    """Decide every running pod again, and say which are where they would go now, which drifted, which no longer fit.

    A node that is as good as the best agrees. Exit code 1 if a pod no longer fits; with --fail-if, if that holds.
    """
    from podium import answers
    from podium.answers.audit import NAMES
    from podium.cli.inputs import choose_release, mention, read_config, read_objects, registry_with
    from podium.cli.output import exit_code, progress, read_conditions, write_report
    from podium.cluster import Cluster

    conditions = read_conditions(fail_if, NAMES)
    registry = registry_with(plugins)
    objects = read_objects(files, kubeconfig, context)
    mention(objects, verbose=verbose)
    chosen = choose_release(release, feature_gates, objects)
    settings = read_config(config, objects, registry, chosen)
    cluster = Cluster.from_objects(objects)
    with progress("deciding pods again", sum(1 for _ in cluster.placed())) as advance:
        found = answers.audit(cluster, settings, registry=registry, release=chosen, on_decided=advance)
    if not write_report(html, lambda: _page(found)):
        _show(found, conditions, output, everything=everything)
    return exit_code(conditions, found.values, otherwise=bool(found.values["unfit"]))


def _page(found: Audit) -> str:
    from podium.present.html.disruptions import audit_page

    return audit_page(found)


def _show(found: Audit, conditions: Sequence[Condition], output: Format, *, everything: bool) -> None:
    from podium.cli.output import emit, text_width, with_conditions
    from podium.present.audit import to_document, to_lines, to_rows

    emit(
        output,
        lines=lambda: to_lines(found, width=text_width(output), everything=everything),
        document=lambda: with_conditions(to_document(found), conditions, found.values),
        rows=lambda: to_rows(found),
    )
