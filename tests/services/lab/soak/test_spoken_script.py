"""The file that a browser's microphone plays."""

import wave
from itertools import cycle, pairwise
from pathlib import Path

import numpy as np
import pytest

from pipeline.audible import Run
from services.lab.soak import spoken_script
from services.lab.soak.spoken_script import GREETING, LISTENING, LONGEST_PAUSE, MOST_QUESTIONS
from services.lab.speech_file import SpeechFile
from services.lab.studio.speech import Spoken
from tests.services.lab.heard import tone


def line(name: str, seconds: float) -> Spoken:
    pcm = np.concatenate([np.zeros(4800, np.int16), tone(seconds), np.zeros(4800, np.int16)])
    return Spoken(SpeechFile(Path(name), pcm, Run(4800, len(pcm) - 4800)), name, "synthetic", "piper")


LINES = (line("short", 0.5), line("long", 2.0))


def test_questions_are_where_the_script_says(tmp_path: Path) -> None:
    script = spoken_script.write(tmp_path / "a.wav", cycle(LINES), 3, np.random.default_rng(1))
    with wave.open(str(tmp_path / "a.wav")) as file:
        pcm = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        assert len(pcm) / file.getframerate() == pytest.approx(script.seconds)
    assert [each.spoken.text for each in script.questions] == ["short", "long", "short"]
    assert script.questions[0].onset == pytest.approx(GREETING + 0.1)
    silent = pcm.copy()
    for each in script.questions:
        first, last = round(each.onset * 48_000), round(each.end * 48_000)
        assert np.abs(pcm[first : first + 480]).max() > 1000
        assert np.abs(pcm[last - 480 : last]).max() > 1000
        silent[first:last] = 0
    assert not silent.any()
    for earlier, later in pairwise(script.questions):
        assert LISTENING < later.onset - earlier.end < LISTENING + LONGEST_PAUSE + 0.3


def test_after_the_last_question_the_file_begins_anew(tmp_path: Path) -> None:
    script = spoken_script.write(tmp_path / "a.wav", cycle(LINES), 40, np.random.default_rng(1))
    assert len(script.questions) == MOST_QUESTIONS
    again = script.asked(MOST_QUESTIONS + 1)
    assert again.spoken is script.questions[1].spoken
    assert again.end == pytest.approx(script.questions[1].end + script.seconds)
