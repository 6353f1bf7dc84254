from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import soxr

from pipeline.asr import smart_turn
from pipeline.asr.smart_turn import SmartTurn
from pipeline.errors import MissingModelError
from tests.speech import spoken


@pytest.mark.models
async def test_a_finished_sentence_sounds_more_finished_than_half_of_it() -> None:
    speech = soxr.resample(spoken("Could you please tell me where the nearest pharmacy is?"), 48_000, 16_000)
    samples = (speech / 32768).astype(np.float32)
    with ThreadPoolExecutor(1) as executor:
        detector = SmartTurn(executor)
        whole = await detector.finished(samples)
        half = await detector.finished(samples[: len(samples) // 2])
        long = await detector.finished(np.tile(samples, 6))
    assert 0 <= half < whole <= 1
    assert 0 <= long <= 1, "more than its window is no fault"


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smart_turn, "_FILE", Path("nowhere.onnx"))
    with pytest.raises(MissingModelError, match="pipecat-ai"):
        smart_turn.packaged_model()
