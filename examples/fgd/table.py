"""The table of the study: `python table.py results/summary.csv expected.csv` compares a sweep with the paper's figures.

A row per trace, a column per policy: percent of the GPUs allocated at 130 % arrival, and the difference to what the
paper's simulator got, where the paper has that trace and policy. The columns of `expected.csv` are workload, policy,
arrived_percent_of_gpu_capacity and allocated_gpu_percent_mean.
"""

import csv
import sys
from typing import NamedTuple

MEASURE = "allocated_130_mean"
ARRIVED = "130"
ALLOWED = 0.5  # points
ONE_TRACE = "the only trace"  # the name of the row if the sweep has no axis `trace`


class Cell(NamedTuple):
    """A mean in percent, by how much it is more than expected (None if unknown), and how many runs it has."""

    mean: float
    difference: float | None
    runs: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.difference is None else f"{self.mean:.2f} ({self.difference:+.2f})"


Table = dict[str, dict[str, Cell]]
"""Cells by trace and policy."""


def read(path: str) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def differences(summary: list[dict[str, str]], expected: list[dict[str, str]]) -> Table:
    """By trace and policy: what was measured, and by how much that is more than expected."""
    known = {
        (row["workload"].removeprefix("openb_pod_list_"), row["policy"]): float(row["allocated_gpu_percent_mean"])
        for row in expected
        if row["arrived_percent_of_gpu_capacity"] == ARRIVED
    }
    for column in ("config", MEASURE):
        if not summary or column not in summary[0]:
            sys.exit(f"table.py: the sweep has no column {column!r}; it needs the axis `config` and study:allocation")
    found: Table = {}
    seeds = max(int(row["runs"]) for row in summary)
    for row in summary:
        trace, policy = row.get("trace", ONE_TRACE), row["config"]
        # A point that lacks runs is left out.
        if int(row["runs"]) == seeds and row[MEASURE]:
            # Rounded as the expected figures are.
            mean, paper = round(float(row[MEASURE]), 2), known.get((trace, policy))
            found.setdefault(trace, {})[policy] = Cell(mean, None if paper is None else mean - paper, seeds)
    return found


def lines(found: Table):
    """The table as Markdown, and a sentence."""
    policies = list(dict.fromkeys(policy for row in found.values() for policy in row))
    yield f"| trace | {' | '.join(policies)} |"
    yield f"| --- {'| ---: ' * len(policies)}|"
    for trace, row in found.items():
        yield f"| {trace} | {' | '.join(str(row.get(policy, '')) for policy in policies)} |"
    cells = [cell for row in found.values() for cell in row.values()]
    off = [abs(cell.difference) for cell in cells if cell.difference is not None]
    means = f"{len(cells)} means of {sum(cell.runs for cell in cells)} runs"
    yield ""
    if not off:
        yield f"{means}; the paper has no figure for any of them."
        return
    if len(off) < len(cells):
        means = f"{means}, {len(off)} of which the paper has"
    yield f"{means}: at most {max(off):.2f} points off, {sum(each > ALLOWED for each in off)} by more than {ALLOWED}."


if __name__ == "__main__":
    print("\n".join(lines(differences(read(sys.argv[1]), read(sys.argv[2])))))
