"""The page's poster, a still of the drawn face. Write it anew with `python -m tests.browser.poster`."""

from pathlib import Path

import cv2

from pipeline.events import Image, Pose
from pipeline.render.drawn_face import DrawnFace

POSTER = Path(__file__).parents[2] / "web" / "poster.webp"

SIDE = 640
"""Pixels; as large as the page shows it on an ordinary screen."""


def draw() -> Image:
    return DrawnFace(SIDE).draw(Pose(smile=0.5, brows=0.15))


if __name__ == "__main__":
    cv2.imwrite(str(POSTER), draw(), [cv2.IMWRITE_WEBP_QUALITY, 85])
