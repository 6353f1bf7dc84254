"""Words against phonemes as espeak en-us writes them; 100 ms a symbol unless said otherwise."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from piper.phonemize_espeak import EspeakPhonemizer

from pipeline.events import Phoneme, Word
from pipeline.tts.words import word_times


def spoken(symbols: str) -> list[Phoneme]:
    return [Phoneme(s, n / 10, (n + 1) / 10) for n, s in enumerate(unicodedata.normalize("NFD", symbols))]


def times(words: list[tuple[str, str]], clause: str) -> dict[str, tuple[int, int]]:
    """Start and end of each word in tenths of a second."""
    pairs = [(text, list(unicodedata.normalize("NFD", alone))) for text, alone in words]
    found = word_times(pairs, spoken(clause), len(spoken(clause)) / 10)
    assert [word.text for word in found] == [text for text, _ in words]
    return {word.text: (round(word.start * 10), round(word.end * 10)) for word in found}


def test_separate_words() -> None:
    assert times([("hello", "həlˈoʊ"), ("world.", "wˈɜːld.")], "həlˈoʊ wˈɜːld.") == {
        "hello": (0, 6),
        "world.": (7, 13),
    }


def test_words_that_espeak_merges() -> None:
    found = times([("of", "ʌv"), ("the", "ðə"), ("people,", "pˈiːpəl,")], "ʌvðə pˈiːpəl, ")
    assert found == {"of": (0, 2), "the": (2, 4), "people,": (5, 12)}


def test_a_number_that_becomes_many_tokens() -> None:
    number = "wˈʌn θˈaʊzənd tˈuːhˈʌndɹɪd fˈɪfti dˈɑːlɚz"
    found = times(
        [("paid", "pˈeɪd"), ("$1,250.00", number), ("for", "fˈɔːɹ"), ("it", "ɪt")], f"pˈeɪd {number} fɔːɹ ɪt"
    )
    assert found["$1,250.00"] == (6, 6 + len(number))
    assert found["for"][0] == 6 + len(number) + 1


def test_an_abbreviation_and_linking_sounds() -> None:
    # espeak links "me a" with a ʲ, which belongs to the sound before it.
    words = [("Dr.", "dˈɑːktɚ"), ("gave", "ɡˈeɪv"), ("me", "miː"), ("a", "ˈeɪ"), ("pen", "pˈɛn")]
    found = times(words, "dˈɑːktɚ ɡˈeɪv miːʲ ɐ pˈɛn")
    assert found == {"Dr.": (0, 7), "gave": (8, 13), "me": (14, 18), "a": (19, 20), "pen": (21, 25)}


def test_a_hyphenated_word_is_one() -> None:
    words = [("A", "ˈeɪ"), ("state-of-the-art", "stˈeɪɾʌvðɪʲˈɑːɹt"), ("car", "kˈɑːɹ")]
    found = times(words, "ɐ stˈeɪɾʌvðɪʲˈɑːɹt kˈɑːɹ")
    assert found == {"A": (0, 1), "state-of-the-art": (2, 18), "car": (19, 24)}


def test_a_lone_dash_gets_the_pause() -> None:
    assert times([("well", "wˈɛl"), ("—", ""), ("this", "ðɪs")], "wˈɛl; ðɪs") == {
        "well": (0, 4),
        "—": (4, 6),
        "this": (6, 9),
    }


def test_a_dash_at_either_end_stays_inside_the_audio() -> None:
    assert times([("—", ""), ("so", "sˈoʊ"), ("…", "")], " sˈoʊ. ") == {
        "—": (0, 1),
        "so": (1, 5),
        "…": (5, 7),
    }


def test_a_word_reduced_in_running_speech() -> None:
    found = times([("I", "ˈaɪ"), ("can", "kˈæn"), ("do", "dˈuː"), ("it", "ɪt")], "aɪ kən dˈuː ɪt")
    assert found == {"I": (0, 2), "can": (3, 6), "do": (7, 11), "it": (12, 14)}


def test_a_clause_without_sounds_is_shared_evenly() -> None:
    assert word_times([("a", ["x"]), ("b", [])], [], 1.0) == [Word("a", 0.0, 0.5), Word("b", 0.5, 1.0)]


def test_no_words() -> None:
    assert word_times([], spoken("a"), 1.0) == []


SYMBOLS = st.text("ptkaiəʊɹsˈː ,.ʲ", max_size=12)


@given(st.lists(SYMBOLS, max_size=12), SYMBOLS, st.booleans())
@example(alone=["a", "a"], other="aˈʲa", same=False)
@example(alone=[""] * 11, other="a", same=False)
def test_words_are_in_order_and_inside(alone: list[str], other: str, same: bool) -> None:
    clause = " ".join(alone) if same else other
    phonemes, duration = spoken(clause), len(clause) / 10 + 0.3
    found = word_times([(str(n), list(symbols)) for n, symbols in enumerate(alone)], phonemes, duration)
    assert [word.text for word in found] == [str(n) for n in range(len(alone))]
    edges = [0.0, *(edge for word in found for edge in (word.start, word.end)), duration]
    assert edges == sorted(edges)


@pytest.mark.parametrize(
    "text",
    [
        "most of the people in the village want to go out of it at once",
        "there are 1,234,567 of them and 21 of the others in the first 3.5 hours",
        "NASA and the EU said that AT&T isn't state-of-the-art at all",
    ],
)
def test_espeaks_own_phonemes_find_their_words(text: str) -> None:
    espeak = EspeakPhonemizer()

    def phonemes(part: str) -> list[str]:
        return [symbol for sentence in espeak.phonemize("en-us", part) for symbol in sentence]

    words = [(word, phonemes(word)) for word in text.split()]
    clause = phonemes(text)
    found = word_times(words, [Phoneme(s, n, n + 1) for n, s in enumerate(clause)], len(clause))
    for (word, alone), when in zip(words, found, strict=True):
        heard = clause[round(when.start) : round(when.end)]
        # t and d become ɾ between vowels, and vowels are reduced; these stay.
        lasting = "pbkɡfvszmnlhw"
        assert [s for s in heard if s in lasting] == [s for s in alone if s in lasting], word
