"""The mouth: lips, teeth, tongue and the dark behind them, as the pose shapes them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.events import Pose
from pipeline.render.portrait import palette as c
from pipeline.render.portrait.paint import Canvas, Linear, Path, brush, ellipse, shifted, spline
from pipeline.render.portrait.sketch import Area, Sketch, stepped

AREA = Area(200.0, 276.0, 312.0, 348.0)
"""What is redrawn for every frame."""

OPENING = 31.0
"""Height between the lips at jaw 1, in design units, before the chin's drop stretches it."""

_ACROSS = np.linspace(-1.0, 1.0, 25)

_Row = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LipCurves:
    """The four edges of the lips, from the picture's left to its right."""

    upper_outer: Path
    upper_inner: Path
    lower_inner: Path
    lower_outer: Path
    gap: float
    """Height between the lips in the middle."""


def lip_curves(pose: Pose) -> LipCurves:
    """Where a pose puts the lips."""
    spread, round_ = max(0.0, pose.width), max(0.0, -pose.width)
    press, tuck = pose.press, pose.tuck
    smile = pose.smile
    # the chin's drop stretches wide openings most; this makes up for it: jaw 0.5 looks half open
    gap = OPENING * max(0.0, pose.jaw * (1 - press)) ** 0.8
    wide = 33.5 + 6.5 * spread - 12 * round_ + 4.5 * smile + 1.5 * press - 1.0 * pose.jaw
    corner_lift = 12.0 * smile - 1.0 * pose.jaw - 1.2 * press
    t = _ACROSS
    middle = 1 - np.abs(t) ** 2.8
    corners = corner_lift * (0.3 - np.abs(t) ** 1.8)

    rise = 0.16 * gap + 2.4 * tuck + 0.8 * round_ * pose.jaw
    seam = c.MOUTH_LINE + corners + 0.5 * np.cos(t * 6) * (1 - t**2)
    upper_inner = seam - rise * middle**0.8
    drop = 0.84 * gap * middle**0.55
    # under the teeth for f and v: the lower lip comes up to meet their edge
    lower_inner = np.maximum(upper_inner, seam + drop * (1 - 0.75 * tuck) + (1.6 * tuck) * middle)

    thin = (1 - 0.45 * press) * (1 + 0.3 * round_ - 0.1 * spread)
    bow = 1 - 0.2 * np.exp(-((t / 0.13) ** 2))
    upper = 7.4 * thin * (1 - 0.12 * pose.jaw) * (1 - np.abs(t) ** 1.7) * bow
    lower = 9.2 * thin * (1 - 0.45 * tuck) * (1 - np.abs(t) ** 2.4)
    inner_x = c.AXIS + wide * t
    outer_x = c.AXIS + (wide + 2.2) * t
    return LipCurves(
        _curve(outer_x, upper_inner - upper),
        _curve(inner_x, upper_inner),
        _curve(inner_x, lower_inner),
        _curve(outer_x, lower_inner + lower),
        float(np.max(lower_inner - upper_inner)),
    )


_STEP = 1 / 128
"""Of a pose: the lips move by less than a sixth of a picture's pixel."""


def shown(pose: Pose) -> Pose:
    """What of a pose the mouth shows, in steps too small to be seen."""
    fields = ("jaw", "width", "press", "tuck", "tongue", "smile")
    return Pose(**{field: stepped(getattr(pose, field), _STEP) for field in fields})


