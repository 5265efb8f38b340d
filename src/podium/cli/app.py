"""The commands, each with its arguments. What a command needs is imported when it runs: `--help` answers at once."""

from __future__ import annotations

from typing import Annotated

import typer

from podium import __version__
from podium.cli import (
    audit,
    bench,
    capacity,
    compare,
    decide,
    demo,
    disruption,
    example,
    explain,
    import_trace,
    simulate,
    sweep,
    tune,
    verify,
    why_not,
)
from podium.cli.commands import Commands

app = typer.Typer(
    cls=Commands,
    name="podium",
    help="Decide where Kubernetes pods go, exactly as kube-scheduler v1.36 would, and show why.",
    epilog="Exit codes: 0 all went well, 1 something does not fit or agree, 2 bad input, 130 interrupted.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    app(prog_name="podium")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"podium {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def podium(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options that stand before the command; without a command, what there is."""
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command()(explain.explain)
app.command()(simulate.simulate)
app.command()(why_not.why_not)
app.command()(capacity.capacity)
app.command()(compare.compare)
app.command()(disruption.drain)
app.command()(disruption.fail)
app.command()(audit.audit)
app.command()(tune.tune)
app.command()(sweep.sweep)
app.command()(decide.decide)
app.command("import")(import_trace.import_trace)
app.command()(verify.verify)
app.command()(bench.bench)
app.command()(demo.demo)
app.command()(example.example)
