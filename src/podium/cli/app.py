"""The commands, and how they end: one line and an exit code, never a traceback."""

from __future__ import annotations

import errno
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from typing import Annotated, Any, TextIO, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from podium import __version__
from podium.cli import capacity, compare, disruption, explain, live, options, recorded, serve, simulate, sweep
from podium.cli.output import EXIT_BAD_INPUT, NODE_DOMAIN, check_files, one_line, warn
from podium.errors import ExtenderWarning, PodiumError

EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
TRACEBACK = "PODIUM_TRACEBACK"
"""The variable that asks for the traceback of an unexpected error, such as a user's plugin may raise."""

# Where typer keeps the root of its usage errors depends on its version; a bad parameter is one in all of them.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


QUESTIONS = {
    "Ask about a pod": ("explain", "why-not"),
    "Ask about a cluster": ("simulate", "capacity", "drain", "fail", "audit", "devices"),
    "Change how it is scheduled": ("compare", "tune", "upgrade", "releases", "sweep"),
    "Work with a running cluster": ("dump", "shadow", "run", "extender", "serve"),
    "Recordings and examples": ("demo", "example", "import", "decide", "verify", "bench"),
}
"""The commands by the question that brings a user to them."""


SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
"""Those that can complete what is typed."""

_UNBROKEN = "\N{NON-BREAKING HYPHEN}"
"""Stands for a hyphen while text is laid out: kube-scheduler is one word."""


class PlainHelp:
    """Help that names arguments as users write them, without braces and Python types, and breaks no word."""

    format_help: Callable[..., None]

    def get_help(self, ctx: Any) -> str:
        formatter = ctx.make_formatter()
        write_usage, write_list, write_text = formatter.write_usage, formatter.write_dl, formatter.write_text
        # Before the text is laid out, so that columns stay columns.
        formatter.write_usage = lambda prog, args="", *rest: write_usage(prog, _plain(args), *rest)
        formatter.write_dl = lambda rows, *rest: write_list([(_plain(name), _said(text)) for name, text in rows], *rest)
        formatter.write_text = lambda text: write_text(_said(text))
        self.format_help(ctx, formatter)
        return str(formatter.getvalue()).rstrip("\n").replace(_UNBROKEN, "-")


class Command(PlainHelp, TyperCommand):
    """A command, with such help."""


def _plain(metavar: str) -> str:
    """An argument as users write it."""
    named = re.sub(r" <(?:list\[)?(?:str|int|float)\]?>", "", re.sub(r"\{([^{}]+)\}", r"\1", metavar))
    named = named.replace("<int range>", "N").replace("<float range>", "N").replace("......", "...")
    return re.sub(r"\[\[([^\[\]]+)\]\]", r"[\1]", named)


def _said(text: str) -> str:
    """What is said of an argument, its bounds in words."""
    text = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", text)
    return re.sub(r"x>=([\d.]+)", r"at least \1", text).replace("-", _UNBROKEN)


class Commands(PlainHelp, TyperGroup):
    """The commands of Podium: 0 went well, 1 something does not fit or agree, 2 bad input, 130 interrupted."""

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
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                code = fail("no space left to write to")
            else:
                kind = type(error).__name__
                code = fail(f"unexpected {kind}: {error} (set {TRACEBACK}=1 to see where it comes from)")
        if standalone_mode:
            sys.exit(code)
        return code

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual, but completion may be asked for by the name of a shell, not only for the one that runs."""
        option, _, given = args[0].partition("=") if args else ("", "", "")
        shell = given or next(iter(args[1:]), "")
        if shell and option in ("--install-completion", "--show-completion"):
            if shell not in SHELLS:
                raise typer.BadParameter(f"there is none for {shell!r}; use {', '.join(SHELLS)}", param_hint=option)
            from typer.completion import install_callback, show_callback

            (show_callback if option == "--show-completion" else install_callback)(ctx, self.params[0], shell)
        return list(super().parse_args(ctx, args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As usual, but an empty value is refused by its option: nothing further in could say which one it was."""
        for before, argument in zip(("", *args), args, strict=False):
            if not argument:
                raise typer.BadParameter("is empty", param_hint=before if before.startswith("-") else "an argument")
            if argument.startswith("--") and argument.endswith("="):
                raise typer.BadParameter("is empty", param_hint=argument[:-1])
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, which looks at the files it is to read and write before it does anything."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.callback is not None and not hasattr(command.callback, "checks_files"):
            command.callback = _checking_files(command.callback)
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by the question they answer, each with the first sentence of its help."""
        listed = {name for names in QUESTIONS.values() for name in names}
        others = tuple(name for name in self.list_commands(ctx) if name not in listed)
        for title, names in {**QUESTIONS, "Other commands": others}.items():
            found = {name: self.get_command(ctx, name) for name in names}
            rows = [(name, _first_sentence(command.help)) for name, command in found.items() if command is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                warnings.simplefilter("default", ExtenderWarning)
                result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader closed the pipe; what is still buffered has nowhere to go.
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
    """Warnings of Podium's own as one line; the others as Python shows them."""
    if issubclass(category, ExtenderWarning):
        warn(str(message))
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=file or sys.stderr)


