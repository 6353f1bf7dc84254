"""What all plots with two axes have in common: their axes, grid, limits and legend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.lab.plots import svg
from services.lab.plots.scale import Scale, rounded, ticks

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 700, 34, 216


@dataclass(frozen=True, slots=True)
class Frame:
    """A field to draw in. Labels name the quantity and its unit."""

    x: Scale
    y: Scale
    x_label: str
    y_label: str

    def axes(self) -> list[str]:
        """To be drawn first: marks lie on top."""
        parts = []
        for tick in ticks(self.y.low, self.y.high):
            parts.append(svg.line(_LEFT, self.y.at(tick), _RIGHT, self.y.at(tick), "grid"))
            parts.append(svg.text(number(tick), _LEFT - 6, self.y.at(tick) + 4, anchor="end"))
        for tick in ticks(self.x.low, self.x.high, 8):
            parts.append(svg.line(self.x.at(tick), _BOTTOM, self.x.at(tick), _BOTTOM + 5, "axis"))
            parts.append(svg.text(number(tick), self.x.at(tick), _BOTTOM + 20, anchor="middle"))
        parts.append(svg.line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"))
        parts.append(svg.text(self.x_label, _RIGHT, _BOTTOM + 38, anchor="end"))
        parts.append(svg.text(self.y_label, 4, 14))
        return parts

    def across(self, limits: Mapping[str, float]) -> list[str]:
        """Limits of y, each with its name."""
        return [
            part
            for name, value in limits.items()
            if self.y.low <= value <= self.y.high
            for part in (
                svg.line(_LEFT, self.y.at(value), _RIGHT, self.y.at(value), "limit"),
                svg.text(name, _RIGHT, self.y.at(value) - 4, class_="limit-label", anchor="end"),
            )
        ]


def framed(xs: Sequence[float], ys: Sequence[float], x_label: str, y_label: str) -> Frame:
    """A frame that all points fit into, and 0 on the y axis."""
    x_low, x_high = min(xs, default=0.0), max(xs, default=1.0)
    y_low, y_high = rounded(min([*ys, 0.0]), max([*ys, 0.0]))
    x = Scale(x_low, x_high if x_high > x_low else x_low + 1, _LEFT, _RIGHT)
    return Frame(x, Scale(y_low, y_high, _BOTTOM, _TOP), x_label, y_label)


def legend(names: Sequence[str], marks: Sequence[str]) -> list[str]:
    """Names beside their marks, above the field, from the right."""
    parts: list[str] = []
    right = float(_RIGHT)
    for name, mark in reversed(list(zip(names, marks, strict=True))):
        right -= 7.0 * len(name)
        parts.append(svg.text(name, right, 14))
        parts.append(svg.tag("g", mark, transform=f"translate({right - 9:.1f} 10)"))
        right -= 28
    return parts


def number(value: float) -> str:
    """As short as it can be written."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
