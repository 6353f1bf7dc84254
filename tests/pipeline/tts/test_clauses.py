from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ConfigError
from pipeline.tts.characters import has_speech
from pipeline.tts.clauses import GROWING_LIMITS, MAX_CHARACTERS, ClauseCutter, ClauseLimits
from pipeline.tts.inline import LONGEST_WORD

SENTENCES_ONLY = (ClauseLimits(sentence=1, clause=100, longest=100),)


def cut(text: str, limits: tuple[ClauseLimits, ...] = GROWING_LIMITS) -> list[str]:
    cutter = ClauseCutter("en", limits)
    return cutter.feed(text) + cutter.finish()


def sentences(text: str) -> list[str]:
    return cut(text, SENTENCES_ONLY)


@pytest.mark.parametrize(
    "text",
    [
        "It costs 3.5 percent or $1,250.00 a year.",
        "Dr. Smith met Mr. Jones and Prof. Wu.",
        "Fruit, e.g. apples, i.e. the red ones.",
        "It begins at 10:30 a.m. in the hall.",
        "He left at 5 p.m. sharp.",
        "The U.S. Army bought it.",
        "J. F. Kennedy spoke.",
        "She lives on St. James St. in town.",
        "See No. 5 and Fig. 3 there.",
        "Bread, milk etc. are over there.",
        "Acme Inc. and Foo Ltd. merged.",
        "Visit https://example.com/a.b?c=d. or mail me.@example.org now",
        "Mail foo.bar@example.org or open readme.txt now.",
        "Well... I think so… perhaps.",
        "1. Do this 2. Do that 3. Rest.",
        "On July 4, 1776, it began.",
        "“Why?” he asked.",
        "Version 1.2.3 is out.",
    ],
)
def test_a_dot_inside_a_sentence_is_no_end(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is 42. Then go.", ["It is 42.", "Then go."]),
        ("He left at 5 p.m. The shop was shut.", ["He left at 5 p.m.", "The shop was shut."]),
        ("I live in the U.S. It is big.", ["I live in the U.S.", "It is big."]),
        ("I live on Main St. The house is red.", ["I live on Main St.", "The house is red."]),
        ("No. I will not.", ["No.", "I will not."]),
        ("He said “stop!” Then (all of) it stopped.", ["He said “stop!”", "Then (all of) it stopped."]),
        ("(It was late.) We left.", ["(It was late.)", "We left."]),
        ('"Really?!" Yes.', ['"Really?!"', "Yes."]),
        ("Eat vitamin C. It helps.", ["Eat vitamin C.", "It helps."]),
        ("Title\n\nText goes on", ["Title", "Text goes on"]),
        ("Go to example.com. Then log in.", ["Go to example.com.", "Then log in."]),
        ("Stop ! Now", ["Stop !", "Now"]),
    ],
)
def test_sentences_end_with_their_quotes_and_brackets(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_the_first_clause_ends_early_and_later_ones_late() -> None:
    assert cut("Sure, I can help with that, and with more. It is easy, quick, and free of charge.") == [
        "Sure,",
        "I can help with that,",
        "and with more.",
        "It is easy, quick, and free of charge.",
    ]


def test_the_first_clause_comes_out_before_the_sentence_is_over() -> None:
    cutter = ClauseCutter()
    assert cutter.feed("The capital of France,") == []
    assert cutter.feed(" as") == ["The capital of France,"]


def test_a_first_clause_without_punctuation_is_cut_before_a_phrase() -> None:
    first = cut("Photosynthesis is the process by which green plants make food")[0]
    assert first == "Photosynthesis is the process"


def test_a_forced_cut_is_not_made_after_an_article() -> None:
    limits = (ClauseLimits(sentence=1, clause=3, longest=6),)
    assert cut("one two three four the five six", limits)[0] == "one two three four"


@given(st.integers(30, 200))
def test_speech_without_punctuation_is_still_spoken_in_pieces(count: int) -> None:
    clauses = cut(" ".join(["word"] * count))
    limits = [GROWING_LIMITS[min(index, 2)].longest for index in range(len(clauses))]
    assert all(len(clause.split()) <= limit for clause, limit in zip(clauses, limits, strict=True))


def test_decimals_and_abbreviations_split_over_deltas() -> None:
    cutter = ClauseCutter("en", SENTENCES_ONLY)
    given = ["It is 3.", "5 for Dr", ".", " Smith.", " Next", "."]
    assert [clause for piece in given for clause in cutter.feed(piece)] == ["It is 3.5 for Dr. Smith."]
    assert cutter.finish() == ["Next."]


def test_nothing_to_say_gives_no_clause() -> None:
    assert cut("") == cut(" \n ") == cut("— … !") == []


def test_lone_punctuation_stays_with_the_words_before_it() -> None:
    assert sentences("Well — he left. — And then") == ["Well — he left. —", "And then"]


def test_a_minus_and_a_date_are_no_clause_ends() -> None:
    text = "So 5 - 3 or 10 – 2 on July 4, 1776"
    assert cut(text, (ClauseLimits(sentence=1, clause=1, longest=100),)) == [text]


def test_an_unknown_language_is_told() -> None:
    with pytest.raises(ConfigError, match="'tlh'"):
        ClauseCutter("tlh")


DOTTED = ["Dr.", "Mr.", "a.m.", "U.S.", "etc.", "St.", "No.", "J.", "e.g.", "42.", "1.", "2.", "www.x.org/a."]
PLAIN = ["3.5", "$1,250.00", "10:30", "5", "the", "and", "The", "It", "of", "word", "café", "x@y.org", "I"]
ENDING = ["Word,", "word;", "that:", "end.", "what?", "“So!”", "(so.)", "well…"]
LONE = ["...", "—", "-", ",", ".", "!", '"']
TOKENS = st.sampled_from([*DOTTED, *PLAIN, *ENDING, *LONE])
GAPS = st.sampled_from([" ", " ", " ", "  ", "\n", "\n\n", " \n"])
TEXTS = st.one_of(
    st.lists(st.tuples(TOKENS, GAPS), max_size=60).map(lambda pairs: "".join(t + g for t, g in pairs)),
    st.text(max_size=80),
)


@given(TEXTS, st.lists(st.integers(0, 300), max_size=30))
def test_nothing_is_lost_and_chopping_changes_nothing(text: str, cuts: list[int]) -> None:
    clauses = cut(text)
    assert " ".join(clauses).split() == (text.split() if has_speech(text) else [])
    assert all(map(has_speech, clauses))

    edges = [0, *sorted(min(at, len(text)) for at in cuts), len(text)]
    for pieces in ([text[start:stop] for start, stop in pairwise(edges)], list(text)):
        cutter = ClauseCutter()
        assert [clause for piece in pieces for clause in cutter.feed(piece)] + cutter.finish() == clauses


@given(st.lists(st.text("ab", min_size=1, max_size=LONGEST_WORD), min_size=1, max_size=60))
def test_a_clause_has_a_longest_length(words: list[str]) -> None:
    assert max(map(len, cut(" ".join(words)))) <= MAX_CHARACTERS + LONGEST_WORD + 1


@given(TEXTS)
def test_a_cut_uses_only_text_seen_so_far(text: str) -> None:
    cutter = ClauseCutter()
    early = [clause for character in text for clause in cutter.feed(character)]
    assert cut(text)[: len(early)] == early