def _checking_files(callback: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(callback)
    def checked(**arguments: Any) -> Any:
        check_files(arguments)
        return callback(**arguments)

    vars(checked)["checks_files"] = True
    return checked


def _first_sentence(text: str | None) -> str:
    first, _, _ = (text or "").strip().partition("\n\n")
    return " ".join(first.split()).partition(". ")[0].rstrip(".")


def fail(problem: Exception | str) -> int:
    """Say what is wrong in one line on stderr; the exit code for it."""
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


READING_OPTIONS = {
    "strict": (options.Strict, False),
    "no_warn": (options.NoWarn, False),
    "max_input": (options.MaxInput, "4Gi"),
}


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the options of its groups in place of the parameters that stand for them."""
    own = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: one.annotation for name, one in own.parameters.items() if is_dataclass(one.annotation)
    }

    @wraps(command)
    def with_groups(**arguments: Any) -> Any:
        for name, group in groups.items():
            arguments[name] = group(**{each.name: arguments.pop(each.name) for each in fields(group)})
        return command(**arguments)

    expanded = [
        option
        for name, one in own.parameters.items()
        for option in (_options_of(groups[name]) if name in groups else [one.replace(kind=one.KEYWORD_ONLY)])
    ]
    vars(with_groups)["__signature__"] = own.replace(parameters=expanded)
    return with_groups


@cache
def _options_of(group: Any) -> list[inspect.Parameter]:
    hints, found = get_type_hints(group, include_extras=True), []
    for each in fields(group):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        own = inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[each.name])
        found.append(own)
    return found


def reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the options that say how to read what it is given."""

    @wraps(command)
    def with_options(*, strict: bool, no_warn: bool, max_input: str, **arguments: Any) -> Any:
        from podium.cli.inputs import READING, Reading, read_size
        from podium.manifests.files import MAX_INPUT

        allowed = MAX_INPUT.set(read_size(max_input, "--max-input"))
        wanted = READING.set(Reading(strict=strict, warns=not no_warn))
        shown = NODE_DOMAIN.set("")
        try:
            return command(**arguments)
        finally:
            NODE_DOMAIN.reset(shown)
            READING.reset(wanted)
            MAX_INPUT.reset(allowed)

    own = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in READING_OPTIONS.items()
    ]
    vars(with_options)["__signature__"] = own.replace(parameters=[*own.parameters.values(), *added])
    return with_options


READ_OBJECTS: tuple[Callable[..., Any], ...] = (
    explain.explain,
    simulate.simulate,
    explain.why_not,
    capacity.capacity,
    compare.compare,
    compare.upgrade,
    disruption.drain,
    disruption.fail,
    disruption.audit,
    capacity.devices,
    sweep.tune,
    live.dump,
    serve.serve,
    serve.extender,
)
READ_OTHER_INPUT: tuple[Callable[..., Any], ...] = (
    live.shadow,
    live.run,
    sweep.sweep,
    sweep.import_trace,
    recorded.decide,
    recorded.verify,
    recorded.bench,
    compare.releases,
    recorded.demo,
    recorded.example,
)
for command in READ_OBJECTS:
    app.command(cls=Command)(reading(grouped(command)))
for command in READ_OTHER_INPUT:
    app.command("import" if command is sweep.import_trace else None, cls=Command)(grouped(command))
