"""Conditions such as `pending > 0`, for pipelines: names of measures, numbers, and little more."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from podium.errors import InputError

LONGEST = 200

_COMPARE: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_COMPUTE: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """Comparisons of measures and numbers, joined by `and`, `or` and `not`; nothing else is ever run."""

    text: str
    _expression: ast.expr

    @classmethod
    def parse(cls, text: str, names: Collection[str]) -> Condition:
        """The condition about values of these names; InputError with what is wrong if it is none."""
        if len(text) > LONGEST:
            raise InputError(f"condition {text[:40]!r}... is longer than {LONGEST} characters")
        try:
            expression = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            raise InputError(f"condition {text!r} cannot be read; write one such as 'pending > 0'") from None
        if not isinstance(expression, ast.Compare | ast.BoolOp) and not _is_not(expression):
            raise InputError(f"condition {text!r} compares nothing; write one such as 'pending > 0'")
        _Evaluation(text, dict.fromkeys(names, 1.0)).truth(expression)
        return cls(text, expression)

    def holds(self, values: Mapping[str, float]) -> bool:
        """Whether it holds for these values."""
        return _Evaluation(self.text, values).truth(self._expression)

    def explained(self, values: Mapping[str, float]) -> str:
        """`pending is 4, before.pending is 2`: the values it speaks of."""
        names = [ast.unparse(node) for node in ast.walk(self._expression) if isinstance(node, ast.Name | ast.Attribute)]
        return ", ".join(f"{name} is {values[name]:.6g}" for name in dict.fromkeys(names) if name in values)


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


class _Evaluation:
    def __init__(self, text: str, values: Mapping[str, float]) -> None:
        self._text, self._values = text, values

    def truth(self, node: ast.expr) -> bool:
        """Whether it holds. Every part is evaluated: what is wrong in one is wrong on good days, too."""
        match node:
            case ast.BoolOp(op=ast.And()):
                return min(map(self.truth, node.values))
            case ast.BoolOp():
                return max(map(self.truth, node.values))
            case ast.UnaryOp(op=ast.Not()):
                return not self.truth(node.operand)
            case ast.Compare():
                return self._compared(node)
        raise self._refused(node, "where a comparison should be")

    def _compared(self, node: ast.Compare) -> bool:
        numbers = [self.number(part) for part in (node.left, *node.comparators)]
        compare = [_COMPARE.get(type(op)) for op in node.ops]
        if None in compare:
            raise InputError(f"condition {self._text!r}: compare with >, >=, <, <=, == or !=")
        pairs = zip(compare, numbers, numbers[1:], strict=False)
        return all(test is not None and test(one, other) for test, one, other in pairs)

    def number(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as value):
                return float(value)
            case ast.UnaryOp(op=ast.USub()):
                return -self.number(node.operand)
            case ast.BinOp() if type(node.op) in _COMPUTE:
                return self._computed(_COMPUTE[type(node.op)], self.number(node.left), self.number(node.right))
            case ast.Name() | ast.Attribute(value=ast.Name()):
                return self._value(ast.unparse(node))
        raise self._refused(node, "where a number should be")

    def _computed(self, compute: Callable[[float, float], float], one: float, other: float) -> float:
        try:
            return compute(one, other)
        except ZeroDivisionError:
            # What Go and the arrays of the engine say: no share of nothing is above or below anything.
            return math.nan

    def _value(self, name: str) -> float:
        if name not in self._values:
            known = ", ".join(key for key in self._values if "." not in key)
            raise InputError(f"condition {self._text!r}: {name!r} is not measured; there is {known}")
        return self._values[name]

    def _refused(self, node: ast.expr, where: str) -> InputError:
        return InputError(f"condition {self._text!r}: {ast.unparse(node)!r} {where}")
