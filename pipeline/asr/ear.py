"""One user's microphone: 48 kHz audio in; stirrings, onsets, pauses with their utterance, and ends out."""

import math
from collections import deque

import numpy as np
import soxr

from pipeline.asr.echo import EchoCanceller
from pipeline.asr.endpointing import Endpointing, EndpointingSettings, Mark
from pipeline.asr.lulls import Lulls
from pipeline.asr.voice_activity import WINDOW, WINDOW_SECONDS, VoiceActivity
from pipeline.events import (
    HEARING_RATE,
    WIRE_RATE,
    Hearing,
    Pcm,
    Samples,
    SpeechEnd,
    SpeechOnset,
    SpeechPause,
    SpeechProgress,
    Stilled,
    Stirring,
    Utterance,
)

_TAIL_SECONDS = 0.1
"""Silence kept after the last voiced moment: Whisper drops final consonants without any."""

_FAINT = 0.25
"""Speech probability of a sound that may be the beginning of what follows. By itself it is nothing: the VAD
gives a whole "Ask" after a silence 0.3 to 0.45, and most noise less than 0.1."""

_FAINT_KEPT = 1.5
"""Seconds for which it may yet be that: "Ask … what you can do"."""

_INAUDIBLE = 2.5e-4
"""Power next to the loudest of an utterance, −36 dB, that is no speech however sure the VAD still is: its
memory holds on for about 45 ms after the last sound, with this for about 20 (120 utterances)."""

_BETWEEN_LULLS = 0.16
"""Seconds between two tellings of the utterance so far, at least: reading it takes most of that."""

_LATE = 0.5
"""Seconds by which sound may come late without its time line being begun anew."""

_DRIFT = 2e-4
"""Seconds a second that two sound cards' clocks may part."""

_FLUSH_SECONDS = 0.3
"""Of silence, pushed through when a microphone goes off, so that what it still held comes out."""


