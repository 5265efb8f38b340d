"""Tokens and literals of expressions, and the types that signatures name."""

from __future__ import annotations

import pytest

from podium.cel import CelError
from podium.cel._syntax import literal_value, tokenize
from podium.cel._types import (
    BOOL,
    DYN,
    INT,
    NULL,
    QUANTITY,
    STRING,
    Signature,
    Substitution,
    Type,
    has_variable,
    list_of,
    map_of,
    optional_of,
    parse_signature,
    parse_type,
    unwrap_optional,
)
from podium.cel._values import Uint, Value

A = parse_type("A")


def test_words_and_operators_are_their_own_kind() -> None:
    tokens = tokenize('a.?b in [1u, .5] // why\n&& "x" != null')

    assert [(token.kind, token.at) for token in tokens] == [
        *(("name", 0), (".", 1), ("?", 2), ("name", 3), ("in", 5), ("[", 8), ("uint", 9), (",", 11), ("double", 13)),
        *(("]", 15), ("&&", 24), ("string", 27), ("!=", 31), ("null", 34), ("end", 38)),
    ]


LITERALS: dict[str, Value] = {
    "12": 12,
    "0x1F": 31,
    "7u": Uint(7),
    "1.5e3": 1500.0,
    ".5": 0.5,
    "true": True,
    "null": None,
    r'"a\tb\x41\101\u00e9"': "a\tbAAé",
    r"r'a\t'": r"a\t",
    "'''a\r\nb'''": "a\nb",
    r'b"\xff\377a"': b"\xff\xffa",
    'b"é"': "é".encode(),
    "9223372036854775807": 2**63 - 1,
}


@pytest.mark.parametrize(("text", "value"), LITERALS.items(), ids=list(LITERALS))
def test_literals(text: str, value: Value) -> None:
    token, _ = tokenize(text)
    found = literal_value(token, text, negative=False)

    assert (type(found), found) == (type(value), value)


def test_the_smallest_integer_needs_its_sign() -> None:
    text = "9223372036854775808"
    token, _ = tokenize(text)

    assert literal_value(token, text, negative=True) == -(2**63)
    with pytest.raises(CelError, match="invalid int literal"):
        literal_value(token, text, negative=False)


def test_an_error_marks_its_place() -> None:
    with pytest.raises(CelError) as error:
        tokenize("a &&\n  b # c")

    assert str(error.value).splitlines()[0].endswith("<input>:2:5: Syntax error: token recognition error at: '#'")
    assert str(error.value).splitlines()[1:] == [" |   b # c", " | ....^"]


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("size(string): int", Signature("size", False, (STRING,), INT)),
        ("list(A).slice(int, int): list(A)", Signature("slice", True, (list_of(A), INT, INT), list_of(A))),
        ("quantity.isGreaterThan(quantity): bool", Signature("isGreaterThan", True, (QUANTITY, QUANTITY), BOOL)),
        ("optional.of(A): optional(A)", Signature("optional.of", False, (A,), optional_of(A))),
    ],
)
def test_signatures(text: str, signature: Signature) -> None:
    assert parse_signature(text) == signature


def test_types_are_written_as_cel_go_writes_them() -> None:
    assert str(map_of(STRING, list_of(INT))) == "map(string, list(int))"
    assert [has_variable(each) for each in (INT, DYN, A, list_of(A))] == [False, True, True, True]
    assert unwrap_optional(optional_of(INT)) == (INT, True)
    assert unwrap_optional(INT) == (INT, False)


ASSIGNED: dict[str, tuple[Type, Type, bool]] = {
    "the same": (INT, INT, True),
    "another": (INT, STRING, False),
    "anything for dyn": (INT, DYN, True),
    "dyn for anything": (DYN, STRING, True),
    "null for an object": (NULL, QUANTITY, True),
    "null for a number": (NULL, INT, False),
    "a list of another": (list_of(INT), list_of(STRING), False),
    "a list for a variable list": (list_of(INT), list_of(A), True),
}


@pytest.mark.parametrize(("given", "wanted", "fits"), ASSIGNED.values(), ids=ASSIGNED)
def test_which_types_may_stand_for_others(given: Type, wanted: Type, fits: bool) -> None:
    assert Substitution().assign((given,), (wanted,)) is fits


def test_a_variable_stands_for_one_type_and_a_failure_teaches_nothing() -> None:
    bound = Substitution()

    assert bound.assign((INT, INT), (A, A))
    assert bound.resolve(list_of(A)) == list_of(INT)
    assert not bound.assign((STRING,), (A,))
    assert not Substitution().assign((INT, STRING), (A, A))
    assert not Substitution().assign((list_of(A),), (A,))
    assert Substitution().resolve(A, variables_are_dyn=True) == DYN
