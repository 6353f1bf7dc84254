import hashlib
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import cv2
import numpy as np
import pytest

from pipeline.events import Face, Image, Pose
from pipeline.render.drawn_face import DrawnFace
from pipeline.render.mouth import mouth_shape
from pipeline.render.visemes import Viseme, VisemeSpan


def pose_of(viseme: Viseme) -> Pose:
    return Pose(**mouth_shape([VisemeSpan(viseme, 0.0, 1.0, stress=1.0)], 0.5)._asdict())


def changed_box(one: Image, other: Image) -> tuple[float, float, float, float]:
    """Where two pictures differ visibly: left, top, right, bottom as shares of the picture."""
    different = np.abs(one.astype(int) - other).max(axis=2) > 12
    rows, columns = np.flatnonzero(different.any(axis=1)), np.flatnonzero(different.any(axis=0))
    height, width = different.shape
    return columns[0] / width, rows[0] / height, columns[-1] / width, rows[-1] / height


def difference(one: Image, other: Image) -> float:
    return float(np.abs(one.astype(int) - other).mean())


def test_it_is_a_face(face: DrawnFace) -> None:
    drawn: Face = face
    picture = drawn.draw(Pose())
    assert picture.shape == (drawn.height, drawn.width, 3) == (512, 512, 3)
    assert picture.dtype == np.uint8


@pytest.mark.parametrize("size", [128, 250, 384])
def test_any_size_shows_the_same_character(face: DrawnFace, size: int) -> None:
    pose = Pose(jaw=0.6, turn=0.3, tilt=0.2)
    picture = DrawnFace(size).draw(pose)
    assert picture.shape == (size, size, 3)
    expected = cv2.resize(face.draw(pose), (size, size), interpolation=cv2.INTER_AREA)
    assert difference(picture, expected) < 2.5


def test_the_same_pose_gives_the_same_picture_whatever_was_drawn_before(face: DrawnFace) -> None:
    pose = Pose(jaw=0.4, smile=0.3, gaze_x=0.2)
    before = face.draw(pose)
    face.draw(Pose(jaw=1.0, blink=1.0, turn=1.0, brows=-1.0))
    assert np.array_equal(face.draw(pose), before)


def test_a_picture_belongs_to_whoever_asked_for_it(face: DrawnFace) -> None:
    first = face.draw(Pose())
    copy = first.copy()
    first[:] = 0
    assert np.array_equal(face.draw(Pose()), copy)


def test_threads_share_a_face(face: DrawnFace) -> None:
    poses = [Pose(jaw=k / 40, blink=(k % 3) / 2, turn=k / 60 - 0.3) for k in range(40)]
    alone = [hashlib.sha256(face.draw(pose)).digest() for pose in poses]
    with ThreadPoolExecutor(4, thread_name_prefix="draw") as pool:
        together = [hashlib.sha256(picture).digest() for picture in pool.map(face.draw, poses * 3)]
    assert together == alone * 3


LOOK_ALIKES = {
    frozenset({Viseme.DD, Viseme.NN}),  # the tongue tip behind the teeth, both
    frozenset({Viseme.DD, Viseme.KK}),
    frozenset({Viseme.NN, Viseme.KK}),
}


def test_visemes_look_different(face: DrawnFace) -> None:
    mouths = {viseme: face.draw(pose_of(viseme))[290:400, 180:332] for viseme in Viseme}
    for one, other in combinations(Viseme, 2):
        if frozenset({one, other}) not in LOOK_ALIKES:
            assert difference(mouths[one], mouths[other]) > 0.8, (one, other)


@pytest.mark.parametrize(
    ("pose", "top", "bottom"),
    [
        (Pose(blink=1.0), 0.36, 0.52),
        (Pose(brows=1.0), 0.32, 0.52),
        (Pose(gaze_x=0.8), 0.36, 0.52),
        (Pose(press=1.0), 0.56, 0.68),
        (Pose(width=-1.0), 0.56, 0.68),
    ],
)
def test_each_part_moves_where_it_is(face: DrawnFace, pose: Pose, top: float, bottom: float) -> None:
    _, first, _, last = changed_box(face.draw(Pose()), face.draw(pose))
    assert top < first < last < bottom


def test_breath_moves_shoulders_and_leaves_the_background(face: DrawnFace) -> None:
    still, breathing = face.draw(Pose()), face.draw(Pose(breath=1.0))
    assert difference(still[440:, 60:450], breathing[440:, 60:450]) > 0.5
    assert np.array_equal(still[:200, :90], breathing[:200, :90])


@pytest.mark.parametrize("trait", ["turn", "nod", "tilt"])
def test_the_head_moves_as_a_whole_and_stays_in_the_picture(face: DrawnFace, trait: str) -> None:
    for value in (-1.0, 1.0):
        moved = face.draw(Pose(**{trait: value}))
        head = slice(0, 390)  # above the shoulders, which sway along
        left, top, right, bottom = changed_box(face.draw(Pose())[head], moved[head])
        assert top < 0.1
        assert bottom > 0.9
        assert 0.15 < left < right < 0.85


def test_no_edge_of_a_layer_shows(face: DrawnFace) -> None:
    """A sum over a seam would show as a straight line right across the picture."""
    for pose in (Pose(), Pose(turn=1.0, nod=1.0, tilt=1.0, breath=1.0), Pose(turn=-1.0, nod=-1.0, tilt=-1.0)):
        picture = face.draw(pose).astype(int)
        outside = picture[:, :40]
        assert np.abs(np.diff(outside[:440], axis=0)).max() <= 3
        assert np.abs(np.diff(picture[:60, :100], axis=1)).max() <= 3


def test_values_out_of_range_do_not_break_it(face: DrawnFace) -> None:
    extreme = Pose(jaw=1.5, turn=3.0, nod=-3.0, tilt=3.0, gaze_x=4.0, gaze_y=-4.0, smile=2.0, blink=1.5)
    assert face.draw(extreme).shape == (512, 512, 3)
