"""The head without eyes, brows and mouth: ears, skin, nose. Painted once."""

from pipeline.render.portrait import palette as c
from pipeline.render.portrait.hair import paint_back_hair, paint_hair
from pipeline.render.portrait.paint import Canvas, Linear, Path, Points, brush, ellipse, mirrored, spline

_FACE_HALF = (
    (0, 96), (58, 112), (90, 150), (98, 195), (97, 240), (92, 276), (83.5, 305),
    (66.5, 332), (43, 349.5), (18.5, 357.5), (0, 358),
)  # fmt: skip

_BEARD_HALF = (
    (0, 286), (20, 284), (44, 300), (70, 286), (88, 236), (106, 240), (100, 320), (60, 366), (0, 376),
)  # fmt: skip


def paint_head(canvas: Canvas) -> None:
    """Everything of the head that no pose changes by itself."""
    face = spline(mirrored(_FACE_HALF, c.AXIS), closed=True)
    paint_back_hair(canvas)
    for side in (-1, 1):
        _ear(canvas, side)
    canvas.fill(face, Linear((170, 120), (335, 365), (c.SKIN_LIGHT, c.SKIN, c.SKIN_SHADE)))
    _planes(canvas, face)
    _stubble(canvas, face)
    _sockets(canvas, face)
    _nose(canvas)
    paint_hair(canvas, face)


def _ear(canvas: Canvas, side: int) -> None:
    def at(points: Points) -> Points:
        return [(c.AXIS + side * x, y) for x, y in points]

    outline = spline(
        at([(90, 212), (100, 202), (110, 203), (114, 218), (110.5, 238), (104, 255), (96, 262), (89, 252)]),
        closed=True,
    )
    canvas.fill(outline, c.SKIN if side < 0 else c.SKIN_SHADE)
    inner = Linear((c.AXIS + side * 92, 0), (c.AXIS + side * 115, 0), (c.SKIN_DEEP, c.SKIN))
    canvas.fill(outline, inner, opacity=0.55, atop=True)
    fold = brush(spline(at([(97, 216), (105, 211), (107.5, 221), (103.5, 236), (99, 246)])), (1, 3, 2.6, 1))
    canvas.fill(fold, c.SKIN_DEEP, opacity=0.65, blur=0.9, clip=outline)
    hollow = spline(at([(95, 224), (101, 222), (101, 234), (96, 244)]), closed=True)
    canvas.fill(hollow, c.SKIN_DEEP, opacity=0.4, blur=2, clip=outline)


def _planes(canvas: Canvas, face: Path) -> None:
    """Soft light and shade that make the egg a face."""
    away_from_light = [(350, 140), (360, 240), (346, 300), (304, 360), (372, 372), (384, 200)]
    canvas.fill(spline(away_from_light, closed=True), c.SKIN_DEEP, opacity=0.45, blur=11, clip=face)
    towards_light = [(158, 170), (153, 250), (171, 316), (212, 364), (140, 360)]
    canvas.fill(spline(towards_light, closed=True), c.SKIN_DEEP, opacity=0.2, blur=10, clip=face)
    under_jaw = brush(spline([(176, 318), (206, 347), (256, 360), (306, 347), (336, 318)]), (2, 9, 7, 9, 2))
    canvas.fill(under_jaw, c.SKIN_DEEP, opacity=0.5, blur=4, clip=face)
    for side, strength in ((-1, 0.36), (1, 0.32)):
        cheek = ellipse((c.AXIS + side * 61, 270), (22, 14))
        canvas.fill(cheek, c.BLUSH, opacity=strength, blur=10, clip=face)
    for centre, radii, strength, blur in (
        ((240, 164), (48, 22), 0.7, 17),  # forehead
        ((188, 258), (19, 10), 0.75, 8),  # cheekbone
        ((316, 256), (14, 8), 0.45, 8),
        ((c.AXIS - 1, 342), (19, 8), 0.7, 5.5),  # chin
    ):
        canvas.fill(ellipse(centre, radii), c.SKIN_LIGHT, opacity=strength, blur=blur, clip=face)
    canvas.fill(ellipse((c.AXIS, 324), (18, 3.5)), c.SKIN_DEEP, opacity=0.45, blur=3.2, clip=face)


def _stubble(canvas: Canvas, face: Path) -> None:
    """A shadow where a beard would grow."""
    beard = spline(mirrored(_BEARD_HALF, c.AXIS), closed=True)
    canvas.fill(beard, c.BEARD, opacity=0.10, blur=6, clip=face)


def _sockets(canvas: Canvas, face: Path) -> None:
    for side in (-1, 1):
        x = c.AXIS + side * c.EYE_OFFSET
        canvas.fill(ellipse((x - side * 2, 210), (31, 12)), c.SKIN_SHADE, opacity=0.6, blur=6, clip=face)
        canvas.fill(ellipse((x, c.EYE_LINE + 1), (24, 13)), c.SKIN_SHADE, opacity=0.55, blur=4, clip=face)
        lid = ellipse((x + side * 2, c.EYE_LINE - 4), (16, 5))
        canvas.fill(lid, c.SKIN_LIGHT, opacity=0.5, blur=4, clip=face)
        bag = spline([(x - 20, c.EYE_LINE + 15), (x, c.EYE_LINE + 20), (x + 20, c.EYE_LINE + 14)])
        canvas.fill(brush(bag, (1, 3, 1)), c.SKIN_SHADE, opacity=0.45, blur=2, clip=face)


def _nose(canvas: Canvas) -> None:
    x, tip = c.AXIS, c.NOSE_TIP
    flank = spline([(x + 6, 203), (x + 9, 235), (x + 21, tip), (x + 12, tip + 8), (x + 2, 240)], closed=True)
    canvas.fill(flank, c.SKIN_DEEP, opacity=0.38, blur=4.5)
    bridge = spline([(x - 3, 200), (x - 2, 230), (x - 3, 254)])
    canvas.fill(brush(bridge, (3, 7, 12)), c.SKIN_LIGHT, opacity=0.75, blur=3.5)
    wings = ((-20, -4), (-19.5, 4), (-11, 7), (0, 10), (11, 7), (19.5, 4), (20, -4))
    base = spline([(x + dx, tip + dy) for dx, dy in wings])
    canvas.fill(brush(base, (0.8, 3.2, 2.8, 3.8, 2.8, 3.2, 0.8)), c.SKIN_DEEP, opacity=0.8, blur=1.4)
    for side in (-1, 1):
        nostril = spline([(x + side * 5, tip + 6.5), (x + side * 10, tip + 3.5), (x + side * 14.5, tip + 5)])
        canvas.fill(brush(nostril, (1, 3.2, 1)), c.LIP_LINE, opacity=0.8, blur=0.6)
    canvas.fill(ellipse((x - 4, tip - 4), (6, 4.5)), c.SKIN_LIGHT, opacity=0.95, blur=2.2)
    philtrum = spline([(x, tip + 14), (x, tip + 27)])
    canvas.fill(brush(philtrum, (3, 6)), c.SKIN_SHADE, opacity=0.5, blur=1.8)
