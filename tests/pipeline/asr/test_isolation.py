import numpy as np

from pipeline.asr.isolation import Isolation

REPLY, SILENCE, ECHO = (np.full(960, level, np.float32) for level in (0.1, 0.0, 0.01))


def after(*stretches: tuple[np.ndarray, np.ndarray, int]) -> bool:
    """Whether it is proven after stretches of (played, microphone, blocks)."""
    isolation = Isolation()
    for played, microphone, blocks in stretches:
        for _ in range(blocks):
            isolation.observe(played, microphone)
    return isolation.proven


def test_a_silent_microphone_under_a_reply_is_proof() -> None:
    assert after((REPLY, SILENCE, 60))
    assert after((REPLY, SILENCE, 60), (REPLY, ECHO, 500)), "a user may speak over it"


def test_an_echo_is_none_however_late_it_comes() -> None:
    assert not after((REPLY, SILENCE, 35), (REPLY, ECHO, 500))
    assert not after((REPLY, ECHO, 500), (SILENCE, ECHO, 35), (SILENCE, SILENCE, 500))


def test_silence_proves_nothing_while_nothing_was_played_or_only_in_bits() -> None:
    assert not after((SILENCE, SILENCE, 500))
    assert not after(*[(REPLY, SILENCE, 30), (SILENCE, SILENCE, 20)] * 10)


def test_a_proof_ages_and_can_be_doubted() -> None:
    assert not after((REPLY, SILENCE, 60), (REPLY, ECHO, 2000))
    isolation = Isolation()
    for _ in range(60):
        isolation.observe(REPLY, SILENCE)
    isolation.doubt()
    assert not isolation.proven
