"""Go's random numbers: a seed gives what `math/rand` gives for it, so that a study made in Go can be repeated.

The generator adds the numbers 607 and 273 places back, modulo 2^64. Go starts it from numbers that it made itself, 7.8
trillion steps after a start with seed 1. One step is linear, so many of them are a power of a polynomial.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np

LENGTH, TAP = 607, 273
DISCARDED = 7_800_000_000_000
WORD, PRIME = (1 << 64) - 1, (1 << 31) - 1


class GoRandom:
    """A `rand.Rand` of a seed: the draws of it that are named here, by Go's rules."""

    def __init__(self, seed: int) -> None:
        mixed = zip(_words(seed, 40, 20), _discarded(), strict=True)
        self._numbers, self._at = [each ^ start for each, start in mixed], 0

    def int63(self) -> int:
        """A number below 2^63."""
        self._at -= 1
        here = (self._at + LENGTH - TAP) % LENGTH
        self._numbers[here] = (self._numbers[here] + self._numbers[self._at % LENGTH]) & WORD
        return self._numbers[here] & WORD >> 1

    def intn(self, below: int) -> int:
        """A number below another one, which is at most 2^31 - 1."""
        drawn, most = self.int63() >> 32, PRIME - (1 << 31) % below
        while drawn > most:
            drawn = self.int63() >> 32
        return drawn % below

    def perm(self, number: int) -> list[int]:
        """The numbers below another one in random order."""
        found: list[int] = []
        for each in range(number):
            place = self.intn(each + 1)
            found.append(each)
            found[each], found[place] = found[place], each
        return found

    def shuffle(self, items: list) -> None:
        """Bring items into random order."""
        for last in range(len(items) - 1, 0, -1):
            place = self._int31n(last + 1)
            items[last], items[place] = items[place], items[last]

    def _int31n(self, below: int) -> int:
        drawn = (self.int63() >> 31) * below
        while drawn % (1 << 32) < (1 << 32) % below:
            drawn = (self.int63() >> 31) * below
        return drawn >> 32


def _words(seed: int, *shifts: int) -> Iterator[int]:
    """The numbers a seed starts with: three of a linear congruential generator make one."""
    drawn, numbers = seed % PRIME or 89482311, []
    for _ in range(20 + 3 * LENGTH):
        drawn = drawn * 48271 % PRIME
        numbers.append(drawn)
    for high, middle, low in zip(numbers[20::3], numbers[21::3], numbers[22::3], strict=True):
        yield (high << shifts[0] ^ middle << shifts[1] ^ low) & WORD


@cache
def _discarded() -> list[int]:
    """The generator's numbers after so many steps from seed 1, by their places."""
    places = [(LENGTH - TAP - step) % LENGTH for step in range(1 - LENGTH, 1)]
    first = np.array([*_words(1, 20, 10)], dtype=np.uint64)[places]
    step, power = np.array([0, 1], np.uint64), np.array([1], np.uint64)
    for bit in reversed(f"{DISCARDED:b}"):
        power = _product(power, step) if bit == "1" else power
        step = _product(step, step)
    found = [0] * LENGTH
    for number in range(LENGTH):
        found[(places[number] - DISCARDED) % LENGTH] = int((power * first).sum(dtype=np.uint64))
        power = _product(power, np.array([0, 1], np.uint64))
    return found


def _product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Two polynomials multiplied, with x^607 = x^334 + 1."""
    product = np.convolve(one, other)
    product = np.concatenate([product, np.zeros(max(LENGTH - len(product), 0), np.uint64)])
    while len(product) > LENGTH:
        low, high = product[:LENGTH].copy(), product[LENGTH:]
        product = np.concatenate([low, np.zeros(max(len(high) - TAP, 0), np.uint64)])
        product[: len(high)] += high
        product[LENGTH - TAP : LENGTH - TAP + len(high)] += high
    return product
