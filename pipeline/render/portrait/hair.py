"""Short hair, swept up and to the side. Painted once."""

from pipeline.render.portrait import palette as c
from pipeline.render.portrait.paint import Canvas, Linear, Path, Radial, brush, spline

_BACK = (
    (158, 232), (150, 190), (152, 140), (178, 96), (220, 74), (270, 66), (322, 78), (352, 112),
    (362, 160), (361, 205), (354, 232), (300, 250), (210, 250),
)  # fmt: skip

_TOP = (
    (166, 174), (158, 142), (164, 108), (186, 78), (222, 55), (262, 44), (300, 45), (326, 56),
    (347, 80), (358, 112), (357, 146), (348, 174), (341, 154), (322, 138), (290, 136), (252, 145),
    (214, 144), (188, 150), (174, 162),
)  # fmt: skip

_STRANDS = (
    # points, width, colour, opacity
    (((174, 154), (180, 110), (222, 72), (284, 58)), 10, c.HAIR_LIGHT, 0.6),
    (((192, 146), (200, 108), (242, 78), (306, 68)), 8, c.HAIR_GLINT, 0.5),
    (((216, 142), (230, 110), (272, 86), (326, 86)), 10, c.HAIR_LIGHT, 0.55),
    (((250, 144), (266, 114), (302, 100), (342, 112)), 8, c.HAIR_GLINT, 0.35),
    (((182, 152), (190, 108), (232, 74), (296, 62)), 4.5, c.HAIR_DARK, 0.6),
    (((204, 145), (216, 108), (258, 82), (318, 77)), 4.5, c.HAIR_DARK, 0.6),
    (((234, 146), (250, 112), (288, 93), (336, 99)), 4.5, c.HAIR_DARK, 0.6),
    (((276, 140), (300, 116), (328, 112), (350, 130)), 4.5, c.HAIR_DARK, 0.6),
    (((306, 138), (324, 128), (340, 132), (352, 156)), 3.5, c.HAIR_LIGHT, 0.4),
    (((170, 140), (174, 108), (204, 76), (256, 56)), 3, c.HAIR_GLINT, 0.35),
    (((228, 56), (262, 49), (300, 52), (332, 70)), 3, c.HAIR_GLINT, 0.45),
)

_TUFTS = (
    # locks that break the outline: root, tip, root
    ((206, 66), (226, 44), (252, 40), (240, 54)),
    ((248, 50), (276, 35), (306, 36), (288, 50)),
    ((296, 48), (326, 44), (348, 60), (330, 66)),
    ((336, 70), (358, 84), (365, 108), (350, 100)),
)


def paint_back_hair(canvas: Canvas) -> None:
    canvas.fill(spline(_BACK, closed=True), Linear((160, 80), (350, 240), (c.HAIR, c.HAIR_DARK)))


def paint_hair(canvas: Canvas, face: Path) -> None:
    """What lies in front of the face; it throws a soft shadow on it."""
    for side in (-1, 1):
        _sideburn(canvas, side)
    top = spline(_TOP, closed=True)
    canvas.fill(top, c.SKIN_DEEP, opacity=0.55, blur=6, clip=face)
    shine = Radial((232, 78), (142, 104), (c.HAIR_LIGHT, c.HAIR, c.HAIR_DARK))
    for tuft in _TUFTS:
        canvas.fill(spline(tuft, closed=True), shine)
    canvas.fill(top, shine)
    for line, width, colour, strength in _STRANDS:
        stroke = brush(spline(line), (0.5, width, width * 0.8, 0.5))
        canvas.fill(stroke, colour, opacity=strength, blur=1.2, clip=top)


def _sideburn(canvas: Canvas, side: int) -> None:
    half = ((99, 210), (101.5, 170), (96, 130), (70, 120), (80, 150), (87.5, 176), (90, 198), (94, 218))
    outline = spline([(c.AXIS + side * x, y) for x, y in half], closed=True)
    canvas.fill(outline, Linear((0, 130), (0, 222), (c.HAIR, c.HAIR_DARK)), blur=0.5)
