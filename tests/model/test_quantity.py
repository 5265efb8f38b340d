from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import InputError, QuantityError
from podium.model import Quantity
from podium.model.quantity import format_quantity, milli_value, parse_quantity, value

MAX_INT64 = 2**63 - 1

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
NANO = Fraction(1, 10**9)

nanos = st.integers(min_value=-(10**24), max_value=10**24).map(lambda n: n * NANO)
positive_nanos = st.integers(min_value=0, max_value=10**24).map(lambda n: n * NANO)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1", 1),
        ("100m", Fraction(1, 10)),
        ("1500u", Fraction(15, 10**4)),
        ("7n", 7 * NANO),
        ("0.5", Fraction(1, 2)),
        ("1.5Gi", 3 * 2**29),
        (".5Gi", 2**29),
        ("5.Gi", 5 * 2**30),
        ("1.", 1),
        ("+1k", 1000),
        ("-1.5", Fraction(-3, 2)),
        ("0010", 10),
        ("12e6", 12_000_000),
        ("12E6", 12_000_000),
        ("12e+6", 12_000_000),
        ("12E-3", Fraction(12, 1000)),
        ("1E", 10**18),
        ("1Ei", 2**60),
        (" 1Gi\n", 2**30),
        # A number without digits is zero to Kubernetes.
        ("+", 0),
        (".", 0),
        ("m", 0),
        ("Ki", 0),
        ("e5", 0),
    ],
)
def test_parses(text: str, amount: Fraction | int) -> None:
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(
    ("number", "amount"),
    [
        (0, 0),
        (2, 2),
        (0.5, Fraction(1, 2)),
        (0.1, Fraction(1, 10)),
        (1e3, 1000),
        (1e22, 10**22),
        (1e-7, Fraction(1, 10**7)),
        (1e-12, NANO),
        (-0.25, Fraction(-1, 4)),
        (2**63, 2**63),
    ],
)
def test_a_json_number_means_its_shortest_decimal(number: float, amount: Fraction | int) -> None:
    assert parse_quantity(number) == amount


@pytest.mark.parametrize(
    "bad",
    [
        "",
        " ",
        "1 Gi",
        "1x",
        "1K",
        "1ki",
        "1mi",
        "1Gib",
        "1.2.3",
        "--1",
        "1-",
        "1+5",
        "1e",
        "1e1.5",
        "1ee3",
        "0x10",
        "1_000",
        "1,5",
        "٣",  # a digit, but not an ASCII one
        "Pi",
        "-Ei",
        "e-10",
        "9" * 5000,
        math.inf,
        math.nan,
        True,
    ],
)
def test_refuses(bad: Quantity) -> None:
    with pytest.raises(QuantityError, match="is not a quantity; write a number with an optional suffix"):
        parse_quantity(bad)


def test_the_error_shows_the_text_and_can_be_placed() -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity("10 Gi")
    assert str(caught.value).startswith("'10 Gi' is not a quantity")
    placed = caught.value.at("pod default/web")
    assert isinstance(placed, InputError)
    assert str(placed).startswith("pod default/web: '10 Gi'")


def test_an_endless_text_is_not_repeated_in_full() -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity("9" * 5000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["1e1001", "1e-1001", "1e99999999999"])
def test_refuses_an_exponent_nobody_means(text: str) -> None:
    with pytest.raises(QuantityError, match="exponent"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0.1n", NANO),
        ("1.1n", 2 * NANO),
        ("-1.1n", -2 * NANO),
        ("0.0000000001", NANO),
        ("1e-20", NANO),
        ("0.0000000001Ki", 103 * NANO),
        ("0e-20", 0),
    ],
)
def test_finer_than_nano_rounds_away_from_zero(text: str, amount: Fraction | int) -> None:
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("7Ei", 7 * 2**60),
        ("8Ei", MAX_INT64),
        ("-16Ei", -MAX_INT64),
        ("100000000Ti", MAX_INT64),
        ("9223372036854775808", 2**63),
        ("10E", 10**19),
    ],
)
def test_only_binary_suffixes_are_capped(text: str, amount: int) -> None:
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(
    ("quantity", "units", "millis"),
    [
        ("0", 0, 0),
        ("1m", 1, 1),
        ("1n", 1, 1),
        ("1.5", 2, 1500),
        ("1500m", 2, 1500),
        ("1.0001", 2, 1001),
        ("2Gi", 2**31, 2**31 * 1000),
        ("-1m", -1, -1),
        ("-1500m", -2, -1500),
        (3, 3, 3000),
        (0.1, 1, 100),
        (Fraction(1, 3), 1, 334),
    ],
)
def test_whole_units_and_millis_round_away_from_zero(quantity: Quantity | Fraction, units: int, millis: int) -> None:
    assert value(quantity) == units
    assert milli_value(quantity) == millis


