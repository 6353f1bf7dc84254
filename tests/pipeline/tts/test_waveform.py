import numpy as np

from pipeline.tts.waveform import LEAD, amplified, audible_span, lead, with_pause

RATE = 1000


def quiet_loud_quiet(before: float, loud: float, after: float) -> np.ndarray:
    parts = (np.zeros(int(before * RATE)), np.full(int(loud * RATE), 0.3), np.full(int(after * RATE), 0.001))
    return np.concatenate(parts).astype(np.float32)


def test_gain_is_constant_below_the_knee_and_never_clips() -> None:
    loud = amplified(np.array([0.1, -0.4, 0.7, -5.0, 0.0], np.float32), 1.5)
    np.testing.assert_allclose(loud[[0, 1, 4]], [0.15, -0.6, 0.0], rtol=1e-5)
    assert 0.8 < loud[2] < 1.0
    assert -1.0 <= loud[3] < -0.99


def test_gain_leaves_its_input_alone() -> None:
    samples = np.full(3, 0.9, np.float32)
    amplified(samples, 2)
    np.testing.assert_array_equal(samples, np.full(3, 0.9, np.float32))


def test_sound_is_found_between_silences() -> None:
    assert audible_span(quiet_loud_quiet(0.1, 0.2, 0.3), RATE) == (100, 300)
    assert audible_span(np.zeros(50, np.float32), RATE) == (0, 50)


def test_leading_silence_is_cut_to_a_few_milliseconds() -> None:
    assert lead(quiet_loud_quiet(0.4, 0.2, 0.3), RATE) == 400 - int(LEAD * RATE)


def test_a_short_lead_stays() -> None:
    assert lead(quiet_loud_quiet(0.005, 0.2, 0.3), RATE) == 0


def test_a_pause_is_lengthened_but_a_natural_one_is_kept() -> None:
    assert len(with_pause(quiet_loud_quiet(0, 0.2, 0.1), RATE, least=0.3, most=None)) == 500
    assert len(with_pause(quiet_loud_quiet(0, 0.2, 0.4), RATE, least=0.3, most=None)) == 600


def test_quiet_after_a_cut_clause_is_shortened() -> None:
    assert len(with_pause(quiet_loud_quiet(0, 0.2, 0.4), RATE, least=0, most=0.05)) == 250
