import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.tts.language import find_language
from pipeline.tts.verbalise import spoken_forms

ENGLISH = find_language("en-us")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$1,250.00 today", "1,250 dollars today"),
        ("$1 or $12.50, £0.99.", "1 dollar or 12 dollars and 50 cents, 99 pence."),
        ("$0.01 $1.255 $1.5 ¥100", "1 cent 1.255 dollars 1.5 dollars 100 yen"),
        ("$5 million, €2.5bn.", "5 million dollars, 2.5 billion euros."),
        ("in 1990, 1905, 1900, 2005 and 2024.", "in 19 90, 19 oh 5, 1900, 2005 and 20 24."),
        ("the 1990s", "the 19 nineties"),
        ("12:00, 3:05 p.m. and 10:30am", "12 o'clock, 3 oh 5 PM and 10:30 AM"),
        ("12:00 p.m. sharp", "12 PM sharp"),
        ("Dr. Smith and Mr. Jones vs. Ms. Wu", "doctor Smith and Mr Jones versus miz Wu"),
        ("I saw the Dr.", "I saw the doctor."),
        ("No. 5, no. 6? No.", "number 5, number 6? No."),
        ("St. Louis St. is", "saint Louis street is"),
        ("e.g. Paris, i.e. there", "for example Paris, that is there"),
        ("J. F. Kennedy of the U.S. Army", "J F Kennedy of the U.S Army"),
        ("in the U.S.", "in the U.S."),
        ("Well... so … then", "Well, so — then"),
        ("“wait…” …what", "“wait,” what"),
        ("here—there - now -- then", "here — there — now — then"),
        ("5 - 3 and 10–20 or 1999-2005", "5 minus 3 and 10 to 20 or 19 99 to 2005"),
        ("555-1234", "555-1234"),
        ("and/or #1 [[x]]", "and or number 1 x"),
        ("a < b > c -> d", "a less than b greater than c to d"),
        ("3.5% & 7 + 1 = 8", "3.5% & 7 + 1 = 8"),
    ],
)
def test_what_espeak_gets_wrong_is_put_in_words(text: str, said: str) -> None:
    assert " ".join(spoken_forms(text.split(), ENGLISH)) == said


@given(st.lists(st.text(min_size=1).filter(str.strip)))
def test_every_word_has_one_form(words: list[str]) -> None:
    assert len(spoken_forms(words, ENGLISH)) == len(words)
