"""How much faster a sweep is on several processes: `python -m bench.sweep` prints the seconds on one and on two.

Needs a machine with nothing else to do. What it takes to start the processes and to send them the cluster counts. Two
processors that share a core or a cache do less than twice the work of one. So the same runs are also done by sweeps of
one process each that start at the same time and share nothing: what that takes is the most to hope for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from bench.shapes import case

SWEEP = """\
cluster: cluster.json
minimize: nodes_in_use
axes:
  args.NodeResourcesFit.scoringStrategy.type: [LeastAllocated, MostAllocated]
  seed: {{from: {first}, to: {last}}}
"""


class Run(NamedTuple):
    """One `podium sweep` that is to be started."""

    file: Path
    jobs: int

    @property
    def out(self) -> Path:
        return self.file.parent / f"{self.file.stem}-{self.jobs}"

    def start(self) -> subprocess.Popen[bytes]:
        podium = [sys.executable, "-c", "from podium.cli import main; main()"]
        command = [*podium, "sweep", str(self.file), "--jobs", str(self.jobs), "--out", str(self.out)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def seconds(*runs: Run) -> float:
    """How long these sweeps take that start at the same time."""
    started = perf_counter()
    if any(process.wait() for process in [run.start() for run in runs]):
        sys.exit("a sweep failed")
    return perf_counter() - started


def sweep_file(folder: Path, first: int, last: int) -> Path:
    """A sweep over these seeds."""
    file = folder / f"seeds-{first}-{last}.yaml"
    file.write_text(SWEEP.format(first=first, last=last))
    return file


def main() -> None:
    """Measure, and print a line for each number of processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20, help="seeds; there are twice as many runs")
    parser.add_argument("--jobs", type=int, default=2, help="processes to compare with one")
    asked = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        made = case("distinct", asked.nodes, asked.pods)
        items = {"apiVersion": "v1", "kind": "List", "items": [*made["objects"], *made["pods"]]}
        (folder / "cluster.json").write_text(json.dumps(items))
        whole = sweep_file(folder, 1, asked.runs)
        starts = [asked.runs * number // asked.jobs for number in range(asked.jobs + 1)]
        shares = [Run(sweep_file(folder, first + 1, last), 1) for first, last in pairwise(starts)]
        single, several = Run(whole, 1), Run(whole, asked.jobs)
        alone, together, apart = seconds(single), seconds(several), seconds(*shares)
        rows = [(run.out / "rows.csv").read_bytes() for run in (single, several)]
    print(f"1 process: {alone:.1f} s")
    print(f"{asked.jobs} processes: {together:.1f} s; {alone / together:.2f} times as fast")
    print(
        f"{asked.jobs} sweeps of one process each, with a share of the runs: {apart:.1f} s; {alone / apart:.2f} times"
    )
    if rows[0] != rows[1]:
        sys.exit("the rows differ")


if __name__ == "__main__":
    main()
