"""Reads from a picture of the drawn character how far its mouth is open. Sees pixels, no poses.

What lies between the lips (teeth, tongue, the dark) differs from skin and lips in one simple way:
skin and lips have clearly more green than blue, the inside of the mouth has not. The opening is the
tallest run of such pixels, as a share of the same measure in a picture with the mouth fully open.
Blurring by VP8 moves the edge of a colour by a pixel or two on both pictures alike.
"""

from functools import cache

import cv2
import numpy as np

from pipeline.events import Image, Pose
from pipeline.render.drawn_face import DrawnFace

_AREA = (0.40, 0.565, 0.60, 0.775)
"""Where the middle of the mouth can be, heads turned and nodded included: left, top, right, bottom
as shares of the picture's width and height."""

_SKIN_GREEN_OVER_BLUE = 12
"""Skin has 25 to 45, lips 17 to 25, teeth, tongue and the dark -10 to 8."""

_SEAM = 0.10
"""Closed lips meet in a dark line, which reads as an opening of up to this share. Taken off."""

_WIDTH_THAT_COUNTS = 0.012
"""The opening is as tall as this share of the picture's width, at least, agrees it is."""


class MouthReader:
    """Measures against one fully open mouth, of a character at the same place in the picture."""

    def __init__(self, fully_open: Image) -> None:
        self._full = _opening(fully_open)
        if self._full < 0.04:
            raise ValueError(f"no open mouth in the calibration picture (saw {self._full:.3f} of its height)")

    def openness(self, picture: Image) -> float:
        """0 closed … 1 as open as the calibration picture; picture is BGR, any size, square."""
        share = _opening(picture) / self._full
        return float(np.clip((share - _SEAM) / (1 - _SEAM), 0.0, 1.2))


@cache
def default_reader() -> MouthReader:
    """Calibrated on the drawn character as shipped."""
    return MouthReader(DrawnFace().draw(Pose(jaw=1.0)))


def openness(picture: Image) -> float:
    """How open the shipped character's mouth is in a (decoded) BGR picture, 0 … 1."""
    return default_reader().openness(picture)


def _opening(picture: Image) -> float:
    """Height of the tallest stretch of mouth inside, as a share of the picture's height."""
    height, width = picture.shape[:2]
    left, top, right, bottom = _AREA
    area = picture[round(top * height) : round(bottom * height), round(left * width) : round(right * width)]
    green_over_blue = area[..., 1].astype(np.int16) - area[..., 0]
    inside = (green_over_blue < _SKIN_GREEN_OVER_BLUE).astype(np.uint8)
    if not inside.any():
        return 0.0
    inside = _largest_piece(inside)
    heights = np.sort(inside.sum(axis=0))[::-1]
    columns = max(1, round(_WIDTH_THAT_COUNTS * width))
    return float(heights[columns - 1]) / height


def _largest_piece(mask: np.ndarray) -> np.ndarray:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    return (labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))).astype(np.uint8)
