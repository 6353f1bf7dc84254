from dataclasses import astuple
from itertools import pairwise
from statistics import mean, pstdev

import numpy as np
import pytest

from pipeline.events import Mood, Performer, Pose
from pipeline.render.following_mouth import CATCH_UP_S
from pipeline.render.performance import Performance
from tests.pipeline.render.speech import SAMPLE, chunk, phonemes

FRAME_S = 0.04
MOODS = (Mood.IDLE, Mood.LISTENING, Mood.THINKING, Mood.SPEAKING)


def silent(performance: Performance, mood: Mood, seconds: float, start: float = 0.0) -> list[Pose]:
    return [performance.pose(start + t, None, mood) for t in np.arange(0, seconds, FRAME_S)]


def speaking(performance: Performance, start: float, begin: float, end: float) -> list[Pose]:
    return [performance.pose(start + p, p, Mood.SPEAKING) for p in np.arange(begin, end, FRAME_S)]


def cued(notation: str = SAMPLE, seed: int = 1) -> Performance:
    performance = Performance(seed)
    performance.cue(chunk(phonemes(notation)), 0.0)
    return performance


def test_it_is_a_performer() -> None:
    performer: Performer = Performance(seed=1)
    assert isinstance(performer.pose(0.0, None, Mood.IDLE), Pose)


def test_same_seed_and_calls_same_poses_other_seed_other_poses() -> None:
    def run(seed: int) -> list[Pose]:
        performance = cued(seed=seed)
        poses = silent(performance, Mood.LISTENING, 3.0)
        poses += silent(performance, Mood.THINKING, 1.0, start=3.0)
        return poses + speaking(performance, 4.0, 0.0, 2.0)

    assert run(1) == run(1)
    assert run(1) != run(2)


@pytest.mark.parametrize("mood", list(Mood))
def test_the_mouth_rests_when_nothing_is_heard(mood: Mood) -> None:
    performance = cued()
    for pose in silent(performance, mood, 5.0):
        assert (pose.jaw, pose.width, pose.press, pose.tuck, pose.tongue) == (0, 0, 0, 0, 0)


def test_the_mouth_speaks_at_the_audio_position() -> None:
    performance = cued("^60 p60 ˈ60 ɑ120 p60 .100")
    poses = {round(p, 3): performance.pose(5 + p, p, Mood.SPEAKING) for p in np.arange(0, 0.4, 0.01)}
    assert poses[0.09].press == 1.0
    assert poses[0.22].jaw > 0.9
    assert poses[0.33].press == 1.0


def test_chunks_follow_each_other() -> None:
    performance = cued("^60 s60 ˈ60 ɑ120 .100")
    performance.cue(chunk(phonemes("^60 p60 ˈ60 ɑ120 .100")), 0.4)
    poses = {round(p, 3): performance.pose(5 + p, p, Mood.SPEAKING) for p in np.arange(0, 0.8, 0.01)}
    assert poses[0.2].jaw > 0.9
    assert poses[0.49].press == 1.0
    assert poses[0.62].jaw > 0.9


def test_a_cue_replaces_what_was_cued_for_the_same_time() -> None:
    performance = cued("^60 s60 ˈ60 ɑ400 .100")
    performance.cue(chunk(phonemes("m400")), 0.3)
    poses = {round(p, 3): performance.pose(5 + p, p, Mood.SPEAKING) for p in np.arange(0, 0.6, 0.01)}
    assert poses[0.25].jaw > 0.8
    assert poses[0.5].press == 1.0


def test_cueing_the_next_chunk_changes_nothing_now() -> None:
    one, other = cued(), cued()
    for k, p in enumerate(np.arange(0.0, 2.0, FRAME_S)):
        if k == 10:
            other.cue(chunk(phonemes(SAMPLE)), 6.0)
        assert one.pose(p, p, Mood.SPEAKING) == other.pose(p, p, Mood.SPEAKING)


def open_at(performance: Performance, start: float) -> float:
    """Plays until the mouth is wide open; the position where it is."""
    for p in np.arange(0, 3, FRAME_S):
        if performance.pose(start + p, p, Mood.SPEAKING).jaw > 0.9:
            return float(p)
    raise AssertionError("the mouth never opened")


def test_cleared_it_closes_smoothly_within_120_ms() -> None:
    performance = cued("^60 s60 ˈ60 ɑ900 .100")
    p = open_at(performance, 10.0)
    performance.clear()
    jaw = [performance.pose(10.0 + p + t, None, Mood.LISTENING).jaw for t in np.arange(0.01, 0.2, 0.01)]
    assert 0.5 < jaw[1] < 1, "no snap"
    assert all(a >= b for a, b in pairwise(jaw))
    assert jaw[round(CATCH_UP_S / 0.01) - 1] == 0.0


def test_after_an_interruption_it_speaks_again() -> None:
    performance = cued()
    open_at(performance, 10.0)
    performance.clear()
    silent(performance, Mood.LISTENING, 1.0, start=12.0)
    performance.cue(chunk(phonemes(SAMPLE)), 0.0)
    assert max(pose.jaw for pose in speaking(performance, 14.0, 0.0, 2.0)) > 0.8


def test_resuming_at_an_earlier_word_does_not_snap() -> None:
    performance = cued("^60 m400 ˈ60 ɑ900 .100")
    for p in np.arange(0, 0.8, FRAME_S):
        before = performance.pose(20 + p, p, Mood.SPEAKING)
    after = performance.pose(20.8, 0.2, Mood.SPEAKING)
    assert before.jaw > 0.9
    assert 0.4 < after.jaw < before.jaw
    later = performance.pose(20.8 + CATCH_UP_S, 0.2 + CATCH_UP_S, Mood.SPEAKING)
    assert later.jaw == 0.0


