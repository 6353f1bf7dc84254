import cv2
import numpy as np
import pytest

from pipeline.events import Pose
from pipeline.render.drawn_face import DrawnFace
from tests.pipeline.render.mouth_reader import MouthReader, openness
from tests.pipeline.render.vp8 import through_vp8


def test_it_reads_the_opening_of_the_lips(face: DrawnFace) -> None:
    read = [openness(face.draw(Pose(jaw=jaw))) for jaw in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert read == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0], abs=0.1)


SHUT = [Pose(), Pose(smile=0.5), Pose(press=1.0), Pose(width=-1.0), Pose(jaw=0.8, press=1.0)]


@pytest.mark.parametrize("shut", SHUT)
def test_closed_lips_read_as_closed(face: DrawnFace, shut: Pose) -> None:
    assert openness(face.draw(shut)) <= 0.05


@pytest.mark.parametrize("width", [-0.8, 0.0, 0.8])
@pytest.mark.parametrize("tongue", [0.0, 1.0])
def test_teeth_tongue_and_width_do_not_mislead_it(face: DrawnFace, width: float, tongue: float) -> None:
    assert openness(face.draw(Pose(jaw=0.6, width=width, tongue=tongue))) == pytest.approx(0.6, abs=0.12)


def test_it_sees_through_vp8_and_head_movement(face: DrawnFace) -> None:
    """Every value is held for three frames, and judged at the last."""
    rng = np.random.default_rng(3)
    poses = []
    for jaw in rng.permutation(np.linspace(0, 1, 25)):
        turn, nod, tilt = rng.uniform(-0.5, 0.5, 3)
        poses += [Pose(jaw=float(jaw), turn=turn, nod=nod, tilt=tilt, smile=0.3, blink=0.5)] * 3
    seen = [openness(picture) for picture in through_vp8(map(face.draw, poses))][2::3]
    errors = np.array(seen) - [pose.jaw for pose in poses[2::3]]
    assert np.abs(errors).mean() < 0.07
    assert np.abs(errors).max() < 0.2


def test_the_size_of_the_picture_does_not_matter(face: DrawnFace) -> None:
    picture = face.draw(Pose(jaw=0.7))
    small = cv2.resize(picture, (256, 256), interpolation=cv2.INTER_AREA)
    assert openness(small) == pytest.approx(openness(picture), abs=0.08)


def test_a_closed_mouth_calibrates_nothing(face: DrawnFace) -> None:
    with pytest.raises(ValueError, match="no open mouth"):
        MouthReader(face.draw(Pose()))
