"""The names of the current releases, oldest first, and how users write them."""

from __future__ import annotations

import re

VERSIONS: dict[str, str] = {
    "v1.29": "v1.29.15",
    "v1.30": "v1.30.14",
    "v1.31": "v1.31.14",
    "v1.32": "v1.32.13",
    "v1.33": "v1.33.13",
    "v1.34": "v1.34.10",
    "v1.35": "v1.35.8",
    "v1.36": "v1.36.4",
    "v1.37": "v1.37.1",
}
"""The very version of each release whose decisions were recorded to compare with."""

RELEASE_NAMES = tuple(VERSIONS)
NEWEST = RELEASE_NAMES[-1]

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:[.+-].*)?")


def release_order(name: str) -> tuple[int, ...]:
    """Sorts names such as v1.36, the oldest first."""
    return tuple(int(part) for part in name.removeprefix("v").split("."))


def is_at_least(release: str, other: str) -> bool:
    """Whether a release is another one or came after it."""
    return release_order(release) >= release_order(other)


def short_name(version: str) -> str | None:
    """`v1.36` of v1.36, 1.36 or v1.36.4-gke.100; None of what is no version."""
    found = _VERSION.fullmatch(version.strip())
    return None if found is None else f"v{int(found[1])}.{int(found[2])}"
