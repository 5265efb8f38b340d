"""The fuzzer itself: the same seed gives the same cases, and what goes wrong is found."""

from __future__ import annotations

from fuzz.run import MOST_MEMORY, MOST_SECONDS, Case, Run, examples, make_case, problem

CASE = Case(("simulate", "-f", "cluster.json"), {"cluster.json": b""})


def test_the_same_seed_gives_the_same_cases() -> None:
    dumps = examples()
    for number in range(20):
        assert make_case(7, number, dumps) == make_case(7, number, dumps)
    assert make_case(7, 0, dumps) != make_case(8, 0, dumps)


def test_what_is_a_finding() -> None:
    good = Run(2, "warning: odd\npodium: cluster.json: is empty\n", 0.1, 1)
    assert problem(CASE, good) == ""
    assert problem(CASE, good._replace(code=99)) == "exit code 99"
    assert "internal error" in problem(CASE, good._replace(stderr="Traceback (most recent call last)"))
    assert "2 lines" in problem(CASE, good._replace(stderr="podium: cluster.json: a\npodium: b\n"))
    assert "names neither" in problem(CASE, good._replace(stderr="podium: is empty\n"))
    assert "takes" in problem(CASE, good._replace(seconds=MOST_SECONDS + 1))
    assert "takes" in problem(CASE, good._replace(memory=MOST_MEMORY + 1))
