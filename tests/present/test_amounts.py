"""Amounts as people read them."""

from __future__ import annotations

import pytest

from podium.present.text import amount, share

AMOUNTS = {
    "whole cores": ("cpu", 4000, "4"),
    "parts of cores": ("cpu", 1250, "1.2"),
    "bytes": ("memory", 512, "512"),
    "mebibytes": ("memory", 200 << 20, "200Mi"),
    "gibibytes": ("memory", 3 << 29, "1.5Gi"),
    "many": ("memory", 5000 << 30, "4.9Ti"),
    "disks": ("ephemeral-storage", 1 << 40, "1Ti"),
    "huge pages": ("hugepages-2Mi", 4 << 20, "4Mi"),
    "devices": ("example.com/gpu", 8, "8"),
    "pods": ("pods", 550_000, "550,000"),
}


@pytest.mark.parametrize(("resource", "number", "text"), AMOUNTS.values(), ids=AMOUNTS)
def test_amount(resource: str, number: int, text: str) -> None:
    assert amount(resource, number) == text


@pytest.mark.parametrize(("number", "of", "text"), [(0, 4, "0%"), (1, 3, "33%"), (5, 4, "125%"), (1, 0, "-")])
def test_share(number: int, of: int, text: str) -> None:
    assert share(number, of) == text
