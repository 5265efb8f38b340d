"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Plugins = Annotated[
    list[str],
    typer.Option("--plugin", metavar="MODULE:CLASS", help="A plugin of your own; may be given several times."),
]
