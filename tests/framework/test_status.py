from __future__ import annotations

import numpy as np
import pytest

from podium.framework import SKIP, SUCCESS, WAIT, Code, Status, Verdict


@pytest.mark.parametrize(
    ("code", "rejects"),
    [
        (Code.SUCCESS, False),
        (Code.ERROR, False),
        (Code.UNSCHEDULABLE, True),
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, True),
        (Code.WAIT, False),
        (Code.SKIP, False),
        (Code.PENDING, True),
    ],
)
def test_which_codes_reject(code: Code, rejects: bool) -> None:
    assert code.rejects is rejects


def test_codes_have_kube_schedulers_names() -> None:
    assert [code.value for code in Code] == [
        "Success",
        "Error",
        "Unschedulable",
        "UnschedulableAndUnresolvable",
        "Wait",
        "Skip",
        "Pending",
    ]


def test_statuses_are_values() -> None:
    assert Status() == SUCCESS
    assert SKIP.code is Code.SKIP
    assert WAIT.code is Code.WAIT
    assert Status.unschedulable("a", "b") == Status(Code.UNSCHEDULABLE, ("a", "b"))
    assert Status.unresolvable("a").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert Status.error("a", "b").message == "a, b"


MASK = np.array([True, False, True])


def test_a_verdict_rejects_the_marked_nodes() -> None:
    verdict = Verdict.reject(MASK, "too small")
    assert verdict.codes.tolist() == [1, 0, 1]
    assert verdict.describe(1) == Status.unschedulable("too small")
    assert Verdict.unresolvable(MASK, "too far").describe(1) == Status.unresolvable("too far")


def test_the_first_mask_that_marks_a_node_gives_the_status() -> None:
    small, far = Status.unschedulable("too small"), Status.error("too far")
    verdict = Verdict.first((MASK, small), (np.array([True, True, False]), far))
    assert verdict.rejected.tolist() == [True, True, True]
    assert verdict.codes.tolist() == [1, -2, 1]
    assert [verdict.describe(1), verdict.describe(-2)] == [small, far]
    assert verdict.error == far
    assert Verdict.first((MASK, small)).error is None


def test_a_mask_may_be_of_numbers() -> None:
    assert Verdict.reject(np.array([1, 0, 2]), "too small").rejected.tolist() == [True, False, True]


def test_a_verdict_chooses_among_statuses_and_errors_are_negative() -> None:
    statuses = (Status.unschedulable("one"), Status.error("two"), Status.unresolvable("three"))
    verdict = Verdict.choose(np.array([0, 1, 2, 3, 2]), statuses)
    assert verdict.codes.tolist() == [0, 1, -2, 3, -2]
    assert [verdict.describe(code) for code in (1, -2, 3)] == list(statuses)


def test_accepting_all_nodes_rejects_none() -> None:
    verdict = Verdict.accept(range(3))

    assert verdict.accepted == 3
    assert verdict.codes.tolist() == [0, 0, 0]
    assert not verdict.rejected.any()
    assert verdict.error is None
    assert Verdict.reject(MASK, "too small").accepted is None
