import pytest

from services.lab.studio.words import errors, matched, reached, words


def test_words_are_compared_without_case_and_punctuation() -> None:
    assert words("Well, it's 3 o’clock!") == ["well", "it's", "3", "o'clock"]


def test_a_word_misheard_is_still_that_word() -> None:
    said = words("drop the two when you add the figures")
    assert matched(said, words("drop the two when you add a figure")) == [*[True] * 6, False, True]
    assert matched(["the", "cat"], ["a", "dog"]) == [False, False]


def test_words_must_come_in_order() -> None:
    assert matched(["first", "second"], ["second", "first"]).count(True) == 1


REPLY = words("Once upon a time there was a small dog who lived near the sea")


@pytest.mark.parametrize(
    ("heard", "count"),
    [
        ("once upon a time", 4),
        ("", 0),
        ("once upon a lime there was", 6),
        ("once a time there was a", 7),
        (" ".join(REPLY), len(REPLY)),
    ],
)
def test_how_far_an_ear_came(heard: str, count: int) -> None:
    assert reached(REPLY, words(heard), count) == count


def test_errors_are_words_to_change() -> None:
    assert errors(REPLY, REPLY) == 0
    assert errors(REPLY, [*REPLY[:4], *REPLY[6:], "indeed"]) == 3


def test_of_equal_readings_the_nearer_one_is_taken() -> None:
    reply = words("yes yes yes")
    assert reached(reply, ["nonsense"], 1) == 1
