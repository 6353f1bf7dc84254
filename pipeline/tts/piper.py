"""A Piper voice that speaks clauses and tells when each phoneme and word is spoken."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from zipfile import BadZipFile

from onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidProtobuf,
    RuntimeException,
)
from piper import PiperConfig, PiperVoice, SynthesisConfig

from pipeline.errors import MissingModelError, SynthesisError
from pipeline.events import SpeechChunk
from pipeline.packaged import network
from pipeline.tts.language import find_language
from pipeline.tts.pieces import RESAMPLER_REACH, SHORTEST, SHORTEST_SHARED, PieceCutter, cuts, whole
from pipeline.tts.script import Line, Script, write_script
from pipeline.tts.take import Take
from pipeline.tts.vits import Network, SplitNetwork, WholeNetwork
from pipeline.tts.voice_files import VoiceFiles, read_part
from pipeline.tts.voice_graph import DECODER, FLOW, TEXT
from pipeline.tts.words import is_sound

_LOGGER = logging.getLogger(__name__)

MAX_CHARACTERS = 500
"""Longer text is refused: half a minute of speech in one piece. Clauses are far shorter."""

_LONG_CLAUSE = (
    "Please remember that every long journey through the mountains needs careful planning, good shoes, "
    "enough bread and water for three days, and somebody at home who knows where we are."
)
"""As long as a clause of a reply can be (`clauses.MAX_CHARACTERS`)."""


@dataclass(frozen=True, slots=True)
class PiperSettings:
    """How the voice speaks. None: as the voice's own file says."""

    length_scale: float | None = None
    """Longer than 1 is slower."""
    noise_scale: float | None = None
    """Liveliness of the sound. With both noises 0 the same text gives the same samples."""
    noise_w: float | None = None
    """Liveliness of the rhythm."""
    gain: float = 1.5
    """Constant, so that clauses of one reply are equally loud. 1.5 brings en_US-joe to −20 dBFS RMS
    while it speaks, with 19 of 20 clauses peaking below 1.05 (measured over 420 clauses)."""


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice, loaded."""

    phonemes: PiperVoice
    """For its settings, and text → phonemes → ids; its own network is not run."""
    network: Network


def open_voice(files: VoiceFiles) -> Voice:
    """Load a voice for one thread, as the thread budget demands. Blocks for about half a second.

    Raises MissingModelError when the files are not a voice.
    """
    try:
        config = PiperConfig.from_dict(json.loads(files.config.read_text(encoding="utf-8")))
        if files.parts is None:
            piper = PiperVoice(session=network(files.model, lengths_vary=True), config=config)
            return Voice(piper, WholeNetwork(piper))
        parts = (read_part(files, name) for name in (TEXT, FLOW, DECODER))
        text, flow, decoder = (network(part, lengths_vary=True) for part in parts)
    except (ValueError, KeyError, BadZipFile, Fail, InvalidArgument, InvalidProtobuf) as reason:
        raise MissingModelError(f"{files.model} is not a Piper voice: {reason}") from reason
    return Voice(PiperVoice(session=text, config=config), SplitNetwork(config, text, flow, decoder))


class PiperSynthesizer:
    """A `Synthesizer`; one voice for all sessions. Runs on the executor it is given.

    Pauses are part of the audio: after a sentence there are at least 300 ms of quiet, where a clause
    was cut in mid-phrase at most 50 ms, so clauses played one after the other need no silence between
    them.
    """

    def __init__(
        self,
        voice: Voice,
        executor: Executor,
        settings: PiperSettings | None = None,
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        """`has_room`: no other conversation wants the processor; asked on the executor's thread.

        Raises ConfigError when there are no text rules for the voice's language.
        """
        settings = settings or PiperSettings()
        self._voice = voice
        self._executor = executor
        self._has_room = has_room
        self._gain = settings.gain
        self._synthesis = SynthesisConfig(
            length_scale=settings.length_scale,
            noise_scale=settings.noise_scale,
            noise_w_scale=settings.noise_w,
        )
        self._language = find_language(voice.phonemes.config.espeak_voice)
        self.unaligned_chunks = 0
        """Chunks whose times were spread evenly, because the voice gave no true ones."""
        self.whole_clauses = 0
        """Clauses that were made in one go, because the voice could not be parted."""

    async def warm(self) -> None:
        """Pay what the first run costs (espeak's data) before anybody waits for it, and take the memory
        of a long clause, so that it does not grow in a call: onnxruntime keeps that of the longest.
        """
        await whole(self.stream(_LONG_CLAUSE))

    async def stream(self, text: str) -> AsyncGenerator[SpeechChunk, None]:
        """A clause as speech at WIRE_RATE, in pieces: see `Synthesizer`. Its words are those of
        `text`, split at white space.

        Raises SynthesisError when there is nothing to say in it, when it is longer than
        MAX_CHARACTERS, or when the voice fails.
        """
        if len(text) > MAX_CHARACTERS:
            raise SynthesisError(f"text of {len(text)} characters: expected at most {MAX_CHARACTERS}")
        loop = asyncio.get_running_loop()
        pieces = self._pieces(text)
        if not self._voice.network.in_pieces:
            self.whole_clauses += 1
        while (piece := await loop.run_in_executor(self._executor, _next, pieces)) is not None:
            if not piece.aligned:
                self.unaligned_chunks += 1
                _LOGGER.warning("the voice gave no alignment: times of a chunk are spread evenly")
            yield piece

    def _pieces(self, text: str) -> Iterator[SpeechChunk]:
        script = write_script(text, self._voice.phonemes, self._language)
        cutter = PieceCutter(script, self._voice.phonemes.config.sample_rate)
        first = 0
        aligned = True
        for line in script.lines:
            take = self._take(line)
            aligned = aligned and take.aligned
            base, placed = cutter.length, 0
            for symbol in self._cuts(script, first, line, take):
                cutter.add(take.until(symbol, RESAMPLER_REACH))
                bounds = [base + at for at in take.bounds]
                cutter.place(pairwise(bounds[placed : symbol + 1]))
                yield cutter.cut(bounds[symbol], aligned=aligned)
                placed = symbol
            cutter.add(take.rest())
            cutter.place(pairwise(base + at for at in take.bounds[placed:]))
            first += len(line.symbols)
            if line is script.lines[-1] or script.ends_word(first):
                yield cutter.cut(cutter.length, aligned=aligned)
                aligned = True

    def _take(self, line: Line) -> Take:
        ids = self._voice.phonemes.phonemes_to_ids(list(line.symbols))
        run = self._voice.network.begin(ids, self._synthesis)
        return Take(line, run, len(ids), self._voice.phonemes, self._gain)

    def _cuts(self, script: Script, first: int, line: Line, take: Take) -> list[int]:
        """Which symbols of a line, the script's `first` and following, a piece ends before."""
        if not (self._voice.network.in_pieces and take.aligned):
            return []
        times = [at / self._voice.phonemes.config.sample_rate for at in take.bounds]
        ends = [
            (end - first, times[end - first])
            for _, end in script.spans
            if first < end < first + len(line.symbols) and script.ends_word(end)
        ]
        sound = next(at for at, symbol in enumerate(line.symbols) if is_sound(symbol))
        shortest = SHORTEST if self._has_room() else SHORTEST_SHARED
        return cuts(ends, times[sound], times[-1], shortest)


def _next(pieces: Iterator[SpeechChunk]) -> SpeechChunk | None:
    try:
        return next(pieces, None)
    except (Fail, InvalidArgument, RuntimeException) as reason:
        raise SynthesisError(f"the voice failed: {reason}") from reason
