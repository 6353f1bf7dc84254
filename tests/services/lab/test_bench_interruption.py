"""Barge-in on recordings made up for it."""

from typing import Any

import pytest

from pipeline.timeline.record import empty_record
from services.lab.bench.interruption import lost, mismatch, stop
from tests.services.lab.heard import packets, silence, tone

# The reply sounds from 100.0; the user speaks from 102.0 to 104.0.
ONSET, END = 102.0, 104.0


def test_it_ends_with_the_last_audible_sample() -> None:
    heard = packets(tone(2.22), silence(1.9), tone(1.0))
    found = stop(heard, 100.0, ONSET, END, cancelled=104.05)
    assert found.ms == pytest.approx(220, abs=11)


def test_ducked_sound_is_audible() -> None:
    heard = packets(tone(2.2), tone(0.2, 0.02), silence(2.0), tone(1.0))
    found = stop(heard, 100.0, ONSET, END, cancelled=104.2)
    assert found.ms == pytest.approx(400, abs=11)


def test_a_reply_that_was_held_and_resumed_did_not_stop_at_the_hold() -> None:
    heard = packets(tone(2.2), silence(0.6), tone(0.5), silence(1.0))
    found = stop(heard, 100.0, ONSET, END, cancelled=103.4)
    assert found.ms == pytest.approx(1300, abs=11)


def test_the_answer_to_the_interruption_is_another_reply() -> None:
    heard = packets(tone(2.3), silence(1.72), tone(1.0))  # it sounds 30 ms before its record arrives
    found = stop(heard, 100.0, ONSET, END, cancelled=104.05)
    assert found.ms == pytest.approx(300, abs=11)


def test_a_reply_that_never_stops_is_counted_to_its_end() -> None:
    heard = packets(tone(6.0))
    assert stop(heard, 100.0, ONSET, END, cancelled=106.0).ms == pytest.approx(4000, abs=11)


def test_what_was_silent_already_was_not_stopped() -> None:
    assert stop(packets(tone(1.5), silence(4.0)), 100.0, ONSET, END, cancelled=102.6).ms is None
    assert stop(packets(tone(1.9), silence(4.0)), 100.0, ONSET, END, cancelled=102.6).ms is None
    assert stop([], 100.0, ONSET, END, cancelled=102.6).ms is None


def test_a_pause_between_words_at_the_onset_is_still_talking() -> None:
    heard = packets(tone(1.9), silence(0.2), tone(0.15), silence(2.0))
    assert stop(heard, 100.0, ONSET, END, cancelled=102.6).ms == pytest.approx(250, abs=11)


def record(**values: Any) -> dict[str, Any]:
    return {
        **empty_record(),
        "reply_text": "The dog went home.",
        "heard_text": "The dog went home.",
        **values,
    }


def test_a_reply_that_went_on_lost_nothing() -> None:
    assert lost(record(), 1) == []
    assert lost(record(heard_text="the dog went home"), 1) == []


@pytest.mark.parametrize(
    ("changed", "turns", "complaint"),
    [
        ({"interrupted": True}, 1, "was interrupted"),
        ({"heard_text": "The dog"}, 1, "2 words of 4"),
        ({"failed": "llm_failed"}, 1, "failed"),
        ({}, 2, "2 turns"),
    ],
)
def test_a_reply_that_did_not(changed: dict[str, Any], turns: int, complaint: str) -> None:
    (found,) = lost(record(**changed), turns)
    assert complaint in found


@pytest.mark.parametrize(
    ("claimed", "ear", "by"),
    [
        ("Once upon a time there", "Once upon a time there", 0),
        ("Once upon a time there", "once upon a dime, there was", -1),
        ("Once upon a time there was a", "Once upon a time", 3),
        ("", "", 0),
    ],
)
def test_how_far_heard_text_is_from_an_ear(claimed: str, ear: str, by: int) -> None:
    assert mismatch("Once upon a time there was a small dog.", claimed, ear) == by
