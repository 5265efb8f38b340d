"""`podium decide`: recorded cases in, decisions out."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from podium.cli.options import EquivalenceCache, Plugins, Release, ReleasesOfCases


def decide(
    files: Annotated[
        list[str],
        typer.Option("-f", "--filename", metavar="FILE", help="JSON lines, plain or gzip; `-` for stdin."),
    ] = ["-"],  # noqa: B006
    release: ReleasesOfCases = Release.V1_36,
    cache: EquivalenceCache = True,
    plugins: Plugins = [],  # noqa: B006
) -> None:
    """Decide cases given as JSON lines; one line of decisions for each, as soon as it is decided.

    A case has `objects`, `pods` and possibly a `config`. The smallest node name wins a tie.
    """
    import msgspec

    from podium.cli.inputs import registry_with
    from podium.recorded import decide, read_records

    registry = registry_with(plugins)
    for file in files:
        for record in read_records(file):
            answer = decide(record.case, registry, release.value, equivalence_cache=cache)
            sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
            sys.stdout.flush()
