"""Regular expressions: what matches, what is found, and what RE2 refuses."""

from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cel import CelTimeoutError, Device, DeviceSelector
from podium.cel._regex import compile_pattern
from podium.cel._values import EvalError


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "a**", "*a", "(?=a)", "(?!a)", "(?<=a)", r"(a)\1", "[b-a]", "[a", "a{2,1}", "a{1001}", "(a{100}){11}",
     r"\Z", r"\q", "\\", "(?P<n>a)(?P<n>b)", "(?z)", "[[:nope:]]", r"\p{Nope}", "a|*"],
)  # fmt: skip
def test_patterns_that_are_refused(pattern: str) -> None:
    with pytest.raises(EvalError, match="error parsing regexp"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a|ab", "ab", "a"), ("ab|a", "ab", "ab"), ("a*?", "aaa", ""), ("a+?", "aaa", "a"), ("(?U)a+", "aaa", "a"),
        ("a{2}", "aaa", "aa"), ("x*", "axx", ""), ("b.*d", "abcde", "bcd"), ("(?i)B", "abc", "b"),
        ("a{,2}", "a{,2}", "a{,2}"),
        (r"\Qa.b\E+", "a.bbb", "a.bbb"), ("[^a]", "ab", "b"), ("^b", "ab", None), (r"\bb", "a b", "b"),
    ],
)  # fmt: skip
def test_the_match_that_is_found(pattern: str, text: str, expected: str | None) -> None:
    span = compile_pattern(pattern).find(text)
    assert (None if span is None else text[span[0] : span[1]]) == expected


def test_empty_matches_right_after_a_match_do_not_count() -> None:
    assert compile_pattern("a*").find_all("baac") == ["", "aa", ""]
    assert compile_pattern("").find_all("ab") == ["", "", ""]


_ATOMS = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "(a|b)", "(?:bc|b)", r"\w", "^", "$", r"\b"])
_PATTERNS = st.lists(st.tuples(_ATOMS, st.sampled_from(["", "", "?", "*", "+", "*?", "+?", "{1,2}"])), max_size=5)


@given(_PATTERNS, st.text("abc ", max_size=8))
def test_patterns_python_knows_too_match_the_same(parts: list[tuple[str, str]], text: str) -> None:
    pattern = "".join(atom + repeat for atom, repeat in parts if not (repeat and atom in ("^", "$", r"\b")))
    expected = re.search(pattern.replace("$", r"\Z"), text)
    compiled = compile_pattern(pattern)
    assert compiled.search(text) == (expected is not None)
    assert compiled.find(text) == (expected.span() if expected else None)


ENDLESS = {
    "a repeated choice on a long text": ("(a|b|c|d|e|f|g){1,1000}z", "a" * 2_000),
    "a repetition of many characters": (f"({'a' * 3_000}){{1000}}", "a" * 100),
    "successive matches that look ahead to the end": ("a.*z|a", "a" * 5_000),
}


@pytest.mark.parametrize(("pattern", "text"), ENDLESS.values(), ids=ENDLESS)
def test_a_pattern_that_takes_too_long_is_given_up(pattern: str, text: str) -> None:
    method = "findAll" if "*" in pattern else "matches"
    asked = "" if method == "matches" else ".size() > 0"
    selector = DeviceSelector(f'device.attributes["d"].text.{method}("{pattern}"){asked}')
    began = process_time()
    with pytest.raises(CelTimeoutError):
        selector.matches("d", {"text": text}, {})
    assert process_time() - began < 10


def test_work_is_counted_and_limited() -> None:
    selector = DeviceSelector('device.attributes["d"].text.matches("(a|b){1,100}z")')
    device = Device("d", {"text": "ab" * 100}, {})
    work = selector.evaluate(device).work
    assert work > 1_000
    assert selector.evaluate(device).work == work, "what is remembered counts as well"
    with pytest.raises(CelTimeoutError):
        selector.evaluate(device, work // 2)


def test_an_expression_larger_than_go_allows_is_refused() -> None:
    with pytest.raises(EvalError, match="expression too large"):
        compile_pattern(f"({'a' * 4_000}){{1000}}")
