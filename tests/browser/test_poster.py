"""The still that the page shows before a call is of the face that a call shows."""

import cv2
import numpy as np

from tests.browser.poster import POSTER, draw


def test_the_poster_is_of_the_face() -> None:
    poster = cv2.imread(str(POSTER)).astype(int)
    assert np.abs(poster - draw()).mean() < 3, "the face changed: python -m tests.browser.poster"
