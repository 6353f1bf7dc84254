import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from piper import PiperConfig, SynthesisConfig
from piper.phoneme_ids import DEFAULT_PHONEME_ID_MAP

from pipeline.tts.vits import DECODER_REACH, SplitNetwork
from tests.pipeline.tts.networks import HOP, SplitTone

OWN = {"noise_scale": 0.5, "length_scale": 1.25, "noise_w": 0.75}


def network(tone: SplitTone) -> SplitNetwork:
    config = {
        "num_symbols": 256,
        "num_speakers": 1,
        "audio": {"sample_rate": 22_050},
        "espeak": {"voice": "en-us"},
        "inference": OWN,
        "phoneme_id_map": DEFAULT_PHONEME_ID_MAP,
    }
    return SplitNetwork(PiperConfig.from_dict(config), tone.text, tone.flow, tone.decoder)


@given(st.integers(1, 40), st.lists(st.integers(0, 220 * HOP), max_size=6).map(sorted))
def test_pieces_are_the_samples_of_the_whole(ids: int, stops: list[int]) -> None:
    at_once = network(SplitTone()).begin([1] * ids, SynthesisConfig())
    whole = at_once.until(at_once.length)
    assert len(whole) == at_once.length == 5 * HOP * ids
    run = network(SplitTone()).begin([1] * ids, SynthesisConfig())
    given = 0
    pieces = []
    for stop in [*stops, run.length]:
        pieces.append(run.until(stop))
        given += len(pieces[-1])
        assert given >= min(stop, run.length)
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-6)


def test_no_more_is_decoded_than_is_asked_for() -> None:
    tone = SplitTone()
    run = network(tone).begin([1] * 100, SynthesisConfig())
    assert tone.decoded == 0
    run.until(30 * HOP)
    assert tone.decoded == 30 + DECODER_REACH
    assert len(run.until(30 * HOP)) == 0
    assert tone.decoded == 30 + DECODER_REACH


def test_what_is_not_set_is_as_the_voice_says() -> None:
    tone = SplitTone()
    network(tone).begin([1], SynthesisConfig(noise_scale=0.0))
    assert tone.scales == pytest.approx([0.0, 1.25, 0.75])
    network(tone).begin([1], SynthesisConfig(length_scale=2.0, noise_w_scale=0.0))
    assert tone.scales == pytest.approx([0.5, 2.0, 0.0])
