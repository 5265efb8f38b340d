"""Compiling selectors and preparing devices."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest

from podium.cel import V1_34, V1_36, V1_37, CelError, Device, DeviceSelector, parse_version

GPU = 'device.attributes["gpu.example.com"]'


def test_matches_takes_a_device_in_its_parts() -> None:
    selector = DeviceSelector(f'{GPU}.model == "h100" && device.capacity["gpu.example.com"].memory == quantity("80Gi")')
    assert selector.matches("gpu.example.com", {"model": "h100"}, {"memory": "80Gi"}, None)
    assert selector.matches("x", {"gpu.example.com/model": "h100"}, {"gpu.example.com/memory": Fraction(80 << 30)})
    assert not selector.matches("gpu.example.com", {"model": "a100"}, {"memory": "80Gi"})


def test_a_name_without_a_domain_belongs_to_the_driver() -> None:
    selector = DeviceSelector("device.attributes[device.driver].size() == 2 && device.attributes.size() == 2")
    assert selector.matches("d", {"a": 1, "d/b": 2, "other/c": 3}, {})


@pytest.mark.parametrize(
    ("allow_multiple", "expected"),
    [(None, False), (False, False), (True, True)],
)
def test_allow_multiple_allocations_is_false_unless_set(allow_multiple: bool | None, expected: bool) -> None:
    selector = DeviceSelector("device.allowMultipleAllocations")
    assert selector.matches("d", {}, {}, allow_multiple) is expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("device.driver == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("device.nope", "undefined field 'nope'"),
        ("nope", "undeclared reference to 'nope' (in container '')"),
        ("1 +", "Syntax error"),
        ('"abc', "Syntax error"),
        ("[1, 2]", "must evaluate to bool or the unknown type, not list(int)"),
        ('"x".matches("(")', "invalid matches argument"),
        ('int("x") == 1', "program instantiation failed"),
        ("(" * 300 + "true" + ")" * 300, "recursion limit exceeded"),
    ],
)
def test_a_broken_expression_says_what_is_wrong(expression: str, message: str) -> None:
    with pytest.raises(CelError) as caught:
        DeviceSelector(expression)
    assert message in str(caught.value)


def test_the_place_of_a_compile_error_is_marked() -> None:
    with pytest.raises(CelError) as caught:
        DeviceSelector("true &&\n nope")
    assert str(caught.value) == (
        "compilation failed: ERROR: <input>:2:2: undeclared reference to 'nope' (in container '')\n |  nope\n | .^"
    )


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"{GPU}.nope == 1", "no such key: nope"),
        ("lists.range(2000).all(x, lists.range(1000).all(y, x + y >= 0))", "actual cost limit exceeded"),
        (f"{GPU}.model", "could not be converted to bool"),
        (f"{GPU}.model > 1", "no such overload"),
    ],
)
def test_a_failed_evaluation_says_why(expression: str, message: str) -> None:
    with pytest.raises(CelError) as caught:
        DeviceSelector(expression).matches("gpu.example.com", {"model": "h100"}, {})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "9" * 9000 + " > 0",
        f'int(device.driver + "{"9" * 9000}") > 0',
        f'"x".matches("x{{{"9" * 5000}}}")',
        f'"%.{"9" * 5000}f".format([1.5]) == ""',
        f'semver("1.2.{"9" * 5000}").patch() == 0',
        f'quantity("{"9" * 5000}").isInteger()',
        'timestamp(0).getHours("99:99") == 1',
        'quantity("1e999").asApproximateFloat() < 0.0',
        'string(duration("1ns")) == "0.000000001"',
    ],
    ids=range(9),
)
def test_extreme_values_do_not_match_and_do_not_crash(expression: str) -> None:
    with contextlib.suppress(CelError):
        assert not DeviceSelector(expression).matches("1", {}, {})


def test_a_long_chain_of_operators_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(CelError):
        DeviceSelector(" + ".join(["1"] * 3000) + " > 0").matches("d", {}, {})


def test_a_long_chain_of_optional_maps_is_refused() -> None:
    with pytest.raises(CelError, match="too large"):
        DeviceSelector("optional.of(1)" + ".optMap(x, x)" * 500 + ".hasValue()")


def test_patterns_that_make_others_backtrack_are_quick() -> None:
    assert not DeviceSelector(f'{GPU}.model.matches("^(a+)+$")').matches(
        "gpu.example.com", {"model": "a" * 63 + "!"}, {}
    )


def test_releases_differ() -> None:
    loop = f'{GPU}.model.exists(m, m == "h100")'
    assert DeviceSelector(loop, V1_37).matches("gpu.example.com", {"model": ["h100"]}, {})
    with pytest.raises(CelError, match="cannot be range of a comprehension"):
        DeviceSelector(loop, V1_36)
    assert DeviceSelector(f'{GPU}.model.includes("h100")', V1_36).matches("gpu.example.com", {"model": "h100"}, {})
    with pytest.raises(CelError, match="undeclared reference to 'includes'"):
        DeviceSelector(f'{GPU}.model.includes("h100")', V1_34)


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(CelError, match="semantic version"):
        parse_version("1.2")


def test_a_prepared_device_is_evaluated_by_several_selectors() -> None:
    device = Device("d", {"a": 1}, {"c": "1"})
    assert DeviceSelector('device.attributes["d"].a == 1').matches_device(device)
    assert not DeviceSelector('device.attributes["d"].a == 2').matches_device(device)
