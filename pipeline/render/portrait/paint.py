"""A small vector painter on OpenCV: smooth outlines, gradients, soft shadows, layers with alpha.

Everything is drawn in *design units* (the portrait is 512 × 512 of them, y down), so one drawing
serves every picture size. A layer keeps premultiplied BGRA, which makes blending one multiplication
and one addition (Porter and Duff, "Compositing digital images", SIGGRAPH 1984).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]
"""Blue, green, red, 0 … 255."""

Points = Sequence[tuple[float, float]]

Path = npt.NDArray[np.float64]
"""Points of an outline in design units, shape (n, 2)."""

Layer = npt.NDArray[np.uint8]
"""Premultiplied BGRA, shape (height, width, 4)."""

_Field = npt.NDArray[np.float32]
_Numbers = npt.NDArray[np.floating]

SUBPIXEL_BITS = 4
"""Fractional bits OpenCV keeps of a point's coordinates: edges move smoothly, not pixel by pixel."""


def hex_colour(code: str) -> Colour:
    """`"#RRGGBB"` as a colour."""
    return int(code[5:7], 16), int(code[3:5], 16), int(code[1:3], 16)


def spline(points: Points, *, closed: bool = False, steps: int = 10) -> Path:
    """A Catmull-Rom curve through the points: shape ((n - 1) * steps + 1, 2), or (n * steps, 2) closed."""
    knots = np.array(points, np.float64)
    if closed:
        knots = np.concatenate((knots[-1:], knots, knots[:2]))
    else:
        knots = np.concatenate((2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]))
    path: Path = _catmull_rom(len(knots), steps, closed) @ knots
    return path


@lru_cache(maxsize=64)
def _catmull_rom(knots: int, steps: int, closed: bool) -> Path:
    """The matrix from knots, one beyond each end, to points on the curve."""
    t = np.arange(steps) / steps
    before, start = -t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3
    end, after = t + 4 * t**2 - 3 * t**3, t**3 - t**2
    pieces = knots - 3
    matrix = np.zeros((pieces * steps + (not closed), knots))
    for i in range(pieces):
        matrix[i * steps : (i + 1) * steps, i : i + 4] = 0.5 * np.stack((before, start, end, after), axis=1)
    if not closed:
        matrix[-1, -2] = 1.0
    return matrix


def mirrored(half: Points, axis: float) -> Points:
    """A symmetric outline from its right half, given from top to bottom as offsets from the axis."""
    right = [(axis + x, y) for x, y in half]
    left = [(axis - x, y) for x, y in reversed(half)]
    return right + [point for point in left if point not in right]


def shifted(path: Path, right: float, down: float) -> Path:
    moved: Path = path + np.array((right, down))
    return moved


def ellipse(centre: tuple[float, float], radii: tuple[float, float], steps: int = 48) -> Path:
    path: Path = _unit_circle(steps) * radii + centre
    return path


@lru_cache(maxsize=8)
def _unit_circle(steps: int) -> Path:
    angles = np.arange(steps) * (2 * np.pi / steps)
    return np.stack((np.cos(angles), np.sin(angles)), axis=1)


def brush(line: Path, widths: Sequence[float]) -> Path:
    """The outline of a stroke along `line` whose width runs evenly through `widths`."""
    ahead = np.empty_like(line)
    ahead[1:-1] = line[2:] - line[:-2]
    ahead[0], ahead[-1] = line[1] - line[0], line[-1] - line[-2]
    ahead /= np.maximum(np.hypot(ahead[:, :1], ahead[:, 1:]), 1e-6)
    half = _half_widths(len(line), tuple(widths))
    across = np.concatenate((-ahead[:, 1:], ahead[:, :1]), axis=1) * half
    return np.concatenate((line + across, (line - across)[::-1]))


@lru_cache(maxsize=256)
def _half_widths(count: int, widths: tuple[float, ...]) -> Path:
    at, knots = np.linspace(0.0, 1.0, count), np.linspace(0.0, 1.0, len(widths))
    return np.interp(at, knots, widths)[:, None] / 2