class Mouth:
    """Draws lips and what is between them; one instance serves any number of threads."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        cavity = Canvas(AREA.right - AREA.left, AREA.bottom - AREA.top, scale, origin=AREA[:2])
        depth = Linear((0, c.MOUTH_LINE - 4), (0, c.MOUTH_LINE + 26), (c.MOUTH_DEEP, c.MOUTH_INSIDE))
        cavity.fill(ellipse((c.AXIS, c.MOUTH_LINE), (200, 200)), depth)
        self._cavity = cavity.layer()
        self._cavity.setflags(write=False)

    def draw(self, sketch: Sketch, pose: Pose) -> None:
        lips = lip_curves(pose)
        self._lips(sketch, lips, pose)
        if lips.gap > 0.3:
            inside = Sketch(self._cavity.copy(), self._scale, sketch.origin)
            _fill_cavity(inside, lips, pose)
            sketch.reveal(inside, _between(lips.upper_inner, lips.lower_inner))
        self._seam(sketch, lips, pose)

    def _lips(self, sketch: Sketch, lips: LipCurves, pose: Pose) -> None:
        below = shifted(lips.lower_outer[5:-5], 0, 2.5)
        sketch.glaze(brush(below, (2, 5, 2)), c.SKIN_DEEP, 0.5, blur=1.8)
        sketch.fill(_between(lips.lower_inner, lips.lower_outer), c.LIP_LOWER)
        sketch.fill(_between(lips.upper_outer, lips.upper_inner), c.LIP_UPPER)
        shine = (lips.lower_inner[6:-6] + lips.lower_outer[6:-6]) / 2
        sketch.glaze(brush(shine, (1, 3.6, 3.6, 1)), c.LIP_GLINT, 0.75 - 0.4 * pose.press, blur=1.2)

    def _seam(self, sketch: Sketch, lips: LipCurves, pose: Pose) -> None:
        closed = max(0.0, 1 - lips.gap / 2.5)
        if closed:
            line = (lips.upper_inner + lips.lower_inner) / 2
            sketch.glaze(brush(line, (1.2, 1.4, 1.9, 1.4, 1.2)), c.LIP_LINE, 0.9 * closed)
        for x, y in (lips.upper_inner[0], lips.upper_inner[-1]):
            sketch.glaze(ellipse((x, y), (1.8, 1.6), 16), c.LIP_LINE, 0.5, blur=1.0)


def _fill_cavity(inside: Sketch, lips: LipCurves, pose: Pose) -> None:
    floor = float(np.max(lips.lower_inner[:, 1]))
    reach = float(lips.upper_inner[-1, 0]) - c.AXIS
    _tongue(inside, floor, reach, pose)
    # the upper teeth stay with the skull; rounded lips hide more of them
    edge = c.MOUTH_LINE + 5.0 - 1.5 * pose.jaw - 2.5 * max(0.0, -pose.width)
    _upper_teeth(inside, edge, 0.86 * reach, pose.smile)
    shadow = min(6.0, 0.5 * lips.gap)
    under_lip = brush(lips.upper_inner, (shadow, 0.8 * shadow, shadow))
    inside.glaze(under_lip, c.LIP_LINE, 0.45, blur=0.2 * shadow)
    _tongue_tip(inside, edge, reach, pose)


def _upper_teeth(inside: Sketch, edge: float, reach: float, smile: float) -> None:
    x, half = c.AXIS, min(26.0, reach)
    side, corner = -0.6 - 1.5 * smile, -4 - 5 * smile
    # from the right along the edge, and back behind the lip
    row = ((half, corner), (0.6 * half, side), (0, 0), (-0.6 * half, side), (-half, corner))
    edges = [(x + dx, edge + dy) for dx, dy in (*row, (-half, -18), (half, -18))]
    inside.fill(spline(edges, closed=True, steps=6), c.TEETH)


def _tongue(inside: Sketch, floor: float, reach: float, pose: Pose) -> None:
    x, half = c.AXIS, min(21.0, 0.74 * reach)
    top = floor - 9.0 - 8.0 * pose.tongue - 2.0 * pose.jaw
    body = [
        (x - half, floor + 4),
        (x - 0.75 * half, top + 3),
        (x, top),
        (x + 0.75 * half, top + 3),
        (x + half, floor + 4),
        (x, floor + 14),
    ]
    inside.fill(spline(body, closed=True, steps=8), c.TONGUE)
    inside.glaze(ellipse((x - 2, top + 5), (0.5 * half, 3), 24), c.TONGUE_LIGHT, 0.6, blur=1.5)


def _tongue_tip(inside: Sketch, edge: float, reach: float, pose: Pose) -> None:
    out = float(np.clip((pose.tongue - 0.6) / 0.4, 0, 1))
    if not out:
        return
    half = min(17.0, reach * 0.6)
    tip = ellipse((c.AXIS, edge + 3.5), (half, 6.0), 28)
    inside.glaze(tip, c.TONGUE, out)
    inside.glaze(ellipse((c.AXIS - 1, edge + 2.5), (half * 0.6, 2), 20), c.TONGUE_LIGHT, 0.7 * out, blur=1.0)


def _curve(x: _Row, y: _Row) -> Path:
    return np.stack((x, y), axis=1)


def _between(top: Path, bottom: Path) -> Path:
    return np.concatenate((top, bottom[::-1]))
