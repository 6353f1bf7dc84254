"""Background and body: what is behind and below the head. Painted once."""

import numpy as np

from pipeline.render.portrait import palette as c
from pipeline.render.portrait.paint import (
    Canvas,
    Linear,
    Path,
    Points,
    brush,
    ellipse,
    mirrored,
    shifted,
    spline,
)


def paint_background(canvas: Canvas) -> None:
    whole = spline([(-40, -40), (552, -40), (552, 552), (-40, 552)], closed=True, steps=2)
    canvas.fill(whole, Linear((150, 0), (360, 512), c.SKY))
    canvas.fill(ellipse((250, 220), (172, 172)), c.GLOW, opacity=0.5, blur=50)


def paint_body(canvas: Canvas) -> None:
    """Neck and shoulders."""
    _neck(canvas)
    _sweater(canvas)
    _collar(canvas)


_NECK = ((0, 300), (50, 300), (48, 350), (48, 378), (56, 396), (82, 410), (70, 450), (0, 460))

_JAW_SHADOW = ((196, 330), (256, 382), (318, 330), (326, 384), (262, 412), (206, 384))

_SWEATER_LEFT = ((0, 456), (-46, 440), (-72, 401), (-104, 414), (-150, 430), (-186, 458), (-206, 540))


def _neck(canvas: Canvas) -> None:
    neck = spline(mirrored(_NECK, c.AXIS), closed=True)
    canvas.fill(neck, Linear((205, 0), (310, 0), (c.SKIN, c.SKIN_SHADE)))
    canvas.fill(spline(_JAW_SHADOW, closed=True), c.SKIN_DEEP, opacity=0.9, blur=7, clip=neck)
    for side in (-1, 1):
        tendon = _beside(side, ((34, 392), (26, 412), (12, 432)))
        canvas.fill(brush(tendon, (1, 5, 1)), c.SKIN_DEEP, opacity=0.35, blur=2.4, clip=neck)


def _sweater(canvas: Canvas) -> None:
    left = [(c.AXIS + dx, y) for dx, y in _SWEATER_LEFT]
    right = [(c.AXIS - dx, y) for dx, y in reversed(_SWEATER_LEFT[1:])]
    torso = spline(left + right, closed=True)
    canvas.fill(torso, Linear((110, 400), (410, 530), (c.KNIT_LIGHT, c.KNIT, c.KNIT_DARK)))
    for side, strength in ((-1, 0.4), (1, 0.55)):
        armpit = brush(_beside(side, ((140, 452), (146, 478), (140, 530))), (1, 14, 26))
        canvas.fill(armpit, c.KNIT_DEEP, opacity=strength, blur=8, clip=torso)
        seam = brush(_beside(side, ((122, 420), (137, 448), (142, 500))), (1.2, 1.6, 1.2))
        canvas.fill(seam, c.KNIT_DEEP, opacity=0.45, blur=0.5, clip=torso)
    rim = brush(_beside(1, ((104, 414), (150, 430), (186, 458), (200, 500))), (1, 5, 6, 5))
    canvas.fill(rim, c.GLOW, opacity=0.22, blur=2, clip=torso)
    shoulder = brush(_beside(-1, ((84, 414), (148, 437), (180, 464))), (2, 12, 4))
    canvas.fill(shoulder, c.KNIT_LIGHT, opacity=0.8, blur=5, clip=torso)


def _collar(canvas: Canvas) -> None:
    """A shirt's edge, and the ribbed band of the sweater over it."""
    shirt = _round_neck(66, 398, 44, 434, 452)
    canvas.fill(brush(shirt, (5, 7, 8, 7, 5)), Linear((200, 0), (320, 0), (c.SHIRT, c.SHIRT_SHADE)))
    collar = _round_neck(73, 400, 50, 440, 460)
    shadow = brush(shifted(collar, 0, 5), (10, 16, 17, 16, 10))
    canvas.fill(shadow, c.KNIT_DEEP, opacity=0.3, blur=3, atop=True)
    band = brush(collar, (9, 13, 14, 13, 9))
    canvas.fill(band, Linear((180, 0), (340, 0), (c.KNIT_LIGHT, c.KNIT, c.KNIT_DARK)))
    for i in range(3, len(collar) - 3):
        along = collar[i + 1] - collar[i - 1]
        across = np.array((-along[1], along[0])) / np.hypot(along[0], along[1])
        rib = np.stack((collar[i] - 6.5 * across, collar[i] + 6.5 * across))
        canvas.fill(brush(rib, (1.1, 1.1)), c.KNIT_DEEP, opacity=0.35, clip=band)


def _round_neck(top_dx: float, top_y: float, dx: float, y: float, bottom: float) -> Path:
    x = c.AXIS
    return spline(((x - top_dx, top_y), (x - dx, y), (x, bottom), (x + dx, y), (x + top_dx, top_y)))


def _beside(side: int, points: Points) -> Path:
    return spline([(c.AXIS + side * dx, y) for dx, y in points])
