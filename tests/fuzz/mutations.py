"""Damage done to input: to values of JSON, and to the bytes of a file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import yaml

ODD_STRINGS = (
    "",
    " ",
    "-",
    "~",
    "null",
    "NaN",
    "0x10",
    "1_000",
    "1e400",
    "-1",
    "9223372036854775808",
    "1.0000000000000000001",
    "1Ei",
    "99999999999Ei",
    "100m",
    "-5Gi",
    "1e-30",
    "a/b/c",
    "/",
    "=",
    "key=value:Effect",
    "..",
    "\0",
    "\x1b[31mred\x1b[0m",
    "a\nb\rc",
    "ümläut",
    "日本語",
    "💥" * 20,
    "\u202egnirts",
    "\ud800",
    "x" * 70_000,
    "2026-01-01T00:00:00Z",
    "9999-99-99T99:99:99Z",
)
ODD_NUMBERS = (0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**40, 0.5, -0.0, 1e308, 1e-308, 101)
ODD_VALUES: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": None}, [{}, {}], *ODD_NUMBERS)

Place = tuple[Any, Any]
"""A dict or list, and a key or index in it."""


def places(value: Any) -> list[Place]:
    """Every place in a value of JSON where something stands."""
    found: list[Place] = []
    waiting = [value]
    while waiting:
        inside = waiting.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ()
        for key in keys:
            found.append((inside, key))
            waiting.append(inside[key])
    return found


def mutated(document: Any, random: Random) -> Any:
    """A copy with one to four things wrong in it."""
    copy = deepcopy(document)
    for _ in range(random.randint(1, 4)):
        everywhere = places(copy)
        if everywhere:
            random.choice(MUTATIONS)(everywhere, *random.choice(everywhere), random)
    return copy


def _odd_value(everywhere: list[Place], inside: Any, key: Any, random: Random) -> None:
    inside[key] = random.choice(ODD_VALUES)


def _odd_string(everywhere: list[Place], inside: Any, key: Any, random: Random) -> None:
    inside[key] = random.choice(ODD_STRINGS)


def _absent(everywhere: list[Place], inside: Any, key: Any, random: Random) -> None:
    del inside[key]


def _elsewhere(everywhere: list[Place], inside: Any, key: Any, random: Random) -> None:
    """What stands in another place."""
    other, there = random.choice(everywhere)
    inside[key] = deepcopy(other[there])


def _nested(everywhere: list[Place], inside: Any, key: Any, random: Random) -> None:
    value = inside[key]
    for _ in range(random.choice((1, 2, 50, 900))):
        value = [value] if random.random() < 0.5 else {"a": value}
    inside[key] = value


def _repeated(everywhere: list[Place], inside: Any, key: Any, random: Random) -> None:
    if isinstance(inside, list):
        times = random.choice((1, 2, 300))
        inside += [deepcopy(inside[key]) for _ in range(times)]
    else:
        inside[f"{key}{random.choice(ODD_STRINGS[:30])}"] = inside[key]


def _renamed(everywhere: list[Place], inside: Any, key: Any, random: Random) -> None:
    if isinstance(inside, dict):
        inside[random.choice((key.upper(), key[:-1], random.choice(ODD_STRINGS)))] = inside.pop(key)


def _changed_text(everywhere: list[Place], inside: Any, key: Any, random: Random) -> None:
    if isinstance(inside[key], str) and inside[key]:
        at = random.randrange(len(inside[key]))
        inside[key] = inside[key][:at] + random.choice(ODD_STRINGS[:30]) + inside[key][at + 1 :]


def _scaled(everywhere: list[Place], inside: Any, key: Any, random: Random) -> None:
    if isinstance(inside[key], int | float):
        inside[key] *= random.choice((-1, 1000, 10**12, 0.001))


MUTATIONS: tuple[Callable[[list[Place], Any, Any, Random], None], ...] = (
    _odd_value,
    _odd_value,
    _odd_string,
    _odd_string,
    _absent,
    _elsewhere,
    _nested,
    _repeated,
    _renamed,
    _changed_text,
    _scaled,
)


def as_bytes(document: Any, random: Random) -> bytes:
    """The document as a file: mostly JSON, sometimes YAML, packed, in another encoding, or with damaged bytes."""
    way = random.random()
    text = json.dumps(document)
    if way < 0.1:
        # PyYAML's writer in C has no way to write half a character, its own one does.
        dumper = yaml.SafeDumper if "\\ud800" in text else getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        data = yaml.dump(document, Dumper=dumper).encode("utf-8", "surrogatepass")
    elif way < 0.15:
        data = text.encode(random.choice(("utf-16", "utf-8-sig", "utf-32")), "surrogatepass")
    else:
        data = text.encode()
    return damaged(data, random) if random.random() < 0.15 else data


def damaged(data: bytes, random: Random) -> bytes:
    """The bytes cut short, changed, repeated or packed."""
    at = random.randrange(len(data) + 1)
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: data[:at],
        lambda: data[:at] + bytes(random.randrange(256) for _ in range(random.randint(1, 8))) + data[at + 1 :],
        lambda: data[:at] + data[:at],
        lambda: gzip.compress(data, 1),
        lambda: gzip.compress(data, 1)[: random.randrange(100)],
        lambda: data[:at] + b"\0" * 10 + data[at:],
        lambda: data.replace(b"\n", b"\r\n"),
    )
    return random.choice(ways)()
