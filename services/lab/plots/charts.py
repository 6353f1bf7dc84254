"""Plots with two axes: a distribution, points, courses over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from services.lab.plots import svg
from services.lab.plots.frame import HEIGHT, WIDTH, framed, legend, number
from services.lab.plots.scale import step

_BINS = 30
_FEWEST = 5.0
"""Turns that the axis of a distribution reaches to at least: parts of a turn are none."""

_CLASSES = ("first", "second", "third")
"""Series differ by shape as well: not everybody tells colours apart."""


@dataclass(frozen=True, slots=True)
class Point:
    """`told` is shown when it is pointed at."""

    x: float
    y: float
    told: str = ""


def histogram(
    title: str, values: Sequence[float], x_label: str, marks: Mapping[str, float], limit: float | None
) -> str:
    """How often each range of values; `marks` and the limit are drawn at their values. Needs a value."""
    low, high = min(values), max([*values, *marks.values()])
    width = step(max(high - low, 1.0), _BINS)
    first = np.floor(low / width)
    edges = (first + np.arange(np.floor(high / width) - first + 2)) * width
    counts, _ = np.histogram(values, edges)
    shown = [float(edges[0]), float(edges[-1]), *([] if limit is None else [limit])]
    frame = framed(shown, [_FEWEST, *map(float, counts)], x_label, "turns")
    parts = frame.axes()
    for begin, end, count in zip(edges[:-1], edges[1:], counts, strict=True):
        left, top = frame.x.at(begin) + 0.5, frame.y.at(count)
        told = f"{number(begin)} to {number(end)}: {count}"
        parts.append(
            svg.box(left, top, frame.x.at(end) - left - 0.5, frame.y.at(0) - top, "fill-first", told)
        )
    lines = [("mark", name, value) for name, value in marks.items()]
    lines += [] if limit is None else [("limit", "limit", limit)]
    for row, (class_, name, value) in enumerate(lines):
        x, y = frame.x.at(value), 30 + 13 * row
        beside, anchor = (-4, "end") if x > WIDTH / 2 else (4, "start")
        parts.append(svg.line(x, y - 9, x, frame.y.at(0), class_))
        parts.append(svg.text(f"{name} {number(value)}", x + beside, y, anchor=anchor))
    told = "; ".join(f"{name} {number(value)}" for _, name, value in lines)
    return svg.picture(title, f"{len(values)} turns; {told}.", WIDTH, HEIGHT, parts)


def scatter(
    title: str,
    series: Mapping[str, Sequence[Point]],
    x_label: str,
    y_label: str,
    limits: Mapping[str, float],
    *,
    span: tuple[float, float],
) -> str:
    """Points of up to three series; `span` is what the x axis shows at least."""
    points = [point for each in series.values() for point in each]
    ys = [point.y for point in points] + list(limits.values())
    frame = framed([*span, *(point.x for point in points)], ys, x_label, y_label)
    parts = [*frame.axes(), *frame.across(limits)]
    for kind, each in zip(_CLASSES, series.values(), strict=False):
        for point in each:
            place = f"translate({frame.x.at(point.x):.1f} {frame.y.at(point.y):.1f})"
            parts.append(svg.tag("g", _mark(kind), svg.tag("title", escape(point.told)), transform=place))
    parts += legend(list(series), [_mark(kind) for kind, _ in zip(_CLASSES, series, strict=False)])
    counts = "; ".join(f"{len(each)} {name}" for name, each in series.items())
    return svg.picture(title, f"{counts}.", WIDTH, HEIGHT, parts)


def courses(
    title: str,
    series: Mapping[str, Sequence[Point]],
    x_label: str,
    y_label: str,
) -> str:
    """Lines through the points of up to three series, each with at least one."""
    points = [point for each in series.values() for point in each]
    xs, ys = [point.x for point in points], [point.y for point in points]
    frame = framed(xs, ys, x_label, y_label)
    parts = frame.axes()
    for kind, each in zip(_CLASSES, series.values(), strict=False):
        path = " ".join(f"{frame.x.at(point.x):.1f},{frame.y.at(point.y):.1f}" for point in each)
        parts.append(svg.tag("polyline", points=path, class_=f"stroke-{kind}"))
    dashes = [svg.line(-8, 0, 6, 0, f"stroke-{kind}") for kind, _ in zip(_CLASSES, series, strict=False)]
    parts += legend(list(series), dashes)
    told = "; ".join(
        f"{name}: {number(each[0].y)} at first, {number(each[-1].y)} at last, "
        f"{number(max(point.y for point in each))} at most"
        for name, each in series.items()
    )
    return svg.picture(title, f"{told}.", WIDTH, HEIGHT, parts)


def _mark(kind: str) -> str:
    """At the origin."""
    if kind == "first":
        return svg.tag("circle", r=4, class_="fill-first")
    if kind == "second":
        return svg.box(-4, -4, 8, 8, "fill-second")
    return svg.tag("path", d="M0 -5 L5 4 L-5 4 Z", class_="fill-third")
