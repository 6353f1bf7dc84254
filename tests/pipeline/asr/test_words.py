"""What is done with transcripts once they are there: partials, equivalence, a listener's sounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.asr.backchannel import is_backchannel, stands_alone
from pipeline.asr.partials import StablePartial, equivalent


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("What time is it?", "what time is it", True),
        ("Yes, please.", "Yes please!", True),
        ("What time is it?", "What time is it now?", False),
        ("It's late.", "Its late.", False),
        ("", "…", True),
    ],
)
def test_equivalent_transcripts(one: str, other: str, same: bool) -> None:
    assert equivalent(one, other) is same


def test_only_what_two_readings_agree_on_is_shown() -> None:
    partial = StablePartial()
    assert not partial.update("What")
    assert partial.update("What is")
    assert partial.text == "What"
    assert partial.update("What is the capital")
    assert partial.text == "What is"
    assert not partial.update("What was the capital"), "what was shown stays"
    assert partial.text == "What is"


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c,", "C", "d."]), max_size=6).map(" ".join)))
def test_partials_only_grow(readings: list[str]) -> None:
    partial = StablePartial()
    for reading in readings:
        before = partial.text
        grew = partial.update(reading)
        assert partial.text.startswith(before)
        assert grew == (partial.text != before)


@pytest.mark.parametrize("text", ["Mm-hmm.", "Mm-hm", "Uh-huh.", "Yeah.", "Okay, right.", "Oh, wow!", "Hmm."])
def test_a_listeners_sounds(text: str) -> None:
    assert is_backchannel(text, "en")


@pytest.mark.parametrize(
    "text", ["", "No.", "Stop.", "Wait.", "Yeah, but why?", "Okay okay okay okay.", "What?"]
)
def test_what_is_more_than_that(text: str) -> None:
    assert not is_backchannel(text, "en")


def test_a_language_without_a_list_has_no_such_sounds() -> None:
    assert not is_backchannel("Yeah.", "xx")


@pytest.mark.parametrize(
    ("text", "alone"),
    [("Yes.", True), ("Hello there.", True), ("No, thank you.", True), ("What is", False), ("", False)],
)
def test_what_is_often_all_that_is_said(text: str, alone: bool) -> None:
    assert stands_alone(text, "en") is alone
