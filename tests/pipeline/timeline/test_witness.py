from typing import Any

import pytest

from pipeline.events import TurnInput, TurnTrace
from pipeline.timeline.record import EndPoints
from pipeline.timeline.witness import Witness

POINTS = EndPoints(speech_end=10.0, sent=10.5, heard=10.6)


def trace(**changes: Any) -> TurnTrace:
    made = TurnTrace("t1", "s1", TurnInput.VOICE, started_at=9.0, speech_end=10.06)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def witness(*onsets: float) -> Witness:
    made = Witness()
    made.add(onsets)
    return made


def test_the_first_onset_after_the_reply_had_left_is_its_beginning() -> None:
    # The end of the reply before, the user's own echo, the reply, its next word.
    assert witness(9.2, 10.3, 10.61, 10.9).first_audio_ms(trace(), POINTS) == 610.0


def test_it_does_not_lean_on_what_the_ledger_says_was_heard() -> None:
    points = EndPoints(speech_end=10.0, sent=10.5, heard=None)
    assert witness(10.61).first_audio_ms(trace(), points) == 610.0


def test_without_the_clients_word_both_ends_are_the_servers() -> None:
    told = trace(first_audio_at=10.5)
    assert witness(10.61).first_audio_ms(told, EndPoints()) == pytest.approx(550)


@pytest.mark.parametrize("onsets", [(), (10.4,), (11.7,)])
def test_what_is_not_of_this_reply_is_no_witness(onsets: tuple[float, ...]) -> None:
    assert witness(*onsets).first_audio_ms(trace(), POINTS) is None


def test_a_turn_without_a_reply_has_none() -> None:
    assert witness(10.61).first_audio_ms(trace(), EndPoints(speech_end=10.0)) is None
