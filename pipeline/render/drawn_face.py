"""A drawn character as a `Face`: pre-painted layers, of which each frame redraws eyes and mouth.

Cost per frame: a copy of the background, two small areas painted, two warps and two blends.
"""

import threading
from collections.abc import Callable

import cv2
import numpy as np

from pipeline.events import Image, Pose
from pipeline.render.portrait import backdrop, eyes, head, lips, motion
from pipeline.render.portrait import palette as c
from pipeline.render.portrait.paint import Canvas, Layer
from pipeline.render.portrait.sketch import Area, Sketch, blend

_TEXTURE_DETAIL = 2.0
"""Texture pixels per picture pixel: bilinear sampling then averages exactly one picture pixel."""


class DrawnFace:
    """The character at `size` × `size` pixels.

    Layers are painted once, here, and never written again, so that any number of sessions and
    threads may share one face; `draw` keeps a scratch picture per thread.
    """

    def __init__(self, size: int = 512) -> None:
        self.width = self.height = size
        self._scale = size / c.VIEW_SIZE
        self._texture_scale = self._scale * _TEXTURE_DETAIL
        self._background = _background(size, self._texture_scale)
        self._body = self._painted(motion.BODY_AREA, backdrop.paint_body)
        self._head = self._painted(motion.HEAD_TEXTURE, head.paint_head)
        self._head_motion = motion.HeadMotion(self._scale, self._texture_scale)
        self._eyes = eyes.Eyes(self._texture_scale)
        self._mouth = lips.Mouth(self._texture_scale)
        self._scratch = threading.local()

    def draw(self, pose: Pose) -> Image:
        """The character in this pose, a new array each time."""
        frame = self._background.copy()
        self._draw_body(frame, pose)
        self._draw_head(frame, pose)
        return frame

    def _draw_body(self, frame: Image, pose: Pose) -> None:
        top = round((motion.BODY_AREA.top - c.VIEW[1]) * self._scale)
        area = frame[top:]
        matrix = motion.body_matrix(pose, self._scale, self._texture_scale)
        size = (area.shape[1], area.shape[0])
        body = cv2.warpAffine(self._body, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
        blend(area, np.asarray(body, np.uint8))

    def _draw_head(self, frame: Image, pose: Pose) -> None:
        texture = self._scratch_head()
        self._eyes.draw(self._fresh(texture, eyes.AREA), pose)
        self._mouth.draw(self._fresh(texture, lips.AREA), pose)
        place = self._head_motion
        area = frame[place.top : place.top + place.height, place.left : place.left + place.width]
        across, down = place.maps(pose)
        blend(area, np.asarray(cv2.remap(texture, across, down, cv2.INTER_LINEAR), np.uint8))

    def _scratch_head(self) -> Layer:
        if not hasattr(self._scratch, "head"):
            self._scratch.head = self._head.copy()
        texture: Layer = self._scratch.head
        return texture

    def _fresh(self, texture: Layer, area: Area) -> Sketch:
        """The area of the scratch texture, with the last frame's painting wiped off."""
        origin = motion.HEAD_TEXTURE[:2]
        sketch = Sketch(texture, self._texture_scale, origin).window(area)
        np.copyto(sketch.pixels, Sketch(self._head, self._texture_scale, origin).window(area).pixels)
        return sketch

    def _painted(self, area: Area, paint: Callable[[Canvas], None]) -> Layer:
        width, height = area.right - area.left, area.bottom - area.top
        canvas = Canvas(width, height, self._texture_scale, origin=(area.left, area.top))
        paint(canvas)
        layer = canvas.layer()
        layer.setflags(write=False)
        return layer


def _background(size: int, scale: float) -> Image:
    canvas = Canvas(c.VIEW_SIZE, c.VIEW_SIZE, scale, origin=c.VIEW)
    backdrop.paint_background(canvas)
    shrunk = cv2.resize(canvas.layer()[..., :3], (size, size), interpolation=cv2.INTER_AREA)
    picture = np.asarray(shrunk, np.uint8)
    picture.setflags(write=False)
    return picture
