"""The Common Expression Language as kube-scheduler uses it to select devices.

from podium.cel import DeviceSelector

selector = DeviceSelector('device.driver == "gpu.example.com"')
selector.matches("gpu.example.com", {"model": "h100"}, {"memory": "80Gi"})
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from podium.cel import _conversion_library as conversions
from podium.cel import _kubernetes_library as kubernetes
from podium.cel import _standard_library as standard
from podium.cel import _string_library as strings
from podium.cel import _types as t
from podium.cel._checker import Checker, validate
from podium.cel._parser import parse
from podium.cel._planner import CostLimitError, Planner, Run
from podium.cel._syntax import Call, Expr, Fold, ListLiteral, walk
from podium.cel._types import BOOL, Library, Type, Wrapper, map_of
from podium.cel._values import DomainMap, EvalError, QuantityValue, Semver, Value
from podium.cel._work import MOST_WORK, WORK, Work, WorkLimitError
from podium.errors import CelError, CelTimeoutError

__all__ = [
    "V1_34",
    "V1_36",
    "V1_37",
    "AttributeValue",
    "CapacityValue",
    "CelError",
    "CelTimeoutError",
    "Device",
    "DeviceSelector",
    "Environment",
    "Evaluation",
    "Semver",
    "parse_version",
]


class Environment(NamedTuple):
    """How the expressions of a release differ from another's.

    `list_attributes`: attributes have the type dyn and not any, so that loops over them compile.
    `includes`: the function `value.includes(element)` is there.
    `includes_limit`: how many elements of a list it looks at before it fails; 0 for all.
    `newer_cel`: cel-go 0.29 and not 0.26, which reads names in backquotes and checks more arguments;
    a `google.protobuf.BoolValue` counts as a bool.
    """

    list_attributes: bool = True
    includes: bool = True
    includes_limit: int = 0
    newer_cel: bool = True

    @property
    def attribute_type(self) -> Type:
        """The type of an attribute of a device."""
        return t.DYN if self.list_attributes else t.ANY


V1_37 = Environment()
V1_36 = Environment(list_attributes=False, includes_limit=48, newer_cel=False)
# And v1.35.
V1_34 = Environment(list_attributes=False, includes=False, newer_cel=False)

_LIBRARY = standard.library.merged(
    conversions.library, strings.library, kubernetes.library,
)  # fmt: skip


@lru_cache(maxsize=8)
def functions_of(environment: Environment) -> Library:
    """All functions of a release."""
    library = _LIBRARY.merged(standard.cel_library(environment.newer_cel))
    if not environment.includes:
        return library
    return library.merged(standard.includes_library(environment.includes_limit))


def device_fields(environment: Environment) -> dict[str, Type]:
    """The fields of `device` and their types."""
    return {
        "driver": t.STRING,
        "allowMultipleAllocations": t.BOOL,
        "attributes": map_of(t.STRING, map_of(t.STRING, environment.attribute_type)),
        "capacity": map_of(t.STRING, map_of(t.STRING, t.QUANTITY)),
    }


AttributeScalar = bool | int | str | Semver
AttributeValue = AttributeScalar | list[bool] | list[int] | list[str] | list[Semver]
CapacityValue = str | int | float | Fraction

# Within these limits the cost limit is out of reach: the API admits no longer expressions, and an expression that names
# values, where a part may be evaluated several times, is short and has few parts.
_MAX_LENGTH = 10 * 1024
_MAX_NAMED_LENGTH = 1024
_MAX_NAMED_NODES = 512
_NANO = 10**9


class Device:
    """A device as expressions see it, created once and evaluated many times."""

    __slots__ = ("fields",)

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, AttributeValue],
        capacity: Mapping[str, CapacityValue],
        allow_multiple: bool | None = None,
    ) -> None:
        amounts = {name: _amount(value) for name, value in capacity.items()}
        self.fields: dict[str, Value] = {
            "driver": driver,
            "allowMultipleAllocations": bool(allow_multiple),
            "attributes": _by_domain(driver, attributes),
            "capacity": _by_domain(driver, amounts),
        }


def _amount(value: CapacityValue) -> QuantityValue:
    if isinstance(value, Fraction):
        return QuantityValue(int(value * _NANO), 0 if value.denominator == 1 else -9)
    return kubernetes.to_amount(value)


def _by_domain(driver: str, values: Mapping[str, Value]) -> DomainMap:
    """Values by domain and name; a name without a domain belongs to the driver's domain."""
    own: dict[str, Value] = {}
    grouped = DomainMap()
    for name, value in values.items():
        if "/" in name:
            domain, _, rest = name.partition("/")
            grouped.setdefault(domain, {})[rest] = value
        else:
            own[name] = value
    if own:
        grouped[driver] = own | grouped[driver]
    return grouped


