"""A Piper voice that speaks clauses and tells when each phoneme and word is spoken."""

import asyncio
import itertools
import json
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import onnxruntime
import soxr
from onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidProtobuf,
    RuntimeException,
)
from piper import PiperConfig, PiperVoice, SynthesisConfig
from piper.const import BOS, PAD

from pipeline.errors import MissingModelError, SynthesisError
from pipeline.events import WIRE_RATE, Phoneme, Samples, SpeechChunk
from pipeline.tts.characters import sayable
from pipeline.tts.language import find_language
from pipeline.tts.verbalise import spoken_forms
from pipeline.tts.voice_files import VoiceFiles
from pipeline.tts.waveform import CLAUSE_PAUSE, CUT_PAUSE, SENTENCE_PAUSE, amplified, with_edges
from pipeline.tts.words import is_sound, word_times

_LOGGER = logging.getLogger(__name__)

MAX_CHARACTERS = 500
"""Longer text is refused: half a minute of speech in one piece. Clauses are far shorter."""

_MAX_SYMBOLS = 300
"""Phonemes per run of the voice, about 20 s. A run takes 25 MB for each second and keeps them
(measured); a clause of long numbers can come to minutes."""

_SENTENCE_ENDS = frozenset(".?!")
_CLAUSE_ENDS = frozenset(",;:")


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
class _Take:
    """One run of the voice. Spans in samples of the voice's rate."""

    samples: Samples
    phonemes: Sequence[tuple[str, int, int]]
    aligned: bool


def open_voice(files: VoiceFiles) -> PiperVoice:
    """Load a voice for one thread, as the thread budget demands. Blocks for about half a second.

    Raises MissingModelError when the files are not a voice.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        config = PiperConfig.from_dict(json.loads(files.config.read_text(encoding="utf-8")))
        session = onnxruntime.InferenceSession(
            str(files.model), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except (ValueError, KeyError, Fail, InvalidArgument, InvalidProtobuf) as reason:
        raise MissingModelError(f"{files.model} is not a Piper voice: {reason}") from reason
    return PiperVoice(session=session, config=config)


def _runs(symbols: list[str]) -> Iterator[list[str]]:
    """A sentence's phonemes in runs of at most _MAX_SYMBOLS, parted at a space where there is one."""
    while len(symbols) > _MAX_SYMBOLS:
        space = next((at for at in range(_MAX_SYMBOLS, 0, -1) if symbols[at] == " "), _MAX_SYMBOLS)
        yield symbols[:space]
        symbols = symbols[space:]
    yield symbols


