"""One line of a script as the voice speaks it: audio with its edges done, and where its phonemes lie."""

import itertools
from collections.abc import Sequence

import numpy as np
from piper import PiperVoice
from piper.const import BOS, PAD

from pipeline.events import Samples
from pipeline.tts.script import Line
from pipeline.tts.vits import Run, Widths
from pipeline.tts.waveform import amplified, lead, with_pause


class Take:
    """Gives its audio piece by piece. Positions are samples from the first one that it gives."""

    def __init__(self, line: Line, run: Run, ids: int, voice: PiperVoice, gain: float) -> None:
        """`run` is of so many phoneme `ids`, which stand for the line's symbols."""
        self._line = line
        self._run = run
        self._rate: int = voice.config.sample_rate
        self._gain = gain
        self._dropped: int | None = None
        self._given = 0
        widths = run.widths
        self.aligned = widths is not None and len(widths) == ids and int(widths.sum()) == run.length
        """Whether the positions are the voice's own; otherwise all ids last equally long."""
        if widths is None or not self.aligned:
            widths = np.full(ids, run.length / ids)
        self._bounds = _bounds(line.symbols, widths, voice)

    @property
    def bounds(self) -> Sequence[int]:
        """Where each symbol begins, and the last one's end. Before `until` was called the quiet
        before the first sound counts; what was not given yet ends at what was.
        """
        if self._dropped is None:
            return [int(at) for at in self._bounds]
        return [int(at) for at in np.clip(self._bounds - self._dropped, 0, self._given)]

    def until(self, symbol: int, and_after: int) -> Samples:
        """From where the call before ended to that symbol's beginning, and `and_after` samples more."""
        samples = self._sound(int(self._bounds[symbol]) + and_after)
        self._given += len(samples)
        return samples

    def rest(self) -> Samples:
        """From where the call before ended to the end, and the pause."""
        samples = with_pause(
            self._sound(self._run.length),
            self._rate,
            least=self._line.least_pause,
            most=self._line.most_pause,
        )
        self._given += len(samples)
        return samples

    def _sound(self, stop: int) -> Samples:
        samples = amplified(self._run.until(stop), self._gain)
        if self._dropped is None:
            self._dropped = lead(samples, self._rate)
            samples = samples[self._dropped :]
        return samples


def _bounds(symbols: Sequence[str], widths: Widths, voice: PiperVoice) -> Widths:
    """Sample at which each symbol begins, and the end of the last; each has its pad after it."""
    ids = voice.config.phoneme_id_map
    counts = [len(ids[symbol]) + len(ids[PAD]) for symbol in (BOS, *symbols)]
    sums: Widths = np.cumsum(np.add.reduceat(widths, [0, *itertools.accumulate(counts)]))
    return sums[: len(symbols) + 1]
