from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import soxr

from pipeline.asr import smart_turn
from pipeline.asr.smart_turn import SmartTurn
from pipeline.errors import MissingModelError
from tests.speech import spoken

# Several, since the voice is random and the detector now and then takes a finished one for unfinished.
_SENTENCES = (
    "What is the capital of France?",
    "I would like a cup of tea.",
    "My sister lives in a small town near the sea.",
    "Why is the sky blue?",
)


@pytest.mark.models
async def test_finished_sentences_sound_more_finished_than_halves_of_them() -> None:
    speech = [soxr.resample(spoken(sentence), 48_000, 16_000) / 32768 for sentence in _SENTENCES]
    with ThreadPoolExecutor(1) as executor:
        detector = SmartTurn(executor)
        whole = [await detector.finished(samples.astype(np.float32)) for samples in speech]
        half = [
            await detector.finished(samples[: len(samples) // 2].astype(np.float32)) for samples in speech
        ]
        long = await detector.finished(np.tile(speech[0], 6).astype(np.float32))
    assert all(0 <= probability <= 1 for probability in (*whole, *half, long)), (
        "more than its window is no fault"
    )
    assert np.mean(half) + 0.3 < np.mean(whole)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smart_turn, "_FILE", Path("nowhere.onnx"))
    with pytest.raises(MissingModelError, match="pipecat-ai"):
        smart_turn.packaged_model()