class PiperSynthesizer:
    """A `Synthesizer`; one voice for all sessions. Runs on the executor it is given.

    What espeak takes for several sentences still becomes one chunk. Pauses are part of the audio:
    after a sentence there are at least 300 ms of quiet, where a clause was cut in mid-phrase at most
    50 ms, so clauses played one after the other need no silence between them.
    """

    def __init__(self, voice: PiperVoice, executor: Executor, settings: PiperSettings | None = None) -> None:
        """Raises ConfigError when there are no text rules for the voice's language."""
        settings = settings or PiperSettings()
        self._voice = voice
        self._executor = executor
        self._gain = settings.gain
        self._synthesis = SynthesisConfig(
            length_scale=settings.length_scale,
            noise_scale=settings.noise_scale,
            noise_w_scale=settings.noise_w,
        )
        self._language = find_language(voice.config.espeak_voice)
        self.unaligned_chunks = 0
        """Chunks whose times were spread evenly, because the voice gave no true ones."""

    async def warm(self) -> None:
        """Pay what the first run costs (espeak's data, memory), before anybody waits for it."""
        await self.synthesize("Hello, how are you today?")

    async def synthesize(self, text: str) -> SpeechChunk:
        """A clause as speech at WIRE_RATE; its words are those of `text`, split at white space.

        Raises SynthesisError when there is nothing to say in it, when it is longer than
        MAX_CHARACTERS, or when the voice fails.
        """
        loop = asyncio.get_running_loop()
        chunk = await loop.run_in_executor(self._executor, self._speak, text)
        if not chunk.aligned:
            self.unaligned_chunks += 1
            _LOGGER.warning("the voice gave no alignment: times of a chunk are spread evenly")
        return chunk

    def _speak(self, text: str) -> SpeechChunk:
        if len(text) > MAX_CHARACTERS:
            raise SynthesisError(f"text of {len(text)} characters: expected at most {MAX_CHARACTERS}")
        words = text.split()
        forms = [sayable(form) for form in spoken_forms(words, self._language)]
        takes = self._takes(" ".join(filter(None, forms)))
        rate = self._voice.config.sample_rate
        speech = np.concatenate([take.samples for take in takes])
        pcm = np.clip(soxr.resample(speech, rate, WIRE_RATE) * 32767, -32768, 32767).astype(np.int16)
        duration = len(pcm) / WIRE_RATE
        offsets = itertools.accumulate((len(take.samples) for take in takes), initial=0)
        phonemes = [
            Phoneme(symbol, min((offset + start) / rate, duration), min((offset + end) / rate, duration))
            for take, offset in zip(takes, offsets, strict=False)
            for symbol, start, end in take.phonemes
        ]
        alone = [list(itertools.chain.from_iterable(self._voice.phonemize(form))) for form in forms]
        return SpeechChunk(
            text=text,
            pcm=pcm,
            sample_rate=WIRE_RATE,
            phonemes=phonemes,
            words=word_times(list(zip(words, alone, strict=True)), phonemes, duration),
            aligned=all(take.aligned for take in takes),
        )

    def _takes(self, said: str) -> list[_Take]:
        sentences = [
            [symbol for symbol in sentence if symbol in self._voice.config.phoneme_id_map]
            for sentence in self._voice.phonemize(said)
        ]
        runs = [run for run in itertools.chain(*map(_runs, sentences)) if any(map(is_sound, run))]
        if not runs:
            raise SynthesisError("nothing to say: no letter or digit that the voice can speak")
        return [self._take(run) for run in runs]

    def _take(self, symbols: list[str]) -> _Take:
        end = next(symbol for symbol in reversed(symbols) if symbol != " ")
        least, most = 0.0, None
        if end in _SENTENCE_ENDS:
            least = SENTENCE_PAUSE
        elif end in _CLAUSE_ENDS:
            least = CLAUSE_PAUSE
        else:
            # The sentence goes on in the next clause; without a comma the voice would end it here.
            symbols = [*symbols, ",", " "]
            most = CUT_PAUSE
        ids = self._voice.phonemes_to_ids(symbols)
        try:
            result = self._voice.phoneme_ids_to_audio(ids, self._synthesis, include_alignments=True)
        except (Fail, InvalidArgument, RuntimeException) as reason:
            raise SynthesisError(f"the voice failed on {len(ids)} phoneme ids: {reason}") from reason
        raw, widths = result if isinstance(result, tuple) else (result, None)
        aligned = widths is not None and len(widths) == len(ids) and int(widths.sum()) == len(raw)
        if widths is None or not aligned:
            widths = np.full(len(ids), len(raw) / len(ids))
        bounds = self._bounds(symbols, widths)
        rate = self._voice.config.sample_rate
        samples, cut = with_edges(amplified(raw, self._gain), rate, least=least, most=most)
        inside = np.clip(bounds - cut, 0, len(samples)).astype(int)
        spans = [
            (symbol, int(start), int(stop))
            for symbol, (start, stop) in zip(symbols, itertools.pairwise(inside), strict=True)
        ]
        return _Take(samples=samples, phonemes=spans, aligned=aligned)

    def _bounds(self, symbols: Sequence[str], widths: np.ndarray) -> np.ndarray:
        """Sample at which each symbol begins, and the end of the last; each has its pad after it."""
        ids = self._voice.config.phoneme_id_map
        counts = [len(ids[symbol]) + len(ids[PAD]) for symbol in (BOS, *symbols)]
        return np.cumsum(np.add.reduceat(widths, [0, *itertools.accumulate(counts)]))[: len(symbols) + 1]
