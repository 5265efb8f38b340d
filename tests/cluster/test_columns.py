from __future__ import annotations

import pytest

from builders import make_node
from podium.cluster.columns import Columns, Interned
from podium.model.selectors import Requirement


def test_interned_values_have_codes_in_order_of_arrival() -> None:
    interned: Interned[str] = Interned()
    assert [interned.code(value) for value in ("b", "a", "b", "c")] == [0, 1, 0, 2]
    assert interned.values == ["b", "a", "c"]
    assert len(interned) == 3


def labelled(*values: str | None) -> Columns:
    columns = Columns(capacity=2)
    for number, value in enumerate(values):
        columns.set_node(columns.new_row(), make_node(f"n{number}", labels={} if value is None else {"key": value}))
    return columns


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["5"], [True, False, False, True]),
        ("In", ["5", "x", "unheard-of"], [True, False, True, True]),
        ("NotIn", ["5"], [False, True, True, False]),
        ("Exists", [], [True, False, True, True]),
        ("DoesNotExist", [], [False, True, False, False]),
        ("Gt", ["4"], [True, False, False, True]),
        ("Lt", ["5"], [False, False, False, False]),
    ],
)
def test_a_table_answers_for_every_value_and_for_absence(
    operator: str, values: list[str], expected: list[bool]
) -> None:
    column = labelled("5", None, "x", "5").label("key")
    table = column.table(Requirement("key", operator, frozenset(values)))
    assert table[column.codes[:4]].tolist() == expected


def test_a_label_no_node_has_is_absent_everywhere() -> None:
    columns = labelled("a", "b", "c")
    assert columns.label("other").codes[: columns.size].tolist() == [-1, -1, -1]


def test_rows_keep_their_values_when_columns_grow() -> None:
    columns = labelled("a", None, "b", "a", None, "c", "a")
    assert columns.capacity >= 7
    assert columns.label("key").codes[:7].tolist() == [0, -1, 1, 0, -1, 2, 0]
    assert columns.label("key").codes[7:].tolist() == [-1] * (columns.capacity - 7)
    assert columns.alive.tolist() == [True] * 7 + [False] * (columns.capacity - 7)


def test_a_new_resource_is_zero_on_the_rows_there_are() -> None:
    columns = labelled("a", "b")
    columns.set_node(columns.new_row(), make_node("n2", gpu=4))
    gpu = columns.resource("example.com/gpu")
    assert columns.allocatable[gpu, :3].tolist() == [0, 0, 4]
    assert columns.requested[gpu, :3].tolist() == [0, 0, 0]


def test_units_are_milli_cpu_bytes_and_numbers() -> None:
    columns = Columns()
    columns.set_node(columns.new_row(), make_node(cpu="1500m", memory="1Gi", pods=20, ephemeral_storage="1k"))
    assert columns.allocatable[:, 0].tolist() == [1500, 2**30, 1000, 20]


def test_a_cleared_row_offers_nothing_and_says_nothing() -> None:
    columns = labelled("a", "b")
    columns.set_node(1, make_node("n1", labels={"key": "b"}, taints=["t=:NoSchedule"], unschedulable=True))
    columns.clear_node(1)
    assert not columns.alive[1]
    assert not columns.unschedulable[1]
    assert columns.allocatable[:, 1].tolist() == [0, 0, 0, 0]
    assert columns.label("key").codes[1] == -1
    assert columns.taint_sets.values[columns.taints[1]] == ()


def test_setting_a_node_again_drops_what_it_no_longer_has() -> None:
    columns = Columns()
    row = columns.new_row()
    columns.set_node(row, make_node(labels={"old": "1", "kept": "1"}, gpu=2, taints=["t=:NoSchedule"]))
    columns.set_node(row, make_node(labels={"kept": "2"}))
    assert columns.label("old").codes[row] == -1
    assert columns.label("kept").values.values[columns.label("kept").codes[row]] == "2"
    assert columns.allocatable[columns.resource("example.com/gpu"), row] == 0
    assert columns.taint_sets.values[columns.taints[row]] == ()


def test_a_copy_shares_dictionaries_but_no_row() -> None:
    columns = labelled("a", "b")
    twin = columns.copy()
    twin.set_node(0, make_node("n0", cpu="64", labels={"key": "z"}, taints=["t=:NoSchedule"]))
    assert columns.allocatable[0, 0] == 4000
    assert columns.label("key").codes[:2].tolist() == [0, 1]
    assert columns.taints[0] == 0
    assert twin.label("key").values is columns.label("key").values
