import numpy as np
import pytest

from pipeline.audible import audible_runs, levels
from pipeline.events import WIRE_RATE
from services.lab.studio.splice import quietest, with_pause
from tests.services.lab.heard import silence, tone

SPEECH = np.concatenate((silence(0.1), tone(1.0), silence(0.1)))
MIDDLE = round(0.6 * WIRE_RATE)


def test_the_pause_is_as_long_as_asked_for_and_sounds_like_a_quiet_room() -> None:
    spliced = with_pause(SPEECH, MIDDLE, 0.7, audible_runs(SPEECH), 1)
    assert (spliced.pause.end - spliced.pause.start) / WIRE_RATE == pytest.approx(0.7, abs=0.001)
    assert len(spliced.pcm) - len(SPEECH) == pytest.approx(0.7 * WIRE_RATE, abs=2)
    first, second = audible_runs(spliced.pcm)
    assert (second.start - first.end) / WIRE_RATE == pytest.approx(0.7, abs=0.021)
    inside = levels(spliced.pcm[spliced.pause.start + 960 : spliced.pause.end - 960])
    assert float(np.median(inside)) == pytest.approx(-70, abs=1)
    assert float(inside.max()) < -65, "no step is left in it"


def test_no_sample_jumps_at_the_edges() -> None:
    spliced = with_pause(SPEECH, MIDDLE + 27, 0.5, audible_runs(SPEECH), 1)
    steepest = int(np.abs(np.diff(SPEECH.astype(np.int32))).max())
    assert int(np.abs(np.diff(spliced.pcm.astype(np.int32))).max()) <= steepest


def test_a_silence_of_the_speakers_own_counts() -> None:
    speech = np.concatenate((silence(0.1), tone(0.5), silence(0.2), tone(0.5), silence(0.1)))
    at = round(0.7 * WIRE_RATE)
    spliced = with_pause(speech, at, 0.5, audible_runs(speech), 1)
    assert len(spliced.pcm) - len(speech) == pytest.approx(0.3 * WIRE_RATE, abs=960)
    first, second = audible_runs(spliced.pcm)
    assert (second.start - first.end) / WIRE_RATE == pytest.approx(0.5, abs=0.021)
    with pytest.raises(ValueError, match=r"pauses for 0\.20 s there already"):
        with_pause(speech, at, 0.1, audible_runs(speech), 1)


@pytest.mark.parametrize("at", [10, len(SPEECH) - 10])
def test_before_and_after_speech_is_no_place_for_it(at: int) -> None:
    with pytest.raises(ValueError, match="between words"):
        with_pause(SPEECH, at, 0.5, audible_runs(SPEECH), 1)


def test_the_quietest_moment_near_a_boundary_is_found() -> None:
    speech = np.concatenate((tone(0.5), tone(0.02, 0.01), tone(0.5)))
    assert quietest(speech, round(0.45 * WIRE_RATE)) == pytest.approx(0.51 * WIRE_RATE, abs=481)
    assert quietest(speech, 0) >= 0
