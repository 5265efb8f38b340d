"""The program as users start it: quick, quiet, and gone when told."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

import podium
from podium.answers import Condition
from podium.answers.audit import AUDIT_NAMES
from podium.answers.compare import ALL_NUMBERS, COMPARISON_NAMES
from podium.answers.disruption import DISRUPTION_NAMES
from podium.answers.upgrade import UPGRADE_NAMES
from podium.cli import app
from podium.cli.app import COMMANDS, built

from .running import EXAMPLE, config, node, pod, run, written

PODIUM = (sys.executable, "-c", "from podium.cli import main; main()")


def test_version() -> None:
    assert run("--version").stdout == f"podium {podium.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_the_commands(arguments: list[str]) -> None:
    result = run(*arguments)

    assert result.exit_code == 0
    for command in ("explain", "simulate", "decide", "verify", "bench", "demo"):
        assert f"\n  {command} " in result.stdout


def test_help_does_not_wait_for_what_it_does_not_need() -> None:
    code = "import sys, podium.cli\ntry: podium.cli.app(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()

    assert not {"numpy", "msgspec", "yaml", "httpx2"} & set(modules)
    assert {name for name in modules if name.startswith("podium.")} == {
        "podium.cli",
        "podium.cli.app",
        "podium.cli.output",
        "podium.errors",
        "podium.wording",
    }


def test_a_command_does_not_load_the_others() -> None:
    modules = loaded_by("from podium.cli.app import built\nbuilt('drain')")

    assert {name for name in modules if name.startswith("podium.cli.")} == {
        "podium.cli.app",
        "podium.cli.disruption",
        "podium.cli.options",
        "podium.cli.output",
    }


def loaded_by(code: str) -> set[str]:
    """The modules of Podium that a program loads."""
    code = f"import sys\n{code}\nprint(*(name for name in sys.modules if name.startswith('podium')), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def packages(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if "." in name}


OTHER_FRONTS = {"releases", "live", "web", "sweep", "traces", "timeline", "autoscaling", "loop", "testing"}


def test_importing_podium_loads_nothing_that_is_not_asked_for() -> None:
    assert packages(loaded_by("import podium")) <= {"errors"}
    assert not packages(loaded_by("from podium import Cluster, Scheduler, load")) & {
        *OTHER_FRONTS,
        "present",
        "answers",
    }


def test_explain_loads_its_own_presenters_and_no_other_front() -> None:
    path = files("podium.example") / "cluster.yaml"
    explain = f"from podium.cli import app\ntry:\n    app(['explain', 'shop/web-5f7c9-new', '-f', {str(path)!r}])\n"
    modules = loaded_by(f"{explain}except SystemExit as ended:\n    assert ended.code == 0")

    assert not packages(modules) & OTHER_FRONTS
    presenters = {name.removeprefix("podium.present.") for name in modules if name.startswith("podium.present.")}
    assert presenters == {"explanation", "text"}


def test_demo_explains_two_pods_within_80_columns() -> None:
    result = run("demo")

    assert result.exit_code == 0
    assert "Pod shop/web-5f7c9-new goes to web-c1" in result.stdout
    assert "Pod ml/train-0 fits on none of the 12 nodes." in result.stdout
    command, *others = sorted(result.stdout.splitlines(), key=len, reverse=True)
    assert command.startswith("  kubectl get ")
    assert len(others[0]) <= 80


def test_interrupting_leaves_quietly() -> None:
    line = json.dumps({"name": "a", "objects": [node()], "pods": [pod()]})
    with subprocess.Popen(
        [*PODIUM, "decide"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        # The answer comes although stdin is still open.
        assert json.loads(process.stdout.readline())["name"] == "a"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
        assert process.stderr.read() == ""


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    with subprocess.Popen([*PODIUM, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=20) == 141
        assert process.stderr.read() == ""


def on_terminal(*arguments: str, **environment: str) -> str:
    """What a terminal gets to see."""
    parent, child = pty.openpty()
    env = {**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", **environment}
    env.pop("NO_COLOR", None) if "NO_COLOR" not in environment else None
    with subprocess.Popen([*PODIUM, *arguments], stdin=child, stdout=child, stderr=child, env=env) as process:
        os.close(child)
        seen = b""
        while True:
            try:
                chunk = os.read(parent, 65536)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        process.wait(timeout=20)
    os.close(parent)
    return seen.decode()


def test_colour_on_a_terminal_only() -> None:
    arguments = ("explain", "web-5f7c9-new", "-f", EXAMPLE)

    assert "\x1b[32mPod shop/web-5f7c9-new goes to web-c1" in on_terminal(*arguments)
    assert "\x1b" not in on_terminal(*arguments, NO_COLOR="1")
    assert "\x1b" not in run(*arguments).stdout


def test_a_progress_bar_on_a_terminal_only() -> None:
    assert "placing pods" in on_terminal("simulate", "-f", EXAMPLE)
    assert run("simulate", "-f", EXAMPLE).stderr == ""


def test_an_error_nobody_foresaw_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("nobody\nforesaw")

    monkeypatch.setattr("podium.cluster.Cluster.from_objects", fail)
    cluster = written(tmp_path / "c.json", node(), pod())

    result = run("explain", "web", "-f", cluster)

    assert result.exit_code == 2
    assert result.stderr.startswith("podium: unexpected ZeroDivisionError: nobody foresaw (set PODIUM_TRACEBACK=1")
    monkeypatch.setenv("PODIUM_TRACEBACK", "1")
    assert isinstance(run("explain", "web", "-f", cluster).exception, ZeroDivisionError)


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node("n\x1b[31m"), pod())

    assert "\x1b" not in run("explain", "web", "-f", cluster).output


def test_an_unknown_scheduler_is_said_to_be_unknown(tmp_path: Path) -> None:
    scheduler = tmp_path / "scheduler.yaml"
    scheduler.write_text(json.dumps(config(profiles=[{"schedulerName": "mine"}])))
    cluster = written(tmp_path / "c.json", node(), pod())

    result = run("explain", "web", "-f", cluster, "--config", scheduler)

    assert result.exit_code == 2
    assert "no profile for scheduler name" in result.stderr


CONDITIONS = {
    "audit": AUDIT_NAMES,
    "compare": [name for name in (*COMPARISON_NAMES, *ALL_NUMBERS) if "." not in name],
    "drain": DISRUPTION_NAMES,
    "fail": DISRUPTION_NAMES,
    "upgrade": UPGRADE_NAMES,
}


@pytest.mark.parametrize("command", CONDITIONS)
def test_help_lists_what_conditions_may_name(command: str) -> None:
    said = " ".join(run(command, "--help").stdout.split())
    told = said.partition("--fail-if CONDITION")[2].partition(" -o, --output")[0]
    example, _, measures = told.partition("It may name")

    assert set(re.findall(r"\w+", measures)) >= set(CONDITIONS[command])
    known = [*CONDITIONS[command], *(f"before.{name}" for name in CONDITIONS[command])]
    assert Condition.parse(example.split("'")[1], known)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_has_the_first_sentence_of_each_help(command: str) -> None:
    paragraph = " ".join(built(command).help.partition("\n\n")[0].split())

    assert paragraph.partition(". ")[0].rstrip(".") == COMMANDS[command].summary


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_in_plain_words(command: str) -> None:
    text = run(command, "--help").stdout

    assert not re.findall(r"<(?:int|str|float|list)\b.*?>|\{[A-Z].*?\}|\.{4,}", text)
    assert max(map(len, text.splitlines())) <= 80


def test_help_names_values_and_bounds_in_words() -> None:
    for command in ("explain", "capacity", "upgrade", "releases", "example", "serve"):
        told = run(command, "--help").stdout
        assert not [word for word in ("x>=", "<=x", "[[", "<list", "kube-\n", "cluster-\n") if word in told]
    assert "[default: 1; at least 1]" in " ".join(run("capacity", "--help").stdout.split())
    assert "--seed N" in run("explain", "--help").stdout


def test_kinds_may_be_written_with_their_group(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "shop"}}, "template": template}
    workload = {"kind": "Deployment", "metadata": {"name": "shop"}, "spec": spec}
    cluster = written(tmp_path / "c.json", node(), workload)
    assert run("explain", "deployment.apps/shop", "-n", "default", "-f", cluster).exit_code == 0


COMPLETED = {
    "bash, a command": ("bash", "podium ex", ["explain", "extender", "example"]),
    "bash, a pod by its name": ("bash", "podium explain -f FILE we", ["web"]),
    "bash, a pod by its namespace": ("bash", "podium explain -f FILE def", ["default/web"]),
    "bash, a node": ("bash", "podium drain -f FILE n", ["n1"]),
    "bash, a file that is none": ("bash", "podium drain -f nowhere.json n", []),
    "zsh, a node": ("zsh", "podium drain -f FILE n", ["""_arguments '*: :(("n1"))'"""]),
    "fish, a node": ("fish", "podium drain -f FILE n", ["n1"]),
}


@pytest.mark.parametrize(("shell", "words", "found"), COMPLETED.values(), ids=COMPLETED)
def test_shells_complete(shell: str, words: str, found: list[str], tmp_path: Path) -> None:
    words = words.replace("FILE", str(written(tmp_path / "c.json", node(), pod())))
    told = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_TYPER_COMPLETE_ARGS": words}
    environment = {**told, "_PODIUM_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}

    result = CliRunner().invoke(app, [], env=environment, prog_name="podium")

    assert result.stdout.strip().split("\n") == (found or [""])


@pytest.mark.parametrize("words", [("--show-completion", "{}"), ("--show-completion={}",)])
@pytest.mark.parametrize(("shell", "said"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "complete --com")])
def test_completion_is_shown_for_the_shell_that_is_named(words: tuple[str, ...], shell: str, said: str) -> None:
    result = run(*(word.format(shell) for word in words))

    assert result.exit_code == 0
    assert said in result.stdout


def test_a_shell_without_completion_is_refused() -> None:
    result = run("--install-completion", "tcsh")

    assert result.exit_code == 2
    assert "there is none for 'tcsh'; use bash, zsh, fish" in result.stderr
