"""The commands, and how they end: with one line and an exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib import import_module
from typing import Annotated, Any, NamedTuple, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from podium import __version__
from podium.cli.output import EXIT_BAD_INPUT, check_files, warn
from podium.errors import ExtenderWarning, PodiumError
from podium.wording import one_line

EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
TRACEBACK = "PODIUM_TRACEBACK"
"""The environment variable that asks for the traceback of an unexpected error, for example of a user's plugin."""

# The base class of typer's usage errors depends on its version; a bad parameter is one in all versions.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class CommandEntry(NamedTuple):
    """A command in the list of commands; its module is imported when the command is called."""

    place: str
    """Its module in this package, and its function there."""
    summary: str
    """The first sentence of its help."""


QUESTIONS = {
    "Ask about a pod": {
        "explain": CommandEntry("explain:explain", "Explain why a pod goes to its node, or fits on none"),
        "why-not": CommandEntry(
            "explain:why_not",
            "Find out what keeps a pod off a node or makes another win, and the smallest changes that send it there",
        ),
    },
    "Ask about a cluster": {
        "simulate": CommandEntry(
            "simulate:simulate",
            "Place everything that is pending, workloads without pods included, and show how full the nodes get",
        ),
        "capacity": CommandEntry(
            "capacity:capacity", "Find out how many more pods fit, where, and what stops the next one"
        ),
        "drain": CommandEntry(
            "disruption:drain",
            "Cordon nodes and evict their pods one by one: where they go, which stay pending, and which budgets block",
        ),
        "fail": CommandEntry(
            "disruption:fail",
            "Take nodes away: where their pods go, which stay pending and what pins them, and which budgets are "
            "violated",
        ),
        "audit": CommandEntry(
            "disruption:audit",
            "Decide every running pod again, and say which are where they would go now, which drifted, which no "
            "longer fit",
        ),
        "plan": CommandEntry(
            "plan:plan",
            "Plan which nodes can go: in which order to drain them, where their pods move, and what that saves",
        ),
        "devices": CommandEntry(
            "capacity:devices",
            "List the devices that claims can ask for: by node and class, who holds them, and what is free",
        ),
    },
    "Change how it is scheduled": {
        "compare": CommandEntry(
            "compare:compare",
            "Place what is pending in two ways, with two configurations, on two clusters or as two releases would",
        ),
        "tune": CommandEntry(
            "sweep:tune",
            "Search plugin weights and the scoring strategy of NodeResourcesFit for the best placement of what is "
            "pending",
        ),
        "upgrade": CommandEntry(
            "compare:upgrade",
            "What changes when the scheduler of this cluster is upgraded: pods that go elsewhere, no longer fit, or "
            "fit now",
        ),
        "releases": CommandEntry(
            "compare:releases",
            "The releases of kube-scheduler that Podium can decide as, how each was checked, and what each changed",
        ),
        "sweep": CommandEntry(
            "sweep:sweep",
            "Run every combination of a sweep file and write rows.csv, rows.parquet, summary.csv and plot.svg",
        ),
    },
    "Work with a running cluster": {
        "dump": CommandEntry(
            "live:dump", "Write everything that scheduling reads of a cluster into one file of JSON, for `-f`"
        ),
        "shadow": CommandEntry(
            "live:shadow",
            "Follow a cluster without writing to it: decide every pod just before its scheduler binds it, and compare",
        ),
        "run": CommandEntry("live:run", "Schedule the pods of a cluster that name this scheduler, until told to stop"),
        "extender": CommandEntry(
            "serve:extender", "Let plugins of Podium take part in a stock kube-scheduler, as an extender"
        ),
        "serve": CommandEntry("serve:serve", "Show a cluster in the browser, and answer questions about it over HTTP"),
    },
    "Recordings and examples": {
        "demo": CommandEntry("recorded:demo", "Explain two pods of an example cluster that comes with Podium"),
        "example": CommandEntry(
            "recorded:example", "Write an example cluster to stdout, for the commands that take -f"
        ),
        "import": CommandEntry(
            "sweep:import_trace",
            "Turn a trace into cluster.json, pods.json (all pending at once) and events.jsonl (as they come and go)",
        ),
        "decide": CommandEntry(
            "recorded:decide",
            "Decide cases given as JSON lines; one line of decisions for each, as soon as it is decided",
        ),
        "verify": CommandEntry("recorded:verify", "Decide recorded cases again and report every difference"),
        "bench": CommandEntry(
            "recorded:bench",
            "Schedule a case's pods one after the other and print how fast that went, loading not counted",
        ),
    },
}
"""The commands, grouped by the question that they answer."""
COMMANDS = {name: listed for commands in QUESTIONS.values() for name, listed in commands.items()}


SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
"""The shells with completion."""

_UNBROKEN = "\N{NON-BREAKING HYPHEN}"
"""Replaces hyphens while text is laid out, so that kube-scheduler is not broken."""


class PlainHelp:
    """Help that names arguments as users write them, without braces and Python types, and breaks no word."""

    format_help: Callable[..., None]

    def get_help(self, ctx: Any) -> str:
        formatter = ctx.make_formatter()
        write_usage, write_list, write_text = formatter.write_usage, formatter.write_dl, formatter.write_text
        # Replaced before the text is laid out, so that columns stay aligned.
        formatter.write_usage = lambda prog, args="", *rest: write_usage(prog, _plain(args), *rest)
        formatter.write_dl = lambda rows, *rest: write_list([(_plain(name), _said(text)) for name, text in rows], *rest)
        formatter.write_text = lambda text: write_text(_said(text))
        self.format_help(ctx, formatter)
        return str(formatter.getvalue()).rstrip("\n").replace(_UNBROKEN, "-")


