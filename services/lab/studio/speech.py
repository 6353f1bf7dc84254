"""What callers say in a benchmark: questions nobody has heard yet, with and without a pause in them."""

import asyncio
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.audible import Run, audible_runs
from pipeline.errors import VisavisError
from pipeline.events import WIRE_RATE
from services import own_module
from services.lab import speech_file
from services.lab.speech_file import SpeechFile
from services.lab.studio import splice
from services.lab.studio.clip import Clip

SHORTEST_PAUSE, LONGEST_PAUSE = 0.3, 0.9
"""Seconds."""

_ESPEAK_VOICES = ("en-us+m3", "en-us+f3", "en-gb+m4", "en-gb+f2", "en-us+m7")
_PIPER_SHARE = 0.6

Progress = Callable[[str], None]


class PrepareError(VisavisError):
    """The speech for a benchmark could not be made."""

    code = "prepare_failed"


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause inside an utterance."""

    ms: float
    inside: bool
    """Between words that belong together, not at the border of two clauses."""
    before: tuple[str, ...]
    after: tuple[str, ...]
    at: float
    """Seconds from the utterance's first voiced sample to the pause."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One utterance to be said. `kind` is synthetic or human."""

    file: SpeechFile
    text: str
    kind: str
    voice: str
    pause: Pause | None = None


@dataclass(frozen=True, slots=True)
class Studio:
    """Makes speech in a process of its own. `folder` takes the files; `recordings` may be missing."""

    folder: Path
    recordings: Path
    rng: np.random.Generator
    progress: Progress

    async def questions(self, count: int) -> list[Spoken]:
        """Shuffled questions and statements: each recording once, synthetic speech for the rest."""
        human = [_plain(clip, "human") for clip in await self._recorded()][: count // 2]
        wanted = count - len(human)
        texts = corpus("questions") + corpus("statements")
        self.rng.shuffle(texts)
        jobs = [self._job(texts[k % len(texts)], f"question-{k:03d}") for k in range(wanted)]
        made = [_plain(clip, "synthetic") for clip in await self._prepared(jobs)]
        return self._shuffled(human + made)

    async def with_pauses(self, count: int) -> list[Spoken]:
        """Utterances with one inner pause each, half of them human speech when there are recordings."""
        human = self._spliced_recordings(await self._recorded(), count // 2)
        return self._shuffled(human + await self._spliced_synthetic(count - len(human)))

    def _spliced_recordings(self, clips: Sequence[Clip], count: int) -> list[Spoken]:
        places = [(clip, k) for clip in clips for k in range(len(clip.boundaries))]
        self.rng.shuffle(places)
        found: list[Spoken] = []
        # A place may serve several times, with pauses of other lengths.
        for number in range(count * 4 if places else 0):
            if len(found) == count:
                break
            clip, k = places[number % len(places)]
            parts = tuple(clip.words[: k + 1]), tuple(clip.words[k + 1 :])
            inside = not clip.words[k].endswith((",", ".", "?", ";"))
            paused = self._paused(clip, k, parts, inside=inside)
            if paused is not None:
                found.append(Spoken(paused[0], " ".join(clip.words), "human", clip.voice, paused[1]))
        return found

    async def _spliced_synthetic(self, count: int) -> list[Spoken]:
        lines = corpus("pauses")
        self.rng.shuffle(lines)
        halves = [
            (line.replace("||", "|").split("|"), "||" not in line)
            for line in (lines[k % len(lines)] for k in range(count + max(2, count // 2)))
        ]
        # More than are needed: in some no voice's words are found again.
        jobs = [
            self._job(" ".join(part.strip() for part in parts), f"pause-{k:03d}", boundaries=True)
            for k, (parts, _) in enumerate(halves)
        ]
        found: list[Spoken] = []
        for ((before, after), inside), clip in zip(halves, await self._prepared(jobs), strict=True):
            parts = tuple(before.split()), tuple(after.split())
            paused = self._paused(clip, len(parts[0]) - 1, parts, inside=inside)
            if paused is not None:
                found.append(Spoken(paused[0], " ".join(clip.words), "synthetic", clip.voice, paused[1]))
        return found[:count]

    def _paused(
        self,
        clip: Clip,
        boundary: int,
        parts: tuple[tuple[str, ...], tuple[str, ...]],
        *,
        inside: bool,
    ) -> tuple[SpeechFile, Pause] | None:
        """None where the speech falls silent for longer already, or where the boundary is unknown."""
        if not clip.boundaries:
            return None
        file = _file(clip)
        # `load` cut the file's edges; boundaries count from the clip's own first sample.
        at = clip.boundaries[boundary] - file.skipped
        seconds = float(self.rng.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))
        runs = audible_runs(file.pcm, clip.limit)
        try:
            spliced = splice.with_pause(file.pcm, at, seconds, runs, int(self.rng.integers(1 << 31)))
        except ValueError:
            return None
        added = len(spliced.pcm) - len(file.pcm)
        voiced = Run(file.voiced.start, file.voiced.end + added)
        begins = (spliced.pause.start - voiced.start) / WIRE_RATE
        return SpeechFile(file.path, spliced.pcm, voiced), Pause(
            round(seconds * 1000, 1), inside, *parts, begins
        )

    def _job(self, text: str, name: str, *, boundaries: bool = False) -> dict[str, Any]:
        voices = ["piper", "piper"]
        if shutil.which("espeak-ng") and self.rng.random() > _PIPER_SHARE:
            speed = int(self.rng.integers(140, 176))
            voices.insert(0, f"espeak:{_ESPEAK_VOICES[int(self.rng.integers(len(_ESPEAK_VOICES)))]}:{speed}")
        return {
            "voices": voices,
            "text": text,
            "wav": str(self.folder / f"{name}.wav"),
            "boundaries": boundaries,
        }

    async def _recorded(self) -> list[Clip]:
        files = sorted(path for suffix in ("*.wav", "*.flac") for path in self.recordings.glob(suffix))
        return await self._prepared([{"recording": str(path), "folder": str(self.folder)} for path in files])

    async def _prepared(self, jobs: Sequence[dict[str, Any]]) -> list[Clip]:
        """The clips of all jobs, from a process that ends with them. Raises PrepareError."""
        if not jobs:
            return []
        process = await asyncio.create_subprocess_exec(
            *own_module.command("services.lab.studio.prepare"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours to pass on
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(jobs).encode())
        process.stdin.close()
        clips: list[Clip] = []
        try:
            async for line in process.stdout:
                clips.append(Clip(**json.loads(line)))
                self.progress(f"making speech: {clips[-1].wav}")
        except BaseException:
            process.terminate()
            raise
        finally:
            await process.wait()
        if process.returncode:
            raise PrepareError("the speech could not be made; what went wrong stands above")
        return clips

    def _shuffled(self, spoken: list[Spoken]) -> list[Spoken]:
        return [spoken[k] for k in self.rng.permutation(len(spoken))]


def _plain(clip: Clip, kind: str) -> Spoken:
    return Spoken(_file(clip), " ".join(clip.words), kind, clip.voice)


def _file(clip: Clip) -> SpeechFile:
    return speech_file.load(Path(clip.wav), clip.limit)


def corpus(name: str) -> list[str]:
    """The lines of corpus/NAME.txt."""
    text = (resources.files("services.lab.bench") / "corpus" / f"{name}.txt").read_text("utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
