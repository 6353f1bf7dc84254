"""A waterfall: what a wait was made of, one row for each part."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.lab.plots import svg
from services.lab.plots.frame import WIDTH, number
from services.lab.plots.scale import Scale, ticks

_ROW = 24
_LABELS, _VALUES = 96, 64
"""Room for the names on the left, and for the last number on the right."""

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bar:
    """A row: from when to when it ran, and what of that was waited for."""

    name: str
    ran: Sequence[Span]
    waited: Span | None


def waterfall(title: str, bars: Sequence[Bar], total: float, x_label: str) -> str:
    """From 0 to `total`: thin is what ran, thick what was waited for, with its length beside it."""
    moments = [moment for bar in bars for span in bar.ran for moment in span]
    x = Scale(min([0.0, *moments]), max([total, *moments]), _LABELS, WIDTH - _VALUES)
    bottom = 8 + _ROW * len(bars)
    parts = []
    for tick in ticks(x.low, x.high, 8):
        parts.append(svg.line(x.at(tick), 4, x.at(tick), bottom, "grid"))
        parts.append(svg.text(number(tick), x.at(tick), bottom + 16, anchor="middle"))
    for row, bar in enumerate(bars):
        parts += _row(x, 8 + _ROW * row, bar)
    parts.append(svg.line(x.at(total), 4, x.at(total), bottom, "mark"))
    parts.append(svg.text(x_label, WIDTH - 4, bottom + 34, anchor="end"))
    waits = [f"{bar.name} {number(bar.waited[1] - bar.waited[0])}" for bar in bars if bar.waited]
    return svg.picture(title, f"{', '.join(waits)}; {number(total)} in all.", WIDTH, bottom + 42, parts)


def _row(x: Scale, y: int, bar: Bar) -> list[str]:
    parts = [svg.text(bar.name, _LABELS - 8, y + 14, anchor="end")]
    for start, end in bar.ran:
        told = f"{bar.name} ran from {number(start)} to {number(end)}"
        parts.append(svg.box(x.at(start), y + 8, _width(x, start, end), 4, "fill-faint", told))
    if bar.waited is not None:
        start, end = bar.waited
        told = f"{bar.name}: {number(end - start)}"
        parts.append(svg.box(x.at(start), y + 3, _width(x, start, end), 14, "fill-first", told))
        parts.append(svg.text(number(end - start), x.at(end) + 5, y + 14))
    return parts


def _width(x: Scale, start: float, end: float) -> float:
    """What took no time is still seen."""
    return max(1.0, x.at(end) - x.at(start))
