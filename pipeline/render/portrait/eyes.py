"""Eyes and brows."""

import numpy as np
import numpy.typing as npt

from pipeline.events import Pose
from pipeline.render.portrait import palette as c
from pipeline.render.portrait.paint import Canvas, Linear, Path, Radial, brush, ellipse, shifted, spline
from pipeline.render.portrait.sketch import Area, Sketch, Sprite, sprite_canvas, stepped

AREA = Area(162.0, 166.0, 350.0, 254.0)
"""What is redrawn for every frame."""

_BALL = Area(-32.0, -22.0, 32.0, 22.0)
"""Around the eye's middle."""

_GAZE_REACH = (8.5, 5.0)
"""How far the iris moves for a gaze of 1."""


_STEP, _BLINK_STEP = 1 / 64, 1 / 128
"""Of a pose: the eyes move by less than a sixth of a picture's pixel."""


def shown(pose: Pose) -> Pose:
    """What of a pose the eyes show, in steps too small to be seen."""
    fields = ("brows", "smile", "gaze_x", "gaze_y")
    rest = {field: stepped(getattr(pose, field), _STEP) for field in fields}
    return Pose(blink=stepped(pose.blink, _BLINK_STEP), **rest)


class Eyes:
    """Draws eyes and brows; one instance serves any number of threads."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._iris = _iris(scale)
        ball = Canvas(_BALL.right - _BALL.left, _BALL.bottom - _BALL.top, scale, origin=_BALL[:2])
        ball.fill(
            ellipse((0, 0), (60, 40)), Radial((0, 2), (27, 17), (c.EYE_WHITE, c.EYE_WHITE, c.EYE_SHADE))
        )
        self._ball = ball.layer()
        self._ball.setflags(write=False)

    def draw(self, sketch: Sketch, pose: Pose) -> None:
        for side in (-1, 1):
            self._eye(sketch, pose, side)
            _brow(sketch, pose, side)

    def _eye(self, sketch: Sketch, pose: Pose, side: int) -> None:
        x, y = c.AXIS + side * c.EYE_OFFSET, c.EYE_LINE
        upper, lower = _lids(pose, side, (x, y))
        # the lid's crease: flatter than its edge, and drawn down with it
        crease = shifted(upper * (1.0, 0.35), 0.0, 0.65 * y - 14.0 + 8.0 * pose.blink)
        sketch.fill(brush(crease[2:-3], (0.4, 1.5, 1.7, 0.6)), c.CREASE)
        if pose.blink < 0.97:
            self._ball_between(sketch, pose, (x, y), upper, lower)
        sketch.fill(brush(lower[1:-1], (0.3, 0.9, 1.0, 0.6)), c.CREASE)
        sketch.fill(brush(upper, (0.8, 2.4, 3.2, 2.8, 1.2)), c.LASH)

    def _ball_between(
        self, sketch: Sketch, pose: Pose, centre: tuple[float, float], upper: Path, lower: Path
    ) -> None:
        x, y = centre
        socket = sketch.window(Area(x + _BALL.left, y + _BALL.top, x + _BALL.right, y + _BALL.bottom))
        ball = Sketch(self._ball.copy(), self._scale, socket.origin)
        ball.stamp(self._iris, (x + pose.gaze_x * _GAZE_REACH[0], y - 0.6 + pose.gaze_y * _GAZE_REACH[1]))
        ball.glaze(brush(shifted(upper, 0, 2.2), (6, 8, 6)), c.HAIR_DARK, 0.3, blur=1.3)
        socket.reveal(ball, np.concatenate((upper, lower[::-1])))


def _lids(pose: Pose, side: int, centre: tuple[float, float]) -> tuple[Path, Path]:
    """Upper and lower edge of the eye's opening, from the nose outwards."""
    x, y = centre
    upper = spline([(-23, 4.5), (-17, -5.5), (-3, -13.2), (13, -11.3), (24, 1)], steps=6)
    lower = spline([(-23, 4.5), (-13, 10.8), (0, 13), (13, 11), (24, 1)], steps=6)
    upper[:, 1] += 2.6 * pose.gaze_y * _bulge(upper)
    upper[:, 1] -= 1.2 * max(0.0, pose.brows) * _bulge(upper)
    lower[:, 1] -= 2.2 * max(0.0, pose.smile) * _bulge(lower)
    shut = 0.12 * upper + 0.88 * lower
    upper += (shut - upper) * pose.blink
    lower += (shut - lower) * (0.35 * pose.blink)
    place, mirror = np.array((x, y)), np.array((side, 1.0))
    return upper * mirror + place, lower * mirror + place


def _bulge(lid: Path) -> npt.NDArray[np.float64]:
    """1 in the middle of a lid, 0 in its corners."""
    return 1 - ((lid[:, 0] - 1) / 24) ** 2


def _brow(sketch: Sketch, pose: Pose, side: int) -> None:
    lift, frown = max(0.0, pose.brows), max(0.0, -pose.brows)
    line = [(-21, 0.5), (-10, -3.5), (6, -6.5), (20, -3.5), (30, 4)]
    shaped = [
        (
            c.AXIS + side * (c.EYE_OFFSET + dx - 3 * frown * (1 - i / 4)),
            c.BROW_LINE + dy - lift * (7 - 0.6 * abs(i - 2)) + frown * (6 - 2.2 * i),
        )
        for i, (dx, dy) in enumerate(line)
    ]
    sketch.fill(brush(spline(shaped, steps=6), (2.6, 7.8, 8.8, 6.4, 1.2)), c.BROW)


def _iris(scale: float) -> Sprite:
    canvas = sprite_canvas(30, 30, scale)
    canvas.fill(ellipse((0, 0), (12.8, 12.8)), c.IRIS_RIM)
    canvas.fill(ellipse((0, 0), (11.6, 11.6)), Linear((0, -11), (0, 11), (c.IRIS_RIM, c.IRIS, c.IRIS_LIGHT)))
    canvas.fill(ellipse((0, 5), (8, 5)), c.IRIS_LIGHT, opacity=0.65, blur=1.6)
    canvas.fill(ellipse((0, 0), (6.0, 6.0)), c.PUPIL)
    canvas.fill(ellipse((-4.4, -4.6), (3.5, 3.5)), c.EYE_WHITE)
    canvas.fill(ellipse((4.6, 5.0), (1.7, 1.7)), c.EYE_WHITE, opacity=0.75)
    return Sprite(canvas)
