"""Groups of options: a parameter that is a group stands for its options, and who reads a cluster may say how."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Annotated

import pytest
import typer

from podium.cli import options
from podium.cli.options import with_options
from podium.errors import InputError
from podium.input_files import MAX_INPUT

from .running import EXAMPLE, run

READING_OPTIONS = ["strict", "no_warn", "max_input"]


@dataclass(frozen=True, kw_only=True)
class Sized:
    width: Annotated[int, typer.Option("--width")] = 3
    names: Annotated[list[str], typer.Option("--name")] = field(default_factory=lambda: ["a"])


def sized(first: Annotated[str, typer.Argument()], size: Sized = Sized(), last: bool = False) -> tuple[object, ...]:
    """Has a group between its own parameters."""
    return first, size, last


def reads(source: options.ClusterSource = options.ClusterSource()) -> tuple[object, ...]:
    """Reads a cluster."""
    return source, MAX_INPUT.get()


def test_a_group_is_expanded_where_it_stands() -> None:
    command = with_options(sized)
    parameters = inspect.signature(command).parameters

    assert list(parameters) == ["first", "width", "names", "last"]
    assert [parameters[name].default for name in ("width", "names")] == [3, ["a"]]
    assert command.__doc__ == sized.__doc__


def test_the_command_gets_the_group() -> None:
    found = with_options(sized)(first="x", width=5, names=["b"], last=True)

    assert found == ("x", Sized(width=5, names=["b"]), True)


@pytest.mark.parametrize("group", [options.ClusterSource, options.Source])
def test_a_command_that_reads_a_cluster_says_how(group: type) -> None:
    def command(source: object) -> None: ...

    command.__annotations__["source"] = group
    assert {*inspect.signature(with_options(command)).parameters} >= {*READING_OPTIONS}
    assert not {*inspect.signature(with_options(sized)).parameters} & {*READING_OPTIONS}


def test_how_to_read_holds_while_the_command_runs() -> None:
    before = MAX_INPUT.get()
    given = {"files": ["f"], "kubeconfig": None, "context": None, "strict": True, "no_warn": True}
    source, most = with_options(reads)(max_input="1Ki", **given)

    assert source == options.ClusterSource(files=["f"], strict=True, no_warn=True)
    assert most == 1024
    assert MAX_INPUT.get() == before


def test_a_size_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="--max-input 'x' must be a size above 0"):
        with_options(reads)(strict=False, no_warn=False, max_input="x", files=[], kubeconfig=None, context=None)


@pytest.mark.parametrize(
    "arguments",
    [("capacity", "--nodes-needed", "-f", "x"), ("explain", "web", "-f", "--html", "x"), ("audit", "--fail-if", "-o")],
)
def test_an_option_is_not_taken_for_the_value_of_another(arguments: tuple[str, ...]) -> None:
    place = max(index for index, argument in enumerate(arguments) if argument.startswith("-"))
    before, option = arguments[place - 1 : place + 1]
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr == f"podium: Option '{before}' requires an argument; {option} is an option of its own.\n"


def test_values_that_begin_like_options_are_values() -> None:
    assert run("explain", "web", "-f", "-", stdin="").stderr.startswith("podium: stdin: ")
    assert "'--at-least'" in run("capacity", "web", "--at-least", "-1").stderr
    assert run("explain", "-f", EXAMPLE, "--", "-f").stderr.startswith("podium: pod '-f' is not in the input")


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("simulate", "--timeline", "e", "--node-groups", "a", "--node-groups", "b"), "--node-groups"),
        (("explain", "web", "-f", EXAMPLE, "-n", "a", "--namespace=b"), "--namespace"),
        (("explain", "web", "-f", EXAMPLE, "-o", "json", "-ojson"), "--output"),
    ],
)
def test_an_option_that_takes_one_value_is_not_given_twice(arguments: tuple[str, ...], option: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"podium: Option '{option}' is given 2 times; it takes one value.\n"
