"""What the microphone of a browser plays: a WAV file of questions and of silence to be answered in."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from pipeline.events import WIRE_RATE
from services.lab import recording
from services.lab.studio.speech import Spoken

GREETING = 9.0
"""Seconds of silence before the first question: the call is made and the agent greets."""

LISTENING = 14.0
"""Seconds of silence after a question, for a reply of usual length; a longer one is interrupted."""

LONGEST_PAUSE = 4.0
"""Seconds that may come on top of it."""

MOST_QUESTIONS = 12
"""In one file, some four minutes: browsers read all of it into memory. A user with more goes round in it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and from when to when it is heard, seconds from the file's beginning."""

    spoken: Spoken
    onset: float
    end: float


@dataclass(frozen=True, slots=True)
class SpokenScript:
    questions: tuple[Asked, ...]
    seconds: float

    def asked(self, number: int) -> Asked:
        """Question `number`; after the last the file begins anew."""
        rounds, index = divmod(number, len(self.questions))
        found, before = self.questions[index], rounds * self.seconds
        return Asked(found.spoken, before + found.onset, before + found.end)


def write(path: Path, said: Iterator[Spoken], count: int, rng: np.random.Generator) -> SpokenScript:
    """A file of so many questions, MOST_QUESTIONS at most."""
    pieces = [_silence(GREETING)]
    questions: list[Asked] = []
    at = len(pieces[0])
    for spoken in islice(said, min(count, MOST_QUESTIONS)):
        voiced = spoken.file.voiced
        questions.append(Asked(spoken, (at + voiced.start) / WIRE_RATE, (at + voiced.end) / WIRE_RATE))
        pieces += [spoken.file.pcm, _silence(LISTENING + float(rng.uniform(0, LONGEST_PAUSE)))]
        at += len(pieces[-2]) + len(pieces[-1])
    recording.write_wav(path, np.concatenate(pieces))
    return SpokenScript(tuple(questions), at / WIRE_RATE)


def _silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * WIRE_RATE), np.int16)