class Command(PlainHelp, TyperCommand):
    """A command with plain help that does not take one of its options for the value of another, and drops no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = {name: option for option in self.params for name in option.opts if name.startswith("-")}
        before = None
        for argument in args:
            if argument == "--":
                break
            if before is not None and argument in named:
                raise UsageError(f"Option '{before}' requires an argument; {argument} is an option of its own.")
            option = None if before is not None else named.get(argument)
            before = argument if option is not None and not getattr(option, "is_flag", True) else None
        if not ctx.resilient_parsing:
            self._refuse_repeated(ctx, args)
        return list(super().parse_args(ctx, args))

    def _refuse_repeated(self, ctx: Any, args: list[str]) -> None:
        """Refuse an option that takes one value and is given several times: only the last value would count."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        single = [option for option in self.params if not getattr(option, "is_flag", True) and not option.multiple]
        for option in single:
            times = sum(each is option for each in given)
            if times > 1:
                raise UsageError(f"Option '{max(option.opts, key=len)}' is given {times} times; it takes one value.")


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt caused the error: Python 3.11 turns one in the middle of a class body into a
    RuntimeError.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _plain(metavar: str) -> str:
    """An argument as users write it."""
    named = re.sub(r" <(?:list\[)?(?:str|int|float)\]?>", "", re.sub(r"\{([^{}]+)\}", r"\1", metavar))
    named = named.replace("<int range>", "N").replace("<float range>", "N").replace("......", "...")
    return re.sub(r"\[\[([^\[\]]+)\]\]", r"[\1]", named)


def _said(text: str) -> str:
    """The help of an argument, with its bounds in words."""
    text = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", text)
    return re.sub(r"x>=([\d.]+)", r"at least \1", text).replace("-", _UNBROKEN)


class Commands(PlainHelp, TyperGroup):
    """The commands of Podium: 0 went well, 1 something does not fit or agree, 2 bad input, 130 interrupted."""

    def __init__(self, **attributes: Any) -> None:
        # Names and summaries are enough to list and to suggest commands.
        attributes["commands"] = {name: Command(name, help=listed.summary) for name, listed in COMMANDS.items()}
        super().__init__(**attributes)

    def main(self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        try:
            if sys.stderr is None:  # the shell's `2>&-`
                sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
            if sys.stdout is None:  # the shell's `>&-`
                raise PodiumError("stdout is closed; there is nowhere to write to")
            code = super().main(args, standalone_mode=False, **extra) or 0
        except (PodiumError, UsageError) as error:
            code = fail(error)
        except MemoryError:
            code = fail("not enough memory for this input")
        except (KeyboardInterrupt, typer.Abort):
            code = EXIT_INTERRUPTED
        except Exception as error:  # a fault of Podium's own: one line, and how to get the rest of it
            if os.environ.get(TRACEBACK):
                raise
            if _is_interrupt(error):
                code = EXIT_INTERRUPTED
            elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
                code = fail("no space left to write to")
            else:
                kind = type(error).__name__
                code = fail(f"unexpected {kind}: {error} (set {TRACEBACK}=1 to see where it comes from)")
        if standalone_mode:
            sys.exit(code)
        return code

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual, but completion may be requested for a named shell, not only for the current one."""
        option, _, given = args[0].partition("=") if args else ("", "", "")
        shell = given or next(iter(args[1:]), "")
        if shell and option in ("--install-completion", "--show-completion"):
            if shell not in SHELLS:
                raise typer.BadParameter(f"there is none for {shell!r}; use {', '.join(SHELLS)}", param_hint=option)
            from typer.completion import install_callback, show_callback

            (show_callback if option == "--show-completion" else install_callback)(ctx, self.params[0], shell)
        return list(super().parse_args(ctx, args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As usual, but an empty value is refused by its option: later code could not tell which option it was."""
        for before, argument in zip(("", *args), args, strict=False):
            if not argument:
                raise typer.BadParameter("is empty", param_hint=before if before.startswith("-") else "an argument")
            if argument.startswith("--") and argument.endswith("="):
                raise typer.BadParameter("is empty", param_hint=argument[:-1])
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return built(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by the question they answer, each with the first sentence of its help."""
        for title, commands in QUESTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, listed.summary) for name, listed in commands.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                warnings.simplefilter("default", ExtenderWarning)
                result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader closed the pipe; the buffered output has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return EXIT_BROKEN_PIPE
        return result


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show Podium's own warnings as one line, others as Python does."""
    if issubclass(category, ExtenderWarning):
        warn(str(message))
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=file or sys.stderr)


@cache
def built(name: str) -> Any:
    """The command with this name; it checks the files it will read and write before it does anything."""
    from podium.cli.options import with_options

    module, _, function = COMMANDS[name].place.partition(":")
    command = with_options(getattr(import_module(f"podium.cli.{module}"), function))

    @wraps(command)
    def checked(**arguments: Any) -> Any:
        check_files(arguments)
        return command(**arguments)

    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(name, cls=Command)(checked)
    return typer.main.get_command(alone)


def fail(problem: Exception | str) -> int:
    """Report a problem in one line on stderr; returns the exit code."""
    text = problem.format_message() if isinstance(problem, UsageError) else str(problem)  # type: ignore[attr-defined]
    print(f"podium: {one_line(text.replace('Value error, ', ''))}", file=sys.stderr)
    return EXIT_BAD_INPUT


app = typer.Typer(
    cls=Commands,
    name="podium",
    help="Decide where Kubernetes pods go, exactly as kube-scheduler would, and show why.",
    epilog="Exit codes: 0 all went well, 1 something does not fit or agree, 2 bad input, 130 interrupted.",
    add_completion=True,
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
