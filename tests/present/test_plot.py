"""Pictures: SVG without any library, PNG with one."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from builders import make_node
from podium.errors import InputError
from podium.present.plot import sweep_plot, time_label, to_svg, write_plot
from podium.sweep import Row, SweepResult
from podium.sweep._spec import Goal
from podium.timeline import Timeline, TimelineResult
from timeline.test_timeline import at, pod

SVG = "{http://www.w3.org/2000/svg}"


def result() -> TimelineResult:
    events = [at(5, "add", pod("p"), lifetime=60), at(5, "add", pod("q"), lifetime=60)]
    return Timeline([make_node("a", cpu="1")], events).run()


def test_an_svg_has_a_line_for_everything(tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    write_plot(result(), str(path))
    root = ET.parse(path).getroot()
    labels = [text.text for text in root.iter(f"{SVG}text")]
    assert {"active", "unschedulable", "cpu", "memory", "pods", "running pods", "nodes", "100%"} <= set(labels)
    lines = list(root.iter(f"{SVG}polyline"))
    assert len(lines) == 4 + 3 + 2
    assert all(len(line.attrib["points"].split()) == len(result().samples) for line in lines)


def test_the_same_samples_give_the_same_picture() -> None:
    assert to_svg(result().samples) == to_svg(result().samples)


def test_a_png_needs_a_library_and_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(InputError, match=r"needs matplotlib: pip install 'podium\[plot\]', or write a .svg"):
        write_plot(result(), str(tmp_path / "out.png"))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("out.gif", "a plot is a .svg or a .png, not .gif"),
        ("out", "not a file without a suffix"),
        ("no/out.svg", "no such file"),
    ],
)
def test_what_cannot_be_written_is_said(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        write_plot(result(), str(tmp_path / name))


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        write_plot(TimelineResult((), (), (), 0.0), "out.svg")


@pytest.mark.parametrize(
    ("seconds", "label"), [(0, "0s"), (119, "119s"), (120, "2m"), (5400, "1h30m"), (90000, "1d1h"), (86400, "1d")]
)
def test_times_are_short(seconds: float, label: str) -> None:
    assert time_label(seconds) == label


@pytest.mark.parametrize("values", [1, 2, 6, 7, 8, 9, 30])
def test_the_bars_of_a_sweep_are_drawn_for_any_number_of_values(values: int) -> None:
    for others in (1, 2, 9):
        points = [{"a": f"v{n % values}", "b": str(n // values)} for n in range(others * values)]
        rows = tuple(Row(n, point, {"m": n}) for n, point in enumerate(points))
        svg = sweep_plot(SweepResult(("a", "b"), rows, Goal("m", is_highest=True)))
        bars = [bar for bar in ET.fromstring(svg).iter(f"{SVG}rect") if bar.attrib["width"] == "12"]
        assert len(bars) == others * values


def test_each_of_eight_values_has_a_colour_of_its_own() -> None:
    rows = tuple(Row(n, {"a": str(n)}, {"m": n}) for n in range(8))
    svg = sweep_plot(SweepResult(("a",), rows, Goal("m", is_highest=True)))
    bars = [bar for bar in ET.fromstring(svg).iter(f"{SVG}rect") if bar.attrib["width"] == "12"]
    assert len({bar.attrib["fill"] for bar in bars}) == 8