def test_a_stalled_position_lets_the_mouth_go_to_rest_and_come_back() -> None:
    performance = cued("^60 s60 ˈ60 ɑ900 .100")
    p = open_at(performance, 30.0)
    stalled = [performance.pose(30.0 + p + t, p, Mood.SPEAKING).jaw for t in np.arange(FRAME_S, 0.4, FRAME_S)]
    assert stalled[0] > 0.9
    assert stalled[-1] == 0.0
    for t in np.arange(0.0, 0.24, FRAME_S):
        resumed = performance.pose(30.4 + p + t, p + t, Mood.SPEAKING)
    assert resumed.jaw > 0.9


def test_moods_are_told_apart() -> None:
    def traits(mood: Mood) -> dict[str, float]:
        poses = silent(Performance(4), mood, 30.0)
        return {
            "brows": mean(pose.brows for pose in poses),
            "nod": mean(pose.nod for pose in poses),
            "smile": mean(pose.smile for pose in poses),
            "aside": mean(abs(pose.gaze_x + 0.45 * pose.turn) for pose in poses),
            "up": mean(-pose.gaze_y for pose in poses),
            "wander": pstdev(pose.turn for pose in poses),
        }

    idle, listening, thinking, talking = map(traits, MOODS)
    assert listening["brows"] > idle["brows"] + 0.3
    assert listening["nod"] > idle["nod"] + 0.15
    assert listening["aside"] < 0.5 * idle["aside"], "eyes on the user"
    assert listening["wander"] < idle["wander"]
    assert thinking["aside"] > 0.4
    assert thinking["up"] > 0.4
    assert thinking["smile"] < idle["smile"] - 0.2
    assert talking["wander"] > listening["wander"]


def test_moods_give_way_smoothly() -> None:
    performance = Performance(9)
    start, last = 0.0, None
    for mood in (Mood.IDLE, Mood.LISTENING, Mood.THINKING, Mood.SPEAKING, Mood.THINKING, Mood.IDLE) * 3:
        for pose in silent(performance, mood, 0.6, start):
            if last is not None:
                for trait in ("turn", "nod", "tilt", "brows", "smile"):
                    assert abs(getattr(pose, trait) - getattr(last, trait)) < 0.17, (mood, trait)
            last = pose
        start += 0.6


def test_a_mood_has_arrived_after_400_ms() -> None:
    changed, settled = Performance(3), Performance(3)
    silent(changed, Mood.IDLE, 2.0)
    silent(settled, Mood.LISTENING, 2.0)
    for t in np.arange(2.0, 2.4, FRAME_S):
        one, other = changed.pose(t, None, Mood.LISTENING), settled.pose(t, None, Mood.LISTENING)
    assert one.brows == pytest.approx(other.brows)
    assert one.smile == pytest.approx(other.smile)


def test_head_and_brows_mark_stressed_syllables() -> None:
    stressed = "^60 " + "t60 ˈ60 ɑ120 t60 ə60 t60 ə60 t60 ə60 t60 ə60 " * 6
    plain = stressed.replace("ˈ60", "_60")
    one, other = (speaking(cued(text), 0.0, 0.0, 3.5) for text in (stressed, plain))
    assert mean(pose.nod for pose in one) > mean(pose.nod for pose in other) + 0.04
    assert max(pose.brows for pose in one) > max(pose.brows for pose in other) + 0.15


def test_a_chunk_without_samples_or_phonemes_does_no_harm() -> None:
    performance = Performance(1)
    empty = chunk(phonemes("s1"))
    performance.cue(type(empty)("", empty.pcm[:0], 22_050, [], []), 0.0)
    performance.cue(type(empty)("", empty.pcm[:0], 22_050, empty.phonemes, []), 0.0)
    assert performance.pose(0.0, 0.0, Mood.SPEAKING).jaw == 0.0


def test_unknown_phonemes_are_counted() -> None:
    performance = cued("s60 ☃60 ☃60 ɑ60")
    assert performance.unknown_phonemes == 2
    performance.clear()
    assert performance.unknown_phonemes == 2


def test_all_values_stay_in_range() -> None:
    performance = cued()
    start = 0.0
    for mood in (Mood.IDLE, Mood.LISTENING, Mood.THINKING):
        for pose in silent(performance, mood, 60.0, start):
            assert all(-1.0 <= value <= 1.0 for value in astuple(pose))
        start += 60.0
    for pose in speaking(performance, start, 0.0, 5.0):
        assert all(-1.0 <= value <= 1.0 for value in astuple(pose))


def test_breath_comes_and_goes_every_three_to_five_seconds() -> None:
    breath = [pose.breath for pose in silent(Performance(2), Mood.IDLE, 60.0)]
    peaks = sum(a < b >= c for a, b, c in zip(breath, breath[1:], breath[2:], strict=False))
    assert 12 <= peaks <= 20
    assert min(breath) < 0.05
    assert max(breath) > 0.95


def test_time_that_stands_still_or_goes_back_does_no_harm() -> None:
    performance = cued()
    performance.pose(5.0, 0.5, Mood.SPEAKING)
    performance.pose(5.0, 0.5, Mood.SPEAKING)
    assert isinstance(performance.pose(4.0, 0.4, Mood.SPEAKING), Pose)
