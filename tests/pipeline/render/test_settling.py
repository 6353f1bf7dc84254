from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.render.settling import SHORTEST_S, settle
from pipeline.render.visemes import Viseme, VisemeSpan

TINY = 1e-6


def spans(notation: str) -> list[VisemeSpan]:
    """`"PP60 aa30"`, in milliseconds from 0 on."""
    result: list[VisemeSpan] = []
    at = 0.0
    for item in notation.split():
        name = item.rstrip("0123456789")
        end = at + int(item[len(name) :]) / 1000
        result.append(VisemeSpan(Viseme(name), at, end))
        at = end
    return result


def settled(notation: str) -> str:
    return " ".join(f"{span.viseme}{span.duration * 1000:.0f}" for span in settle(spans(notation)))


def test_long_spans_stay_as_they_are() -> None:
    assert settled("sil60 PP50 aa80 nn40") == "sil60 PP50 aa80 nn40"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("aa80 DD20 SS60", "aa90 SS70"),  # half to each neighbour
        ("aa80 DD20 SS30 I60", "aa80 SS50 I60"),  # or to the one that lacks it
        ("DD20 aa80", "aa100"),
        ("aa80 DD20", "aa100"),
        ("aa80 DD20 aa60", "aa160"),
    ],
)
def test_a_short_consonant_is_absorbed(before: str, after: str) -> None:
    assert settled(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("I80 PP30 E80", "I70 PP40 E80"),  # from the sound before: the mouth may be early
        ("I40 PP30 E80", "I40 PP40 E70"),
        ("SS50 aa20 nn60", "SS40 aa40 nn50"),
        ("SS40 aa20 nn40", "aa60 nn40"),  # nothing to spare: the weaker neighbour goes
        ("PP60 aa30 nn60", "PP60 aa40 nn50"),  # never from a bilabial
    ],
)
def test_short_bilabials_and_open_vowels_grow(before: str, after: str) -> None:
    assert settled(before) == after


def test_an_open_vowel_too_short_to_show_between_two_bilabials_is_lost() -> None:
    assert settled("I60 PP60 aa30 PP60 I60") == "I60 PP150 I60"


def test_stress_survives_absorption() -> None:
    short = [
        VisemeSpan(Viseme.AA, 0.0, 0.08),
        VisemeSpan(Viseme.I, 0.08, 0.1, stress=1.0),
        VisemeSpan(Viseme.NN, 0.1, 0.2),
    ]
    assert settle(short)[0].stress == 1.0


def test_nothing_and_a_single_short_span() -> None:
    assert settle([]) == []
    assert settled("aa20") == "aa20"


lengths = st.integers(min_value=10, max_value=150)
durations = st.lists(st.tuples(st.sampled_from(list(Viseme)), lengths), min_size=2, max_size=40)


@given(durations)
def test_whatever_comes_in_nothing_short_comes_out(items: list[tuple[Viseme, int]]) -> None:
    before = spans(" ".join(f"{viseme}{milliseconds}" for viseme, milliseconds in items))
    after = settle(before)
    assert after[0].start == before[0].start
    assert after[-1].end == pytest.approx(before[-1].end)
    assert all(a.end == pytest.approx(b.start) for a, b in pairwise(after))
    assert all(span.duration >= SHORTEST_S - TINY for span in after) or len(after) == 1


@given(durations)
def test_every_visible_bilabial_is_still_there_in_full(items: list[tuple[Viseme, int]]) -> None:
    before = spans(" ".join(f"{viseme}{milliseconds}" for viseme, milliseconds in items))
    closed = [span for span in settle(before) if span.viseme is Viseme.PP]
    for span in before:
        if span.viseme is Viseme.PP and span.duration >= SHORTEST_S:
            assert any(c.start <= span.start + TINY and span.end <= c.end + TINY for c in closed)