def fixed_point(path: Path, scale: float, origin: tuple[float, float]) -> npt.NDArray[np.int32]:
    """A path as OpenCV's drawing functions take it with `shift=SUBPIXEL_BITS`.

    OpenCV counts from pixel centres, design units from edges: hence the half pixel.
    """
    pixels = (path - origin) * scale - 0.5
    return np.rint(pixels * (1 << SUBPIXEL_BITS)).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Linear:
    """Colours in even steps from `start` to `end`, continued flat beyond."""

    start: tuple[float, float]
    end: tuple[float, float]
    colours: Sequence[Colour]

    def at(self, x: _Numbers, y: _Numbers) -> _Field:
        dx, dy = self.end[0] - self.start[0], self.end[1] - self.start[1]
        along = ((x - self.start[0]) * dx + (y - self.start[1]) * dy) / (dx * dx + dy * dy)
        return _ramp(along, self.colours)


@dataclass(frozen=True, slots=True)
class Radial:
    """Colours in even steps from the centre to an ellipse of these radii, continued flat beyond."""

    centre: tuple[float, float]
    radii: tuple[float, float]
    colours: Sequence[Colour]

    def at(self, x: _Numbers, y: _Numbers) -> _Field:
        away = np.hypot((x - self.centre[0]) / self.radii[0], (y - self.centre[1]) / self.radii[1])
        return _ramp(away, self.colours)


Paint = Colour | Linear | Radial


def _ramp(position: _Numbers, colours: Sequence[Colour]) -> _Field:
    stops = np.linspace(0.0, 1.0, len(colours))
    channels = [np.interp(position, stops, [colour[c] for colour in colours]) for c in range(3)]
    return np.stack(channels, axis=-1).astype(np.float32)


class Canvas:
    """A layer being painted, covering `width` × `height` design units from `origin` on."""

    def __init__(
        self, width: float, height: float, scale: float, origin: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        self.scale = scale
        self.origin = origin
        self._pixels: _Field = np.zeros((round(height * scale), round(width * scale), 4), np.float32)

    def fill(
        self,
        path: Path,
        paint: Paint,
        *,
        opacity: float = 1.0,
        blur: float = 0.0,
        clip: Path | None = None,
        atop: bool = False,
    ) -> None:
        """Paint the inside of a path.

        blur: softness of its edge, standard deviation in design units. clip: only inside this path.
        atop: only where something is painted already, and as opaque as that is.
        """
        box = self._box(path, 3 * blur + 2)
        if box is None:
            return
        left, top, right, bottom = box
        mask = self._mask(path, box)
        if blur:
            mask = np.asarray(cv2.GaussianBlur(mask, (0, 0), blur * self.scale), np.float32)
        if clip is not None:
            mask *= self._mask(clip, box)
        below = self._pixels[top:bottom, left:right]
        cover = mask[..., None] * opacity
        source = self._colours(paint, box)
        ink = cover * below[..., 3:] if atop else cover
        below[..., :3] = source * ink + below[..., :3] * (1 - cover)
        if not atop:
            below[..., 3:] = cover + below[..., 3:] * (1 - cover)

    def layer(self) -> Layer:
        """What was painted, 8 bits a channel."""
        pixels = self._pixels.copy()
        pixels[..., 3] *= 255.0
        return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)

    def _box(self, path: Path, margin: float) -> tuple[int, int, int, int] | None:
        height, width = self._pixels.shape[:2]
        low = (path.min(axis=0) - margin - self.origin) * self.scale
        high = (path.max(axis=0) + margin - self.origin) * self.scale
        left, top = max(0, int(low[0])), max(0, int(low[1]))
        right, bottom = min(width, int(high[0]) + 1), min(height, int(high[1]) + 1)
        return (left, top, right, bottom) if left < right and top < bottom else None

    def _mask(self, path: Path, box: tuple[int, int, int, int]) -> _Field:
        left, top, right, bottom = box
        mask = np.zeros((bottom - top, right - left), np.uint8)
        origin = (self.origin[0] + left / self.scale, self.origin[1] + top / self.scale)
        points = fixed_point(path, self.scale, origin)
        cv2.fillPoly(mask, [points], 255, cv2.LINE_AA, SUBPIXEL_BITS)
        return mask.astype(np.float32) / 255.0

    def _colours(self, paint: Paint, box: tuple[int, int, int, int]) -> _Field:
        if isinstance(paint, tuple):
            return np.array(paint, np.float32)
        left, top, right, bottom = box
        x = (np.arange(left, right) + 0.5) / self.scale + self.origin[0]
        y = (np.arange(top, bottom) + 0.5) / self.scale + self.origin[1]
        return paint.at(*np.meshgrid(x, y))
