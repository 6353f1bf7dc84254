from itertools import pairwise
from random import Random
from statistics import mean

import numpy as np
import pytest

from pipeline.render.idle_life import Blinks, Drift, Gaze, Nods

FRAME_S = 0.04


def blinks(seed: int, seconds: float, step: float = 0.005) -> list[tuple[float, float]]:
    """Start and end of each blink."""
    lids = Blinks(Random(seed))
    found: list[tuple[float, float]] = []
    start: float | None = None
    for now in np.arange(50.0, 50.0 + seconds, step):
        shut = lids.closure(now) > 0
        if shut and start is None:
            start = now
        elif not shut and start is not None:
            found.append((start, now))
            start = None
    return found


def test_blinks_last_150_to_200_ms() -> None:
    for start, end in blinks(1, 120):
        assert 0.14 <= end - start <= 0.21


def test_blinks_come_every_two_to_six_seconds_or_double() -> None:
    gaps = [b[0] - a[1] for a, b in pairwise(blinks(2, 600))]
    doubles = [gap for gap in gaps if gap < 0.2]
    singles = [gap for gap in gaps if gap >= 0.2]
    assert 0.03 < len(doubles) / len(gaps) < 0.3
    assert all(1.7 <= gap <= 6.1 for gap in singles)
    assert max(singles) - min(singles) > 2, "no metronome"


def test_every_blink_is_seen_at_25_frames_a_second() -> None:
    lids = Blinks(Random(3))
    values = [lids.closure(now) for now in np.arange(0, 120, FRAME_S)]
    assert sum(a < 0.8 <= b for a, b in pairwise(values)) >= 0.9 * len(blinks(3, 120))


def test_a_long_pause_between_frames_does_not_queue_up_blinks() -> None:
    lids = Blinks(Random(4))
    lids.closure(0.0)
    assert lids.closure(10_000.0) == 0.0
    assert lids.closure(10_000.1) == 0.0


def test_drift_is_smooth_bounded_centred_and_does_not_loop() -> None:
    drift = Drift(7, 1.0)
    values = [drift.at(t) for t in np.arange(0, 500, FRAME_S)]
    assert max(map(abs, values)) <= 1
    assert abs(mean(values)) < 0.1
    assert max(abs(a - b) for a, b in pairwise(values)) < 0.2
    signal = np.array(values) - mean(values)
    for lag in range(100, 6_000, 50):
        assert np.corrcoef(signal[:-lag], signal[lag:])[0, 1] < 0.6


def test_drifts_differ_by_seed_and_repeat_by_seed() -> None:
    assert Drift(1, 2.0).at(12.3) == Drift(1, 2.0).at(12.3)
    assert Drift(1, 2.0).at(12.3) != Drift(2, 2.0).at(12.3)


def test_a_saccade_takes_two_frames_at_most() -> None:
    gaze = Gaze(Random(5))
    gaze.look(10.0, (1.0, -1.0), 0.0, (1.0, 1.0))
    assert gaze.at(10.0) == (0.0, 0.0)
    assert gaze.at(10.07) == pytest.approx((1.0, -1.0))
    assert not gaze.restless(10.9)
    assert gaze.restless(11.0)


def test_looking_elsewhere_in_mid_saccade_does_not_jump() -> None:
    gaze = Gaze(Random(6))
    gaze.look(0.0, (1.0, 0.0), 0.0, (1.0, 1.0))
    before = gaze.at(0.03)
    gaze.look(0.03, (-1.0, 0.0), 0.0, (1.0, 1.0))
    assert gaze.at(0.03) == before


def test_nods_begin_and_end_upright_and_pause_between() -> None:
    nods = Nods(Random(8))
    values = [nods.at(now) for now in np.arange(0, 60, FRAME_S)]
    assert max(values) > 0.5
    assert min(values) >= 0
    assert 0.1 < np.mean(np.array(values) > 0) < 0.5
    assert max(abs(a - b) for a, b in pairwise(values)) < 0.25