@pytest.mark.parametrize(
    ("text", "units", "millis"),
    [
        ("9223372036854775807", MAX_INT64, -1000),
        ("8Ei", MAX_INT64, -1000),
        ("9223372036854775808", -(2**63), 0),
        ("10E", 0, 0),
        ("20000P", 0, 0),
        ("1E", 10**18, 0),
        ("100000000000000001k", 7766279631452242920, 200376420521689664),
    ],
)
def test_an_amount_beyond_int64_becomes_what_go_makes_of_it(text: str, units: int, millis: int) -> None:
    assert value(text) == units
    assert milli_value(text) == millis


@pytest.mark.parametrize(
    ("amount", "decimal", "binary"),
    [
        (0, "0", "0"),
        (1, "1", "1"),
        (1000, "1k", "1k"),
        (1023, "1023", "1023"),
        (1024, "1024", "1Ki"),
        (-1024, "-1024", "-1Ki"),
        (1500, "1500", "1500"),
        (Fraction(3, 2), "1500m", "1500m"),
        (Fraction(2049, 2), "1024500m", "1024500m"),
        (3 * 2**29, "1610612736", "1536Mi"),
        (2**31, "2147483648", "2Gi"),
        (10**21, "1000E", "953674316406250Mi"),
        (2**70, "1180591620717411303424", "1024Ei"),
        (NANO / 2, "1n", "1n"),
    ],
)
def test_formats_canonically(amount: Fraction | int, decimal: str, binary: str) -> None:
    assert format_quantity(amount) == decimal
    assert format_quantity(amount, binary=True) == binary


@settings(deadline=None)
@given(nanos, st.booleans())
def test_what_is_formatted_parses_back(amount: Fraction, binary: bool) -> None:
    text = format_quantity(amount, binary)
    parsed = parse_quantity(text)
    if text[-1] == "i":
        amount = min(max(amount, Fraction(-MAX_INT64)), Fraction(MAX_INT64))
    assert parsed == amount


@settings(deadline=None)
@given(nanos, st.booleans())
def test_the_canonical_form_is_stable(amount: Fraction, binary: bool) -> None:
    text = format_quantity(amount, binary)
    assert "." not in text
    if abs(amount) <= MAX_INT64:
        assert format_quantity(parse_quantity(text), binary) == text


@given(st.integers(min_value=-(10**6), max_value=10**6), st.sampled_from(sorted(DECIMAL)))
def test_a_decimal_suffix_is_an_exponent(number: int, suffix: str) -> None:
    assert parse_quantity(f"{number}{suffix}") == parse_quantity(f"{number}e{DECIMAL[suffix]}")
    assert parse_quantity(f"{number}{suffix}") == number * Fraction(10) ** DECIMAL[suffix]


@given(st.integers(min_value=0, max_value=7), st.sampled_from(sorted(BINARY)))
def test_a_binary_suffix_is_a_power_of_two(number: int, suffix: str) -> None:
    assert parse_quantity(f"{number}{suffix}") == parse_quantity(str(number * 2 ** BINARY[suffix]))


@given(nanos, nanos)
def test_amounts_order_as_their_texts_do(one: Fraction, other: Fraction) -> None:
    assert (parse_quantity(format_quantity(one)) < parse_quantity(format_quantity(other))) == (one < other)


@given(st.integers(min_value=0, max_value=10**15), st.text("0123456789", max_size=12), st.sampled_from(["", "m", "k"]))
def test_rounding_agrees_with_exact_arithmetic(whole: int, fraction: str, suffix: str) -> None:
    text = f"{whole}.{fraction}{suffix}"
    exact = Fraction(f"{whole}.{fraction or 0}") * Fraction(10) ** DECIMAL[suffix]
    parsed = parse_quantity(text)
    assert exact <= parsed < exact + NANO
    assert parsed == math.ceil(exact / NANO) * NANO
    if exact < 10**15:
        assert value(text) == math.ceil(exact)
        assert milli_value(text) == math.ceil(exact * 1000)


@given(positive_nanos.filter(lambda amount: amount < 10**15))
def test_units_and_millis_of_a_negative_amount_mirror_the_positive(amount: Fraction) -> None:
    assert value(-amount) == -value(amount)
    assert milli_value(-amount) == -milli_value(amount)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=1e-6, max_value=1e15))
def test_a_float_means_what_its_text_means(number: float) -> None:
    assert parse_quantity(number) == parse_quantity(repr(number))
