"""Who says what."""

from pathlib import Path

import numpy as np

from pipeline.audible import Run
from services.lab.soak import lines
from services.lab.speech_file import SpeechFile
from services.lab.studio.speech import Spoken
from tests.services.lab.heard import tone


def named(*names: str) -> list[Spoken]:
    pcm = tone(0.1)
    return lines.of_files([SpeechFile(Path("folder", name), pcm, Run(0, len(pcm))) for name in names])


def texts(spoken: list[Spoken]) -> list[str]:
    return [each.text for each in spoken]


def test_a_file_is_called_by_its_name() -> None:
    (line,) = named("question.wav")
    assert (line.text, line.voice, line.kind) == ("question.wav", "question", "file")


def test_lines_are_dealt_out_and_not_shared() -> None:
    hands = [texts(list(hand)) for hand in lines.dealt(named(*"abcde"), 2)]
    assert sorted(hands[0] + hands[1]) == list("abcde")


def test_with_too_few_lines_those_left_over_say_all_of_them() -> None:
    assert [texts(list(hand)) for hand in lines.dealt(named("a", "b"), 3)] == [["a"], ["b"], ["a", "b"]]


def test_all_are_said_before_one_is_said_again() -> None:
    said = lines.shuffled(named(*"abcd"), np.random.default_rng(1))
    rounds = [sorted(next(said).text for _ in range(4)) for _ in range(3)]
    assert rounds == [list("abcd")] * 3
