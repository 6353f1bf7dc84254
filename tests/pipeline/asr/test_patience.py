from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.asr.patience import Evidence, Patience, PatienceSettings, log_odds

SETTINGS = PatienceSettings()
CLEARLY_ALL = Evidence(words=0.97, punctuated=True, count=8)
CLEARLY_NOT = Evidence(words=0.001, punctuated=False, count=4)


@pytest.mark.parametrize(
    ("evidence", "seconds"),
    [
        (CLEARLY_ALL, SETTINGS.shortest),
        (CLEARLY_NOT, SETTINGS.longest),
        (Evidence(words=0.001, punctuated=True, count=4), SETTINGS.longest),
        (Evidence(None, punctuated=True, count=8, sound=0.999), SETTINGS.shortest),
        (Evidence(None, punctuated=False, count=3, sound=0.5), SETTINGS.longest),
    ],
)
def test_how_long_to_wait(evidence: Evidence, seconds: float) -> None:
    assert Patience(SETTINGS).with_evidence(evidence) == seconds


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(words=0.4, punctuated=False, count=5),
        Evidence(None, punctuated=True, count=6, sound=0.5),
    ],
)
def test_less_certainty_costs_more_patience(evidence: Evidence) -> None:
    assert SETTINGS.shortest < Patience(SETTINGS).with_evidence(evidence) < SETTINGS.unsure


def test_clear_words_are_not_asked_how_they_sound() -> None:
    patience = Patience(SETTINGS)
    assert not patience.hinges_on_sound(CLEARLY_ALL)
    assert not patience.hinges_on_sound(CLEARLY_NOT)
    assert patience.hinges_on_sound(Evidence(words=0.4, punctuated=True, count=5))
    assert patience.hinges_on_sound(Evidence(None, punctuated=True, count=5))


def test_what_trails_off_is_waited_for_and_nobody_else_is_asked() -> None:
    trailing = replace(CLEARLY_ALL, trails_off=True)
    patience = Patience(SETTINGS)
    assert patience.with_evidence(trailing) == SETTINGS.longest
    assert not patience.hinges_on_sound(trailing)
    assert not patience.likely_complete(trailing)


def test_a_user_who_pauses_after_whole_sentences_is_given_more_time_up_to_a_bound() -> None:
    patience = Patience(SETTINGS)
    for _ in range(5):
        patience.went_on(0.4, CLEARLY_ALL)
    learned = patience.when_certain
    assert SETTINGS.shortest < learned
    for _ in range(50):
        patience.went_on(5.0, CLEARLY_ALL)
    assert patience.when_certain == pytest.approx(SETTINGS.shortest + 0.15)
    for _ in range(50):
        patience.ended()
    assert patience.when_certain == SETTINGS.shortest, "and no longer when they stop doing so"


def test_pauses_in_mid_sentence_teach_nothing() -> None:
    patience = Patience(SETTINGS)
    for _ in range(50):
        patience.went_on(0.9, CLEARLY_NOT)
    assert patience.when_certain == SETTINGS.shortest


MAYBE = st.none() | st.floats(0, 1)


@given(MAYBE, st.booleans(), MAYBE, st.lists(st.floats(0, 9)))
def test_it_is_always_within_its_bounds(
    words: float | None, punctuated: bool, sound: float | None, pauses: list[float]
) -> None:
    patience, evidence = Patience(SETTINGS), Evidence(words, punctuated, 5, sound)
    for pause in pauses:
        patience.went_on(pause, evidence)
    assert SETTINGS.shortest <= patience.with_evidence(evidence) <= SETTINGS.longest


@given(st.floats(0, 1), st.floats(0, 1))
def test_likelier_ends_are_never_waited_for_longer(one: float, other: float) -> None:
    low, high = sorted((one, other))
    for punctuated in (False, True):
        waits = [Patience(SETTINGS).with_evidence(Evidence(words, punctuated, 5)) for words in (low, high)]
        assert waits == sorted(waits, reverse=True)
        odds = [log_odds(Evidence(words, punctuated, 5)) for words in (low, high)]
        assert odds == sorted(odds)
