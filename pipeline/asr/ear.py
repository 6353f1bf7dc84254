"""One user's microphone: 48 kHz audio in, onsets, pauses with their utterance, and ends out."""

from collections import deque

import numpy as np
import soxr

from pipeline.asr.endpointing import Endpointing, EndpointingSettings, Mark
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
    Utterance,
)

_TAIL_SECONDS = 0.1
"""Silence kept after the last voiced moment: Whisper drops final consonants without any."""


class Ear:
    """Call `hear` with every piece of audio; nothing here blocks for more than a window's VAD.

    `pre_roll` seconds before the onset belong to the utterance: the VAD is sure of speech only some
    way into it. An utterance goes on, also past its end, until `close_utterance`: whoever speaks again
    before the turn was committed loses no word, but for what is older than the longest utterance.
    """

    def __init__(
        self, activity: VoiceActivity, settings: EndpointingSettings, *, pre_roll: float = 0.3
    ) -> None:
        self._activity = activity
        self._settings = settings
        self._endpointing = Endpointing(settings)
        # "MQ": 16 bit and a delay of about 2 ms; the higher settings only add delay to speech.
        self._resampler = soxr.ResampleStream(WIRE_RATE, HEARING_RATE, 1, dtype="float32", quality="MQ")
        self._rest = np.zeros(0, np.float32)
        self._before: deque[Samples] = deque(maxlen=max(1, round(pre_roll / WINDOW_SECONDS)) + 4)
        self._utterance: deque[Samples] = deque(maxlen=round((settings.max_utterance + 1) / WINDOW_SECONDS))
        self._started = 0.0
        self._newest = 0.0

    def hear(self, pcm: Pcm, at: float) -> list[Hearing]:
        """Mono audio at WIRE_RATE whose last sample was captured at `at` (seconds)."""
        samples = self._resampler.resample_chunk(pcm.astype(np.float32) / 32768)
        audio = np.concatenate((self._rest, samples))
        count = len(audio) // WINDOW
        self._rest = audio[count * WINDOW :]
        heard: list[Hearing] = []
        for index in range(count):
            window = audio[index * WINDOW : (index + 1) * WINDOW]
            end = at - (len(audio) - (index + 1) * WINDOW) / HEARING_RATE
            heard.extend(self._window(window, end))
        return heard

    def mute(self, at: float) -> list[Hearing]:
        """The microphone was switched off: an utterance under way is over, the rest is forgotten."""
        marks = self.hear(np.zeros(WIRE_RATE, np.int16), at + 1.0)
        self._activity.reset()
        self._before.clear()
        return marks

    def close_utterance(self) -> None:
        """What was heard has become a turn, or none; the next onset starts afresh."""
        self._utterance.clear()
        self._endpointing.release()

    def forget(self) -> None:
        """Whatever was being said does not count; the stream goes on."""
        self._endpointing = Endpointing(self._settings)
        self._utterance.clear()

    def _window(self, window: Samples, end: float) -> list[Hearing]:
        mark = self._endpointing.observe(self._activity.probability(window), end - WINDOW_SECONDS, end)
        if self._utterance:
            self._utterance.append(window)
        else:
            self._before.append(window)
        self._newest = end
        match mark:
            case Mark.ONSET | Mark.RESUMED:
                if not self._utterance:
                    self._utterance.extend(self._before)
                    self._before.clear()
                    self._started = self._endpointing.run_started
                return [SpeechOnset(at=self._endpointing.run_started)]
            case Mark.PAUSE:
                return [self._pause(end)]
            case Mark.END:
                # An utterance cut by the length limit never paused; its text is still to be had.
                paused = end > self._endpointing.speech_ended + WINDOW_SECONDS / 2
                return [SpeechEnd(at=end)] if paused else [self._pause(end), SpeechEnd(at=end)]
            case None:
                return []

    def _pause(self, end: float) -> SpeechPause:
        ended = self._endpointing.speech_ended
        samples = np.concatenate(list(self._utterance))
        drop = round(max(0.0, self._newest - ended - _TAIL_SECONDS) * HEARING_RATE)
        utterance = Utterance(samples[: len(samples) - drop], started_at=self._started, ended_at=ended)
        return SpeechPause(at=end, utterance=utterance)
