"""How much faster a sweep is on several processes: `python -m bench.sweep` prints the seconds on one and on two.

Needs a machine with nothing else to do. What it takes to start the processes and to send them the cluster counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.shapes import case

SWEEP = """\
cluster: cluster.json
minimize: nodes_in_use
axes:
  args.NodeResourcesFit.scoringStrategy.type: [LeastAllocated, MostAllocated]
  seed: {{from: 1, to: {runs}}}
"""


def seconds(file: Path, jobs: int) -> float:
    """How long the sweep of a file takes on so many processes."""
    started = perf_counter()
    podium = [sys.executable, "-c", "from podium.cli import main; main()"]
    command = [*podium, "sweep", str(file), "--jobs", str(jobs), "--out", str(file.parent / f"out-{jobs}")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - started


def main() -> None:
    """Measure, and print a line for each number of processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20, help="seeds; there are twice as many runs")
    parser.add_argument("--jobs", type=int, default=2, help="processes to compare with one")
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "sweep.yaml"
        file.write_text(SWEEP.format(runs=asked.runs))
        made = case("distinct", asked.nodes, asked.pods)
        items = {"apiVersion": "v1", "kind": "List", "items": [*made["objects"], *made["pods"]]}
        (Path(folder) / "cluster.json").write_text(json.dumps(items))
        alone, together = seconds(file, 1), seconds(file, asked.jobs)
        rows = [(Path(folder) / f"out-{jobs}" / "rows.csv").read_bytes() for jobs in (1, asked.jobs)]
    print(f"1 process: {alone:.1f} s; {asked.jobs} processes: {together:.1f} s; {alone / together:.2f} times as fast")
    if rows[0] != rows[1]:
        sys.exit("the rows differ")


if __name__ == "__main__":
    main()
