"""Python files that were sent to a worker: imported from memory, the newest ones first."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator

import pytest

from podium.sweep._inputs import SentModules, make_importable


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    finders = list(sys.meta_path)
    yield
    sys.meta_path[:] = finders
    for name in ("sent_one", "sent_two"):
        sys.modules.pop(name, None)


def test_files_that_were_sent_import_each_other() -> None:
    make_importable({"sent_one.py": b"from sent_two import VALUE", "sent_two.py": b"VALUE = 2"})
    assert importlib.import_module("sent_one").VALUE == 2


def test_those_of_a_later_sweep_take_the_place_of_earlier_ones() -> None:
    for value in (1, 2):
        make_importable({"sent_one.py": b"VALUE = %d" % value})
        assert value == importlib.import_module("sent_one").VALUE
    assert [type(finder) for finder in sys.meta_path].count(SentModules) == 1
    make_importable({})
    sys.modules.pop("sent_one")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("sent_one")


def test_an_error_shows_the_line_where_it_happened() -> None:
    make_importable({"sent_one.py": b"def run():\n    return 1 / 0  # here\n"})
    with pytest.raises(ZeroDivisionError) as raised:
        importlib.import_module("sent_one").run()
    assert "1 / 0  # here" in "".join(traceback.format_exception(raised.value))
