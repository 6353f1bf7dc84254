"""Plots: that marks lie where values are, and that they can be read without being seen."""

import re

import pytest

from services.lab.plots.charts import Point, courses, histogram, scatter
from services.lab.plots.waterfall import Bar, waterfall


def rectangles(svg: str, kind: str) -> list[dict[str, float]]:
    """x, y, width and height of all of a class."""
    found = re.findall(rf'<rect x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)" class="{kind}"', svg)
    return [dict(zip(("x", "y", "width", "height"), map(float, each), strict=True)) for each in found]


def description(svg: str) -> str:
    match = re.search("<desc>(.*?)</desc>", svg)
    assert match is not None
    return match[1]


def test_a_histogram_counts_every_value_once() -> None:
    values = [600.0, 610.0, 612.0, 900.0, 1000.0]
    svg = histogram("Waits", values, "ms", {"median": 612.0}, 1000.0)
    heights = [bar["height"] for bar in rectangles(svg, "fill-first")]
    told = [int(count) for count in re.findall(r"<title>[\d,.]+ to [\d,.]+: (\d+)</title>", svg)]
    assert sum(told) == len(values)
    assert sum(heights) == pytest.approx(max(heights) / max(told) * len(values), rel=0.01)
    assert "median 612; limit 1,000." in description(svg)


@pytest.mark.parametrize("values", [[700.0], [700.0, 700.0], [0.0, 5000.0]])
def test_a_histogram_of_anything(values: list[float]) -> None:
    svg = histogram("Waits", values, "ms", {"median": values[0]}, None)
    assert rectangles(svg, "fill-first")
    assert "nan" not in svg


def test_points_differ_by_shape_and_lie_by_value() -> None:
    gaps = [Point(0, 100, "early"), Point(10, 50, "<late>")]
    series: dict[str, list[Point]] = {"gap": gaps, "freeze": [Point(5, 200)], "stall": []}
    svg = scatter("Stumbles", series, "minutes", "ms", {"limit": 120.0}, span=(0, 10))
    places = re.findall(r'<g transform="translate\((\S+) (\S+)\)"><(\w+)', svg)
    (x0, y0, first), (x1, y1, _), (x2, y2, second), *_ = [(float(x), float(y), t) for x, y, t in places]
    assert x0 < x2 < x1
    assert y2 < y0 < y1
    assert (first, second) == ("circle", "rect")
    assert "&lt;late&gt;" in svg
    assert description(svg) == "2 gap; 1 freeze; 0 stall."
    assert 'class="limit"' in svg


def test_a_course_is_told_in_words() -> None:
    svg = courses("Memory", {"memory": [Point(0, 900), Point(1, 1200), Point(2, 950)]}, "minutes", "MB")
    assert description(svg) == "memory: 900 at first, 950 at last, 1,200 at most."
    (points,) = re.findall(r'points="([^"]+)"', svg)
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert heights[1] == min(heights)


def test_one_point_is_a_course() -> None:
    assert "nan" not in courses("Memory", {"memory": [Point(3, 900)]}, "minutes", "MB")


def test_a_waterfall_shows_what_ran_and_what_was_waited_for() -> None:
    bars = [
        Bar("asr", [(-80, 40)], (0, 0)),
        Bar("endpointing", [(0, 250)], (0, 250)),
        Bar("tts", [(250, 550)], None),
    ]
    svg = waterfall("The worst turn", bars, 600.0, "ms")
    thin, thick = rectangles(svg, "fill-faint"), rectangles(svg, "fill-first")
    assert (len(thin), len(thick)) == (3, 2)
    assert thick[0]["width"] == 1, "what took no time is still seen"
    assert thin[1]["x"] == thick[1]["x"]
    assert thin[2]["x"] == pytest.approx(thick[1]["x"] + thick[1]["width"], abs=0.2)
    assert description(svg) == "asr 0, endpointing 250; 600 in all."
