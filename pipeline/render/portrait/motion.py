"""How the painted head and body move in the picture: a flat drawing that seems to have depth.

The head is one texture. For each pixel of the picture we ask where on the texture it comes from;
points nearer to the viewer (nose before cheeks before ears) shift further when the head turns, as on
a turned ellipsoid, and the chin follows the jaw. The answer is worked out on a coarse grid and
interpolated, which costs little and bends smoothly.
"""

import cv2
import numpy as np
import numpy.typing as npt

from pipeline.events import Pose
from pipeline.render.portrait import palette as c
from pipeline.render.portrait.sketch import Area

HEAD_TEXTURE = Area(136.0, 28.0, 380.0, 366.0)
"""Where the head is painted."""

HEAD_AREA = Area(110.0, 18.0, 402.0, 402.0)
"""Where it may appear when it moves."""

BODY_AREA = Area(c.VIEW[0], 300.0, c.VIEW[0] + c.VIEW_SIZE, c.VIEW[1] + c.VIEW_SIZE + 8.0)
"""Where the body may appear."""

# What a pose of 1 comes to, in design units and degrees.
_TURN_DEPTH, _TURN_SHIFT = 22.0, 4.0
_NOD_DEPTH, _NOD_SHIFT = 15.0, 3.0
_TILT_DEGREES = 7.0
_CHIN_DROP = 13.0
_BREATH_RISE = 2.4
_BODY_SWAY = 2.5

_SKULL_CENTRE, _SKULL_RADII = (c.AXIS, 232.0), (112.0, 165.0)
_NOSE_CENTRE, _NOSE_SPREAD, _NOSE_HEIGHT = (c.AXIS, 256.0), 26.0, 0.22
_CELL = 8

Map = npt.NDArray[np.float32]
_Grid = npt.NDArray[np.float64]


class HeadMotion:
    """Picture pixels of HEAD_AREA → texture pixels, for a pose."""

    def __init__(self, picture_scale: float, texture_scale: float) -> None:
        left, top, right, bottom = HEAD_AREA
        self.left = round((left - c.VIEW[0]) * picture_scale)
        self.top = round((top - c.VIEW[1]) * picture_scale)
        columns = int((right - left) * picture_scale / _CELL)
        rows = int((bottom - top) * picture_scale / _CELL)
        self.width, self.height = columns * _CELL, rows * _CELL
        self._texture_scale = texture_scale
        # the middle of each cell: there cv2.resize takes its samples to lie
        x = c.VIEW[0] + (self.left + (np.arange(columns) + 0.5) * _CELL) / picture_scale
        y = c.VIEW[1] + (self.top + (np.arange(rows) + 0.5) * _CELL) / picture_scale
        self._x, self._y = np.meshgrid(x - c.NECK_PIVOT[0], y - c.NECK_PIVOT[1])

    def maps(self, pose: Pose) -> tuple[Map, Map]:
        """For cv2.remap: x and y, shape (height, width) each."""
        x = self._x - _TURN_SHIFT * pose.turn
        y = self._y - _NOD_SHIFT * pose.nod + 0.7 * _BREATH_RISE * pose.breath
        angle = np.deg2rad(_TILT_DEGREES * pose.tilt)
        cos, sin = float(np.cos(angle)), float(np.sin(angle))
        u = cos * x + sin * y + c.NECK_PIVOT[0]
        v = -sin * x + cos * y + c.NECK_PIVOT[1]
        depth = _depth(u, v)
        u = u - _TURN_DEPTH * pose.turn * depth
        v = v - _NOD_DEPTH * pose.nod * depth - _CHIN_DROP * pose.jaw * (1 - pose.press) * _jaw(u, v)
        s = self._texture_scale
        return self._full((u - HEAD_TEXTURE.left) * s - 0.5), self._full((v - HEAD_TEXTURE.top) * s - 0.5)

    def _full(self, coarse: _Grid) -> Map:
        size = (self.width, self.height)
        fine = cv2.resize(coarse.astype(np.float32), size, interpolation=cv2.INTER_LINEAR)
        return np.asarray(fine, np.float32)


def body_matrix(pose: Pose, picture_scale: float, texture_scale: float) -> npt.NDArray[np.float64]:
    """Picture pixels of BODY_AREA → texture pixels, shape (2, 3), for an inverse cv2.warpAffine."""
    detail = texture_scale / picture_scale
    centre = (detail - 1) / 2  # pixel centres lie half a pixel in, on both sides
    sway = -_BODY_SWAY * (pose.turn + 0.6 * pose.tilt) * texture_scale
    rise = _BREATH_RISE * pose.breath * texture_scale
    return np.array([[detail, 0.0, centre + sway], [0.0, detail, centre + rise]])


def _depth(u: _Grid, v: _Grid) -> _Grid:
    """How near to the viewer a point of the drawing is: 1 the middle of the face, 0 the outline."""
    (cx, cy), (rx, ry) = _SKULL_CENTRE, _SKULL_RADII
    skull = np.maximum(-0.25, 1 - ((u - cx) / rx) ** 2 - ((v - cy) / ry) ** 2)
    (nx, ny), spread = _NOSE_CENTRE, _NOSE_SPREAD
    depth: _Grid = skull + _NOSE_HEIGHT * np.exp(-((u - nx) ** 2 + (v - ny) ** 2) / (2 * spread**2))
    return depth


def _jaw(u: _Grid, v: _Grid) -> _Grid:
    """How far a point follows the jaw: 0 above the lips, 1 at the chin."""
    along = np.clip((v - (c.MOUTH_LINE + 2)) / (c.CHIN - c.MOUTH_LINE), 0, 1)
    beside = np.clip(1.25 - np.abs(u - c.AXIS) / 110, 0, 1)
    follows: _Grid = along * along * (3 - 2 * along) * beside
    return follows
