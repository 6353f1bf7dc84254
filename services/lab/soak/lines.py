"""What users say: the files they were given, or lines synthesised for the run."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from services.lab.soak.options import Options
from services.lab.speech_file import SpeechFile
from services.lab.studio.speech import Spoken, Studio

_MOST_LINES = 60
"""As many as there are different ones; a long soak says them again."""

_SHORTEST_TURN = 5.0
"""Seconds; more turns than one in this time nobody has."""


async def synthesised(options: Options, rng: np.random.Generator, console: Console) -> list[Spoken]:
    """Different lines, as many as the users can use; made in a process of its own. Raises PrepareError."""
    each = options.turns or math.ceil((options.seconds or 0.0) / _SHORTEST_TURN)
    with (
        tempfile.TemporaryDirectory(prefix="visavis-soak-") as folder,
        console.status("making speech") as status,
    ):
        studio = Studio(Path(folder), Path(folder, "none"), rng, status.update)
        return await studio.questions(min(_MOST_LINES, options.sessions * each))


def of_files(files: Sequence[SpeechFile]) -> list[Spoken]:
    """Files as lines; what is said in them is not known."""
    return [Spoken(file, file.path.name, "file", file.path.stem) for file in files]


def dealt(lines: Sequence[Spoken], users: int) -> list[Sequence[Spoken]]:
    """Lines of its own for each user; all of them for everybody where there are fewer than users."""
    return [lines[user::users] or lines for user in range(users)]


def shuffled(lines: Sequence[Spoken], rng: np.random.Generator) -> Iterator[Spoken]:
    """Without end: all of them in one order, then in another."""
    while True:
        for index in rng.permutation(len(lines)):
            yield lines[index]
