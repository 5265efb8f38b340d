"""The table of the study: `python table.py results/summary.csv expected.csv` compares a sweep with the paper's figures.

A row per trace, a column per policy: percent of the GPUs allocated at 130 % arrival, and the difference to what the
paper's simulator got. The columns of `expected.csv` are workload, policy, arrived_percent_of_gpu_capacity and
allocated_gpu_percent_mean.
"""

import csv
import sys

MEASURE = "allocated_130_mean"
ARRIVED = "130"
ALLOWED = 0.5  # points


def read(path: str) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def differences(summary: list[dict[str, str]], expected: list[dict[str, str]]) -> dict[str, dict[str, tuple]]:
    """By trace and policy: what was measured, and by how much that is more than expected."""
    known = {
        (row["workload"].removeprefix("openb_pod_list_"), row["policy"]): float(row["allocated_gpu_percent_mean"])
        for row in expected
        if row["arrived_percent_of_gpu_capacity"] == ARRIVED
    }
    found: dict[str, dict[str, tuple]] = {}
    seeds = max(int(row["runs"]) for row in summary)
    for row in summary:
        trace, policy = row["trace"], row["config"]
        # A point that lacks runs is left out.
        if int(row["runs"]) == seeds and (trace, policy) in known:
            # Rounded as the expected figures are.
            measured = round(float(row[MEASURE]), 2)
            found.setdefault(trace, {})[policy] = measured, measured - known[trace, policy], int(row["runs"])
    return found


def lines(found: dict[str, dict[str, tuple]]):
    """The table as Markdown, and a sentence."""
    policies = list(dict.fromkeys(policy for row in found.values() for policy in row))
    yield f"| trace | {' | '.join(policies)} |"
    yield f"| --- {'| ---: ' * len(policies)}|"
    for trace, row in found.items():
        cells = [f"{row[policy][0]:.2f} ({row[policy][1]:+.2f})" if policy in row else "" for policy in policies]
        yield f"| {trace} | {' | '.join(cells)} |"
    all_cells = [cell for row in found.values() for cell in row.values()]
    largest = max(abs(difference) for _, difference, _ in all_cells)
    beyond = sum(abs(difference) > ALLOWED for _, difference, _ in all_cells)
    runs = sum(number for _, _, number in all_cells)
    yield ""
    yield f"{len(all_cells)} means of {runs} runs: at most {largest:.2f} points off, {beyond} by more than {ALLOWED}."


if __name__ == "__main__":
    print("\n".join(lines(differences(read(sys.argv[1]), read(sys.argv[2])))))
