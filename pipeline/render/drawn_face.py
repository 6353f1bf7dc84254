"""A drawn character as a `Face`: pre-painted layers, of which each frame redraws eyes and mouth.

Cost per frame: a copy of the background, two small areas painted unless they look as they did a moment ago,
two warps and two blends.
"""

import threading
from collections import OrderedDict
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


_REMEMBERED = 8
"""Paintings of a part that are kept: some for each of a few conversations that take turns. 3 MB."""


class _Part:
    """One area of a head's texture. A face at rest hardly changes there, so the latest paintings are kept."""

    def __init__(
        self,
        sketch: Sketch,
        blank: Layer,
        shown: Callable[[Pose], Pose],
        paint: Callable[[Sketch, Pose], None],
    ) -> None:
        """`blank`: the area with nothing of the part in it. `shown`: what of a pose the part shows."""
        self._sketch = sketch
        self._blank = blank
        self._shown = shown
        self._paint = paint
        self._known: OrderedDict[Pose, Layer] = OrderedDict()

    def show(self, pose: Pose) -> None:
        pose, known, pixels = self._shown(pose), self._known, self._sketch.pixels
        if pose in known:
            np.copyto(pixels, known[pose])
        else:
            np.copyto(pixels, self._blank)
            self._paint(self._sketch, pose)
            if len(known) == _REMEMBERED:
                known.popitem(last=False)
            known[pose] = pixels.copy()
        known.move_to_end(pose)


class _Head(threading.local):
    """Each thread's own texture, into which eyes and mouth are painted."""

    def __init__(self, painted: Layer, scale: float, eyes_: eyes.Eyes, mouth: lips.Mouth) -> None:
        self.texture: Layer = painted.copy()
        origin = motion.HEAD_TEXTURE[:2]
        sketch, blank = Sketch(self.texture, scale, origin), Sketch(painted, scale, origin)
        self.parts = [
            _Part(sketch.window(area), blank.window(area).pixels, shown, paint)
            for area, shown, paint in (
                (eyes.AREA, eyes.shown, eyes_.draw),
                (lips.AREA, lips.shown, mouth.draw),
            )
        ]


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
        self._head = _Head(
            self._painted(motion.HEAD_TEXTURE, head.paint_head),
            self._texture_scale,
            eyes.Eyes(self._texture_scale),
            lips.Mouth(self._texture_scale),
        )
        self._head_motion = motion.HeadMotion(self._scale, self._texture_scale)

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
        for part in self._head.parts:
            part.show(pose)
        place = self._head_motion
        area = frame[place.top : place.top + place.height, place.left : place.left + place.width]
        across, down = place.maps(pose)
        head_ = cv2.remap(self._head.texture, across, down, cv2.INTER_LINEAR)
        blend(area, np.asarray(head_, np.uint8))

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