class Ear:
    """Call `hear` with every piece of audio; nothing here blocks for more than a window's VAD.

    `pre_roll` seconds before the onset belong to the utterance: the VAD is sure of speech only some
    way into it. An utterance goes on, also past its end, until `close_utterance`: whoever speaks again
    before anything was answered loses no word, but for what is older than the longest utterance.
    While a key is pressed (`press` to `release`) everything is speech.
    """

    def __init__(
        self,
        activity: VoiceActivity,
        settings: EndpointingSettings,
        *,
        pre_roll: float = 0.3,
        progress: float | None = None,
        echo: EchoCanceller | None = None,
    ) -> None:
        """`progress`: seconds of speech after which the utterance so far is told of, again and again, and
        in each lull; None: never."""
        self._activity = activity
        self._settings = settings
        self._progress = progress
        self._echo = echo
        self._endpointing = Endpointing(settings)
        # "MQ": 16 bit and a delay of about 2 ms; the higher settings only add delay to speech.
        self._resampler = soxr.ResampleStream(WIRE_RATE, HEARING_RATE, 2, dtype="float32", quality="MQ")
        self._rest = np.zeros((0, 2), np.float32)
        self._pre_roll = pre_roll
        self._before: deque[Samples] = deque(maxlen=round((pre_roll + _FAINT_KEPT + 0.3) / WINDOW_SECONDS))
        self._utterance: deque[Samples] = deque(maxlen=round((settings.max_utterance + 1) / WINDOW_SECONDS))
        self._collecting = False
        self._pressed = False
        self._length = 0.0
        """Seconds heard."""
        self._origin: float | None = None
        """When the first of them was captured, by the packets that were least late."""
        self._loudest = 0.0
        """Power of the loudest window of this utterance."""
        self._started = 0.0
        self._faint_since = math.inf
        """When the faint sound began that is going on."""
        self._faint = -math.inf
        """When one began last that was no onset by itself."""
        self._newest = 0.0
        self._told = 0.0
        self._lulls = Lulls()
        self._lull = False

    def played(self, pcm: Pcm) -> None:
        """What goes out to the user, every frame of it: part of it comes back through the microphone."""
        if self._echo is not None:
            self._echo.played(pcm)

    def hear(self, pcm: Pcm, at: float) -> list[Hearing]:
        """Mono audio at WIRE_RATE whose last sample was captured at `at` (seconds)."""
        # Where only our own voice is left, the canceller mutes what decides about speech. What is to be
        # read is not muted: that gate opens some way into a first word.
        gated = pcm if self._echo is None else self._echo.clean(pcm)
        read = pcm if self._echo is None else self._echo.residual
        both = np.stack((gated, read), axis=1).astype(np.float32)
        return self._listen(both / np.float32(32768), at)

    def _listen(self, both: Samples, at: float) -> list[Hearing]:
        """`both`, shape (n, 2): what decides about speech, and what is read."""
        audio = np.concatenate((self._rest, self._resampler.resample_chunk(both)))
        count = len(audio) // WINDOW
        self._rest = audio[count * WINDOW :]
        at = self._captured(len(both) / WIRE_RATE, at)
        heard: list[Hearing] = []
        for index in range(count):
            window = audio[index * WINDOW : (index + 1) * WINDOW]
            end = at - (len(audio) - (index + 1) * WINDOW) / HEARING_RATE
            heard.extend(self._window(window[:, 0], window[:, 1], end))
        return heard

    def judged(self, patience: float) -> list[Hearing]:
        """The present pause ends the turn once it has lasted `patience` seconds."""
        ended = not self._pressed and self._endpointing.judged(patience, self._newest) is Mark.END
        return [SpeechEnd(at=self._newest)] if ended else []

    def press(self, at: float) -> list[Hearing]:
        """Until `release`, everything is speech and no silence ends it."""
        if self._pressed:
            return []
        self._pressed = True
        speaking = self._endpointing.speaking
        self._begin(at)
        return [] if speaking else [SpeechOnset(at=at)]

    def release(self, at: float) -> list[Hearing]:
        """The key was let go: the turn is over."""
        if not self._pressed:
            return []
        self._pressed = False
        utterance = self._heard_until(at)
        self._endpointing = Endpointing(self._settings)
        return [SpeechPause(at=at, utterance=utterance), SpeechEnd(at=at)]

    def mute(self, at: float) -> list[Hearing]:
        """The microphone was switched off: an utterance under way is over, the rest is forgotten."""
        if self._pressed:
            marks = self.release(at)
        else:
            silence = np.zeros((round(_FLUSH_SECONDS * WIRE_RATE), 2), np.float32)
            marks = self._listen(silence, at + _FLUSH_SECONDS)
            marks += self.judged(0.0)
        self._activity.reset()
        self._before.clear()
        self._faint = -math.inf
        return marks

    def reconnected(self) -> None:
        """The client came back another way; how its sound comes back to us has to be learned anew."""
        if self._echo is not None:
            self._echo = EchoCanceller()

    def close_utterance(self) -> None:
        """What was heard has become a turn, or none; the next onset starts afresh.

        One that is under way, perhaps not even noticed yet, keeps what belongs to it.
        """
        if self._collecting:
            self._before.extend(self._utterance)
        self._collecting = False
        self._utterance.clear()
        self._endpointing.release()
        if self._endpointing.speaking:
            self._begin(self._endpointing.run_started)

    def forget(self) -> None:
        """Whatever is being said does not count, nor what goes on of it; the stream does."""
        self._endpointing.abandon()
        self._collecting = self._pressed = False
        self._utterance.clear()

    def _captured(self, seconds: float, at: float) -> float:
        """When sound that arrived at `at` was captured: arrival shakes, the samples are steady."""
        self._length += seconds
        origin = at - self._length
        if self._origin is None or origin < self._origin or origin > self._origin + _LATE:
            self._origin = origin
        else:
            self._origin = min(origin, self._origin + _DRIFT * seconds)
        return self._origin + self._length

    def _speech_probability(self, window: Samples) -> float:
        probability = self._activity.probability(window)
        power = float(window @ window)
        if not self._endpointing.speaking:
            self._loudest = power if probability >= self._settings.threshold else 0.0
        self._loudest = max(self._loudest, power)
        self._lull = self._lulls.observe(power, self._loudest)
        return probability if power > _INAUDIBLE * self._loudest else 0.0

    def _note_faint(self, probability: float, end: float) -> None:
        """Two windows in a row, so that a click is nothing."""
        if probability < _FAINT:
            self._faint_since = math.inf
            return
        self._faint_since = min(self._faint_since, end - WINDOW_SECONDS)
        long_enough = end - self._faint_since >= self._settings.stir - 1e-3
        if long_enough and self._faint_since > self._faint + _FAINT_KEPT:
            self._faint = self._faint_since

    def _window(self, gated: Samples, read: Samples, end: float) -> list[Hearing]:
        probability = self._speech_probability(gated)
        self._note_faint(probability, end)
        mark = self._endpointing.observe(probability, end - WINDOW_SECONDS, end)
        (self._utterance if self._collecting else self._before).append(read)
        self._newest = end
        if self._pressed:
            return []
        match mark:
            case Mark.STIR:
                return [Stirring(at=self._endpointing.run_started)]
            case Mark.STILL:
                return [Stilled(at=end)]
            case Mark.ONSET | Mark.RESUMED:
                begun = self._endpointing.run_started
                if mark is Mark.ONSET and begun - self._faint <= _FAINT_KEPT:
                    begun = min(begun, self._faint)
                self._begin(begun)
                return [SpeechOnset(at=begun)]
            case Mark.PAUSE:
                return [self._pause(end)]
            case Mark.END:
                # An utterance cut by the length limit never paused; its text is still to be had.
                paused = end > self._endpointing.speech_ended + WINDOW_SECONDS / 2
                return [SpeechEnd(at=end)] if paused else [self._pause(end), SpeechEnd(at=end)]
            case None if self._endpointing.speaking and self._tells(end):
                self._told = end
                return [SpeechProgress(at=end, utterance=self._heard_until(end))]
        return []

    def _tells(self, now: float) -> bool:
        """Whether it is time to tell what was said so far."""
        if self._progress is None:
            return False
        return now - self._told >= (_BETWEEN_LULLS if self._lull else self._progress)

    def _begin(self, at: float) -> None:
        self._told = self._newest
        self._faint = -math.inf
        if not self._collecting:
            self._collecting = True
            # At least one: a slice of the last 0 would be all of it.
            kept = max(1, math.ceil((self._newest - at + self._pre_roll) / WINDOW_SECONDS))
            self._utterance.extend(list(self._before)[-kept:])
            self._before.clear()
            self._started = at

    def _pause(self, end: float) -> SpeechPause:
        return SpeechPause(at=end, utterance=self._heard_until(self._endpointing.speech_ended))

    def _heard_until(self, ended: float) -> Utterance:
        windows = list(self._utterance)
        samples = np.concatenate(windows) if windows else np.zeros(0, np.float32)
        drop = round(max(0.0, self._newest - ended - _TAIL_SECONDS) * HEARING_RATE)
        return Utterance(
            samples[: len(samples) - drop],
            started_at=self._started,
            ended_at=ended,
            voiced=self._endpointing.voiced,
        )
