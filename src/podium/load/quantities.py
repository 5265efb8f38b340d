"""Resource lists on their way in: every quantity is readable, not negative, and no finer than a thousandth."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from podium.errors import QuantityError
from podium.objects import Quantity, ResourceList
from podium.quantity import format_quantity, parse_quantity

# A cluster has few distinct quantities; the bound is for input that is not a cluster.
_REMEMBERED = 100_000


class _Stored(dict[Quantity, Quantity]):
    """Quantity as written -> quantity as the API server stores it, which mostly is the same."""

    def __missing__(self, quantity: Quantity) -> Quantity:
        amount = parse_quantity(quantity)
        if amount < 0:
            raise QuantityError(f"{quantity!r} is negative; a quantity must be zero or more")
        millis = amount * 1000
        stored = quantity if millis.denominator == 1 else format_quantity(Fraction(ceil(millis), 1000))
        if len(self) < _REMEMBERED:
            self[quantity] = stored
        return stored


_stored = _Stored()


def check_quantity(quantity: Quantity) -> None:
    """QuantityError for what is not a quantity, or a negative one."""
    _stored[quantity]


def stored(resources: ResourceList) -> ResourceList:
    """The resource list as the API server stores it: amounts finer than a thousandth are rounded up to it.

    The same dict when nothing changes.
    """
    for quantity in resources.values():
        if _stored[quantity] != quantity:
            return {name: _stored[quantity] for name, quantity in resources.items()}
    return resources
