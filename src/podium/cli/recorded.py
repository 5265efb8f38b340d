"""`podium verify`: recorded decisions, decided again and compared."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from podium.cli.options import CURRENT, EquivalenceCache, FeatureGates, Plugins, ReleasesOfCases
from podium.cli.output import progress


def decide(
    files: Annotated[
        list[str],
        typer.Option("-f", "--filename", metavar="FILE", help="JSON lines, plain, gzip or xz; `-` for stdin."),
    ] = ["-"],  # noqa: B006
    release: ReleasesOfCases = CURRENT,
    feature_gates: FeatureGates = None,
    cache: EquivalenceCache = True,
    plugins: Plugins = [],  # noqa: B006
) -> None:
    """Decide cases given as JSON lines; one line of decisions for each, as soon as it is decided.

    A case has `objects`, `pods` and possibly a `config`. The smallest node name wins a tie.
    """
    import msgspec

    from podium.cli.inputs import choose_release, registry_with
    from podium.recorded import decide, read_records

    registry = registry_with(plugins)
    chosen = choose_release(release, feature_gates, ())
    for file in files:
        for record in read_records(file, chosen):
            answer = decide(record.case, registry, chosen, equivalence_cache=cache)
            sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
            sys.stdout.flush()


def verify(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Recordings: JSON lines, plain, gzip or xz; `-` for stdin.")
    ],
    limit: Annotated[int, typer.Option(min=0, help="How many differences to print per file; 0 for all.")] = 20,
    release: ReleasesOfCases = CURRENT,
    feature_gates: FeatureGates = None,
    cache: EquivalenceCache = True,
    plugins: Plugins = [],  # noqa: B006
) -> int:
    """Decide recorded cases again and report every difference. Exit code 1 if there is any."""
    from podium.cli.inputs import choose_release, registry_with
    from podium.recorded import read_records, verify

    registry = registry_with(plugins)
    chosen = choose_release(release, feature_gates, ())
    code = 0
    for file in files:
        records = list(read_records(file, chosen))
        differing = []
        with progress(f"verifying {file}", len(records)) as advance:
            for record in records:
                differing.append(verify(record, registry, chosen, equivalence_cache=cache))
                advance()
        _report(file, differing, limit)
        code |= any(differing)
    return code


def _report(file: str, differing: Sequence[Sequence[object]], limit: int) -> None:
    """One line for the file, and one for each difference: `differing` has those of each case."""
    cases, disagree = len(differing), sum(map(bool, differing))
    print(f"{file}: {cases - disagree} of {cases} cases agree ({(cases - disagree) / cases:.1%})")
    differences = [difference for found in differing for difference in found]
    shown = differences[: limit or None]
    for difference in shown:
        print(f"  {difference}")
    if len(shown) < len(differences):
        print(f"  and {len(differences) - len(shown)} more differences; see them with --limit 0")
