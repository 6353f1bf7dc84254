"""What is said in benchmarks: texts, stretches of recordings, and speech with pauses really made."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pipeline.audible import Run, audible_runs
from pipeline.events import WIRE_RATE
from services.lab.bench import noises
from services.lab.studio.prepare import amplified, faded, gain, stretches
from services.lab.studio.speech import LONGEST_PAUSE, SHORTEST_PAUSE, Studio, corpus
from tests.services.lab.heard import silence, tone

HUMAN = Path(__file__).parents[4] / "shared" / "speech"


def test_there_are_enough_different_things_to_say() -> None:
    spoken = corpus("questions") + corpus("statements")
    assert len(set(spoken)) == len(spoken) >= 60
    assert all(3 <= len(line.split()) <= 14 for line in spoken)


def test_every_pause_has_a_place_and_most_are_inside_a_clause() -> None:
    lines = corpus("pauses")
    assert len(set(lines)) >= 60
    for line in lines:
        before, after = line.replace("||", "|").split("|")
        assert before.split(), line
        assert after.split(), line
    assert sum("||" in line for line in lines) <= len(lines) / 4


def runs(*seconds: tuple[float, float]) -> list[Run]:
    return [Run(round(a * WIRE_RATE), round(b * WIRE_RATE)) for a, b in seconds]


def test_a_recording_is_parted_at_its_own_pauses() -> None:
    found = stretches(runs((0, 1), (1.2, 2), (2.5, 4), (5, 5.5), (6, 12)))
    assert found == runs((0, 2), (2.5, 4)), "half a second and six seconds are no utterances"


def test_every_voice_is_equally_loud() -> None:
    for level in (0.01, 0.5):
        pcm = np.concatenate((silence(0.2), tone(0.5, level), silence(0.2)))
        loud = amplified(pcm, gain(pcm, audible_runs(pcm)))[9600:33600].astype(float) / 32768
        assert 20 * np.log10(np.sqrt(np.mean(loud**2))) == pytest.approx(-20, abs=0.1)
    assert gain(silence(0.1), []) == 1.0


def test_a_recordings_room_fades_away_around_its_speech() -> None:
    pcm = tone(0.5)
    soft = faded(pcm)
    assert soft[0] == soft[-1] == 0
    assert np.array_equal(soft[1000:-1000], pcm[1000:-1000])
    assert np.abs(soft[-480:]).max() < np.abs(pcm[-480:]).max()


@pytest.mark.models
@pytest.mark.human
@pytest.mark.skipif(not HUMAN.is_dir(), reason="needs recordings of human speech beside the checkout")
async def test_recordings_end_with_their_speakers_last_word(tmp_path: Path) -> None:
    studio = Studio(tmp_path, HUMAN, np.random.default_rng(3), lambda told: None)
    spoken = [each for each in await studio.questions(10) if each.kind == "human"]
    lasts = {each.text.split()[-1].strip(".") for each in spoken}
    assert lasts == {"country", "dog", "enough", "figures", "living"}


@pytest.mark.parametrize(
    ("file", "seconds"), [(noises.cough(1), noises.COUGH_SECONDS), (noises.mm_hm(1), noises.MM_HM_SECONDS)]
)
def test_a_listeners_noises_are_as_long_as_said(file: noises.SpeechFile, seconds: float) -> None:
    assert (file.voiced.end - file.voiced.start) / WIRE_RATE == pytest.approx(seconds, abs=0.001)
    heard = audible_runs(file.pcm)
    assert heard[-1].end <= file.voiced.end + 480
    assert np.abs(file.pcm).max() < 32767, "not clipped"


def test_no_two_coughs_are_the_same() -> None:
    assert not np.array_equal(noises.cough(1).pcm, noises.cough(2).pcm)


@pytest.mark.models
async def test_speech_is_made_with_pauses_of_the_length_it_says(tmp_path: Path) -> None:
    told: list[str] = []
    studio = Studio(tmp_path, tmp_path / "none", np.random.default_rng(3), told.append)
    spoken = await studio.with_pauses(2)
    assert len(spoken) == 2
    assert told
    for each in spoken:
        assert each.kind == "synthetic"
        assert each.pause is not None
        assert SHORTEST_PAUSE * 1000 <= each.pause.ms <= LONGEST_PAUSE * 1000
        gaps = [(b.start - a.end) / 48 for a, b in pairwise(audible_runs(each.file.pcm))]
        assert min(abs(gap - each.pause.ms) for gap in gaps) <= 25
        assert f"{' '.join(each.pause.before)} {' '.join(each.pause.after)}" == each.text
        assert audible_runs(each.file.pcm)[-1].end <= each.file.voiced.end + 1440, (
            "a soft tail may lie below the floor of the file"
        )


@pytest.mark.models
@pytest.mark.human
@pytest.mark.skipif(not HUMAN.is_dir(), reason="no recordings beside the checkout")
async def test_half_of_the_pauses_are_in_human_speech(tmp_path: Path) -> None:
    spoken = await Studio(tmp_path, HUMAN, np.random.default_rng(3), lambda text: None).with_pauses(4)
    assert sum(each.kind == "human" for each in spoken) == 2
    assert all(each.pause and each.pause.before and each.pause.after for each in spoken)
