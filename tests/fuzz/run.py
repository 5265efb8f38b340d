"""`make fuzz`: damaged input for every command that reads files. None may hang, blow up or show a traceback.

The same seed gives the same cases. Every case runs in a process of its own, forked when everything is imported; what is
found is written to `--out` and can be run again with `--case`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import cpu_count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from fuzz.mutations import as_bytes, damaged, mutated
from podium.cli.app import TRACEBACK, app
from podium.example import fleet_text, gpus_text, shop_text

MOST_SECONDS = 10.0
"""Of processor time, as the machine may have other things to do."""
MOST_MEMORY = 500 << 20
AS_USUAL, DEEP = sys.getrecursionlimit(), 60_000
"""The interpreter's limit for the commands, and what it takes to write deeply nested values."""
HANGS = 90
"""Seconds after which a case is ended."""

INPUT, CONFIG, EVENTS, CASES = "cluster.json", "config.json", "events.jsonl", "cases.jsonl"

COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "shop": (
        ("explain", "shop/web-5f7c9-new", "-f", INPUT),
        ("explain", "ml/train-0", "-f", INPUT, "--preempt", "--nodes"),
        ("why-not", "shop/web-5f7c9-new", "web-a1", "-f", INPUT),
        ("simulate", "-f", INPUT),
        ("simulate", "-f", INPUT, "--config", CONFIG),
        ("simulate", "-f", INPUT, "--timeline", EVENTS, "--until", "4h"),
        ("capacity", "shop/web-5f7c9-new", "-f", INPUT),
        ("drain", "web-a1", "-f", INPUT),
        ("fail", "web-a1", "-f", INPUT),
        ("audit", "-f", INPUT),
        ("compare", "-f", INPUT, "--config", CONFIG),
        ("upgrade", "-f", INPUT, "--from", "v1.33"),
        ("tune", "-f", INPUT, "--trials", "2", "--jobs", "1"),
        ("decide", "-f", CASES),
        ("bench", CASES),
        ("explain", "shop/web-5f7c9-new", "-f", INPUT, "--release", "v1.14"),
    ),
    "gpus": (
        ("explain", "ml/train", "-f", INPUT),
        ("simulate", "-f", INPUT),
        ("devices", "-f", INPUT),
        ("drain", "gpu-a1", "-f", INPUT),
    ),
    "fleet": (
        ("simulate", "-f", INPUT),
        ("fail", "data-a1", "-f", INPUT),
        ("explain", "search/index-9", "-f", INPUT),
    ),
}
FORMATS = ("table", "wide", "json", "yaml", "csv")
WITHOUT_FORMAT = ("decide", "bench")
CONFIGURATION: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "percentageOfNodesToScore": 0,
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"score": {"disabled": [{"name": "ImageLocality"}], "enabled": [{"name": "NodeAffinity"}]}},
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
                {"name": "PodTopologySpread", "args": {"defaultingType": "System"}},
            ],
        }
    ],
}
SINGLE_EVENTS: tuple[dict[str, Any], ...] = tuple(
    {"time": when, "event": event, "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}}
    for when, event, node in (
        (1, "cordon", "web-a1"),
        (60, "drain", "web-b1"),
        (90, "fail", "web-c1"),
        (100, "uncordon", "web-a1"),
    )
)


class Case(NamedTuple):
    """A command, and the files it reads."""

    arguments: tuple[str, ...]
    files: dict[str, bytes]


class Run(NamedTuple):
    """How a case went."""

    code: int
    stderr: str
    seconds: float
    memory: int


def examples() -> dict[str, dict[str, Any]]:
    """The examples as lists of objects, as kubectl writes them."""
    texts = {"shop": shop_text, "gpus": gpus_text, "fleet": fleet_text}
    return {name: json.loads(text(json=True)) for name, text in texts.items()}


def make_case(seed: int, number: int, dumps: dict[str, dict[str, Any]]) -> Case:
    """Case `number` of a seed."""
    random = Random(f"{seed}:{number}")
    name = random.choices(list(COMMANDS), weights=(8, 3, 1))[0]
    arguments = random.choice(COMMANDS[name])
    dump, configuration, events = dumps[name], CONFIGURATION, list(SINGLE_EVENTS)
    pods = [item for item in dump["items"] if item["kind"] == "Pod"]
    events += [{"time": 5, "event": "add", "object": _renamed(random.choice(pods))} for _ in range(2)]
    case: dict[str, Any] = {"name": "case", "objects": dump["items"], "pods": [_renamed(pods[0])]}
    # One of the files is damaged, the others are as they should be.
    victim = random.choice([each for each in (INPUT, CONFIG, EVENTS, CASES) if each in arguments])
    sound = {
        INPUT: json.dumps(dump).encode(),
        CONFIG: json.dumps(configuration).encode(),
        EVENTS: _lines(events),
        CASES: _lines([case]),
    }
    files = {file: data for file, data in sound.items() if file in arguments}
    if victim == EVENTS:
        files[EVENTS] = _lines([mutated(event, random) for event in events])
    elif victim == CASES:
        files[CASES] = _lines([mutated(case, random)])
    else:
        files[victim] = as_bytes(mutated(dump if victim == INPUT else configuration, random), random)
    if victim in (EVENTS, CASES) and random.random() < 0.2:
        files[victim] = damaged(files[victim], random)
    if arguments[0] not in WITHOUT_FORMAT:
        arguments = (*arguments, "-o", random.choice(FORMATS))
    return Case(arguments, files)


def _renamed(pod: dict[str, Any]) -> dict[str, Any]:
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {**pod, "metadata": {**pod["metadata"], "name": "another"}, "spec": spec, "status": {}}


def _lines(values: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def warm_up(dumps: dict[str, dict[str, Any]]) -> None:
    """Run every command once on sound input, in this process: what it imports is there for all that are forked."""
    case = {"name": "case", "objects": dumps["shop"]["items"], "pods": []}
    before = Path.cwd(), sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.chdir(folder)
        sys.stdout = sys.stderr = nowhere
        try:
            Path(CONFIG).write_bytes(json.dumps(CONFIGURATION).encode())
            Path(EVENTS).write_bytes(_lines(SINGLE_EVENTS))
            Path(CASES).write_bytes(_lines([case]))
            for name, commands in COMMANDS.items():
                Path(INPUT).write_bytes(json.dumps(dumps[name]).encode())
                for arguments in commands:
                    for output in (FORMATS[0], *FORMATS[2:]):
                        wanted = [] if arguments[0] in WITHOUT_FORMAT else ["-o", output]
                        app([*arguments, *wanted], prog_name="podium", standalone_mode=False)
        finally:
            os.chdir(before[0])
            sys.stdout, sys.stderr = before[1:]


def run_case(case: Case, folder: Path) -> Run:
    """Run a case in a process of its own, in a folder that has nothing but its files."""
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    stderr = folder / "stderr"
    pid = os.fork()
    if not pid:
        _become(case, folder, stderr)
    _, status, usage = os.wait4(pid, 0)
    memory = usage.ru_maxrss * 1024
    return Run(
        os.waitstatus_to_exitcode(status), stderr.read_text("utf-8", "replace"), usage.ru_utime + usage.ru_stime, memory
    )


def _become(case: Case, folder: Path, stderr: Path) -> None:
    """Be the command; never returns."""
    code = 99
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HANGS)
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        sys.setrecursionlimit(AS_USUAL)
        os.chdir(folder)
        with open(os.devnull, "w", encoding="utf-8") as nowhere, open(stderr, "w", encoding="utf-8") as file:
            sys.stdout, sys.stderr = nowhere, file
            try:
                app(list(case.arguments), prog_name="podium")
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 98
    finally:
        os._exit(code)


def problem(case: Case, run: Run) -> str:
    """What is wrong with how a case went; empty if nothing is."""
    lines = [line for line in run.stderr.splitlines() if not line.startswith("warning: ")]
    if run.code == -signal.SIGALRM:
        return f"hangs: no end within {HANGS} s"
    if run.code not in (0, 1, 2):
        return f"exit code {run.code}"
    if "Traceback" in run.stderr or TRACEBACK in run.stderr:
        return f"internal error: {lines[-1] if lines else ''}"
    if run.code == 2 and (len(lines) != 1 or not lines[0].startswith("podium: ")):
        return f"{len(lines)} lines on stderr: {lines[:3]}"
    if run.code == 2 and not any(word in lines[0] for word in (*case.files, *case.arguments[1:])):
        return f"names neither the file nor what was asked for: {lines[0]}"
    if run.seconds > MOST_SECONDS:
        return f"takes {run.seconds:.1f} s"
    if run.memory > MOST_MEMORY:
        return f"takes {run.memory >> 20} MiB"
    return ""


def _kind(found: str) -> str:
    """What findings of the same kind have in common."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "_", found)[:90]


def search(
    seed: int, numbers: Iterable[int], until: float, out: Path, dumps: dict[str, dict[str, Any]]
) -> Iterator[tuple[int, str]]:
    """Run these cases until it is time; each with what is wrong, empty for nothing."""
    for number in numbers:
        if time.monotonic() > until:
            return
        case = make_case(seed, number, dumps)
        with tempfile.TemporaryDirectory() as folder:
            run = run_case(case, Path(folder))
        found = problem(case, run)
        if found:
            _keep(out / f"{seed}-{number}", case, found, run)
        yield number, found


def _keep(folder: Path, case: Case, found: str, run: Run) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    (folder / "FOUND").write_text(f"podium {' '.join(case.arguments)}\n{found}\n{run.stderr}", "utf-8", "replace")


def _worker(findings: Iterator[tuple[int, str]], pipe: int) -> None:
    with os.fdopen(pipe, "wb") as results:
        for number, found in findings:
            results.write(msgspec.json.encode([number, found]) + b"\n")
            results.flush()


def main() -> int:
    """Search for some minutes, on all processors; exit code 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--case", type=int, help="run this case of the seed alone")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "podium-fuzz")
    given = parser.parse_args()
    sys.setrecursionlimit(DEEP)
    if given.case is not None:
        case = make_case(given.seed, given.case, examples())
        with tempfile.TemporaryDirectory() as folder:
            run = run_case(case, Path(folder))
        found = problem(case, run)
        if found:
            _keep(given.out / f"{given.seed}-{given.case}", case, found, run)
        print(f"podium {' '.join(case.arguments)}\n{run}\n{found or 'nothing is wrong'}")
        return int(bool(found))
    until = time.monotonic() + 60 * given.minutes
    dumps = examples()
    warm_up(dumps)
    gc.freeze()
    pipes = []
    for first in range(cpu_count()):
        reading, writing = os.pipe()
        if not os.fork():
            os.close(reading)
            _worker(search(given.seed, range(first, sys.maxsize, cpu_count()), until, given.out, dumps), writing)
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    return _report(given.seed, pipes, given.out)


def _report(seed: int, pipes: list[int], out: Path) -> int:
    """Collect what the workers say, and print each kind of finding once."""
    kinds: Counter[str] = Counter()
    count = 0
    for pipe in pipes:
        with os.fdopen(pipe, "rb") as results:
            for line in results:
                number, found = msgspec.json.decode(line)
                count += 1
                if found:
                    kinds[_kind(found)] += 1
                    if kinds[_kind(found)] == 1:
                        print(f"case {number}: {found[:400]}", flush=True)
    print(f"seed {seed}: {count:,} cases, {kinds.total():,} findings of {len(kinds)} kinds", end="")
    print(f", in {out}" if kinds else "")
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main())