def parse_version(text: str) -> Semver:
    """The version attribute of a device; raises CelError."""
    try:
        return kubernetes.parse_semver(text)
    except EvalError as error:
        raise CelError(f"parse semantic version: {error}") from None


class Evaluation(NamedTuple):
    """The result of a selector on one device."""

    matches: bool
    work: int
    """About how many microseconds it took, counted and not timed; 0 for an expression whose cost is not counted."""


class DeviceSelector:
    """A compiled selector. Raises CelError, with the position marked, for an expression that does not compile."""

    __slots__ = ("_run", "_slots", "expression")

    def __init__(self, expression: str, environment: Environment = V1_37) -> None:
        self.expression = expression
        self._run, count = _compile(expression, environment)
        self._slots: list[Value] = [None] * (count - 2)

    def matches(
        self,
        driver: str,
        attributes: Mapping[str, AttributeValue],
        capacity: Mapping[str, CapacityValue],
        allow_multiple: bool | None = None,
    ) -> bool:
        """Whether the device matches; raises CelError if the expression fails on it."""
        return self.matches_device(Device(driver, attributes, capacity, allow_multiple))

    def matches_device(self, device: Device) -> bool:
        """Whether a prepared device matches; raises CelError if the expression fails on it."""
        return self.evaluate(device).matches

    def evaluate(self, device: Device, most_work: float = MOST_WORK) -> Evaluation:
        """Whether a prepared device matches, and the work of finding out.

        Raises CelError if the expression fails on the device, CelTimeoutError if that takes more work than allowed.
        """
        slots = [0, device.fields, *self._slots]
        work = Work(most_work)
        token = WORK.set(work)
        try:
            result = self._run(slots)
        except EvalError as error:
            raise CelError(str(error)) from None
        except CostLimitError:
            raise CelError("operation cancelled: actual cost limit exceeded") from None
        except WorkLimitError:
            raise CelTimeoutError("the evaluation takes too long") from None
        except RecursionError:
            raise CelError("expression recursion limit exceeded") from None
        finally:
            WORK.reset(token)
        if type(result) is not bool:
            raise CelError("CEL result could not be converted to bool")
        return Evaluation(result, slots[0] + work.done)


@lru_cache(maxsize=4_096)
def _compile(expression: str, environment: Environment) -> tuple[Run, int]:
    """The closure of an expression and how many slots it needs."""
    try:
        root = parse(expression, escaped_names=environment.newer_cel)
        found = Checker(expression, functions_of(environment), device_fields(environment)).check(root)
        validate(expression, root)
        wrapped = isinstance(found, Wrapper) and not environment.newer_cel
        if wrapped or found not in (BOOL, environment.attribute_type):
            raise CelError(f"must evaluate to bool or the unknown type, not {found}")
        planner = Planner(not _is_cheap(expression, root), strict_optionals=environment.newer_cel)
        return planner.plan(root).run, planner.slots
    except RecursionError:
        raise CelError("compilation failed: expression recursion limit exceeded") from None


def _is_cheap(expression: str, root: Expr) -> bool:
    """Whether the cost limit is out of reach: no loops, and only calls whose cost is proportional to their
    arguments.
    """
    nodes = list(walk(root))
    names = [node for node in nodes if isinstance(node, Fold)]
    if any(not isinstance(node.range, ListLiteral) or node.range.elements for node in names):
        return False
    if len(expression) > (_MAX_NAMED_LENGTH if names else _MAX_LENGTH) or (names and len(nodes) > _MAX_NAMED_NODES):
        return False
    return all(overload.small for node in nodes if isinstance(node, Call) for overload in node.overloads)
