from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.render.mouth import REST, MouthShape, mouth_shape
from pipeline.render.settling import settle
from pipeline.render.visemes import VISEME_OF, Viseme, VisemeSpan, viseme_spans
from tests.pipeline.render.speech import SAMPLE, phonemes

STEP_S = 0.005


def spans(notation: str) -> list[VisemeSpan]:
    return settle(viseme_spans(phonemes(notation), 0.0, Counter()))


def track(found: list[VisemeSpan]) -> list[MouthShape]:
    return [mouth_shape(found, p) for p in np.arange(-0.2, found[-1].end + 0.2, STEP_S)]


def middle(found: list[VisemeSpan], viseme: Viseme) -> MouthShape:
    span = next(span for span in found if span.viseme is viseme)
    return mouth_shape(found, (span.start + span.end) / 2)


def test_without_speech_it_rests() -> None:
    assert mouth_shape([], 3.0) == REST
    assert mouth_shape(spans(SAMPLE), -1.0) == REST
    assert mouth_shape(spans(SAMPLE), 99.0) == REST


def test_it_rests_in_a_pause() -> None:
    found = spans("^50 ˈ50 ɑ90 s60 ,200 ·200 ˈ50 ɑ90 .60")
    assert middle(found[2:], Viseme.SIL).jaw < 0.02


@pytest.mark.parametrize("neighbours", ["ɑ", "i", "u", "s", "k", "f"])
def test_bilabials_are_shut_from_start_to_end_whatever_is_around(neighbours: str) -> None:
    found = spans(f"{neighbours}80 p50 {neighbours}80")
    shut = next(span for span in found if span.viseme is Viseme.PP)
    for p in np.arange(shut.start, shut.end, STEP_S):
        shape = mouth_shape(found, p)
        assert shape.press == 1.0
        assert shape.jaw == 0.0


def test_lips_meet_a_little_before_the_sound() -> None:
    assert mouth_shape(spans("k80 i90 p60 i90"), 0.17 - 0.012).press == 1.0


def test_between_two_bilabials_a_short_open_vowel_still_opens() -> None:
    found = spans("p60 ɑ60 p60")
    assert middle(found, Viseme.AA).jaw > 0.6


def test_open_vowels_are_open_even_among_sibilants() -> None:
    assert middle(spans("s70 ɑ60 s70"), Viseme.AA).jaw >= 0.5
    assert middle(spans("s70 ɔ60 s70"), Viseme.O).jaw >= 0.5


def test_stress_opens_further() -> None:
    assert middle(spans("k60 ˈ40 ɑ60 k60"), Viseme.AA).jaw > middle(spans("k60 ɑ100 k60"), Viseme.AA).jaw


def test_lips_round_ahead_of_a_rounded_vowel_through_the_consonants_before_it() -> None:
    """The s and t of "stew" are said with the lips of the u; those of "stay" are not."""
    stew, stay = spans("s80 t60 u120"), spans("s80 t60 e120")
    assert mouth_shape(stew, 0.07).width < mouth_shape(stay, 0.07).width - 0.2


def test_a_tongue_sound_takes_the_lips_of_its_neighbours() -> None:
    assert middle(spans("u90 t50 u90"), Viseme.DD).width < -0.5
    assert middle(spans("i90 t50 i90"), Viseme.DD).width > 0.4


def test_labiodentals_tuck_the_lip_with_a_narrow_jaw() -> None:
    shape = middle(spans("ɑ90 f60 ɑ90"), Viseme.FF)
    assert shape.tuck == 1.0
    assert shape.jaw <= 0.15


def test_the_tongue_shows_for_th_and_not_for_k() -> None:
    assert middle(spans("ə80 θ80 ə80"), Viseme.TH).tongue > 0.8
    assert middle(spans("ə80 k80 ə80"), Viseme.KK).tongue == 0.0


def test_the_same_question_has_the_same_answer_whatever_was_asked_before() -> None:
    found = spans(SAMPLE)
    positions = list(np.arange(0, found[-1].end, 0.013))
    forwards = [mouth_shape(found, p) for p in positions]
    assert [mouth_shape(found, p) for p in reversed(positions)] == forwards[::-1]


def test_far_sounds_do_not_matter() -> None:
    one, other = spans("ɑ90 t60 i90 s300 ɑ90"), spans("ɑ90 t60 i90 s300 u90")
    assert mouth_shape(one, 0.15) == mouth_shape(other, 0.15)


lengths = st.integers(min_value=15, max_value=140)
symbols = st.lists(st.tuples(st.sampled_from(sorted(VISEME_OF)), lengths), min_size=3, max_size=25)


@settings(max_examples=60, deadline=None)
@given(symbols)
def test_nothing_flickers(items: list[tuple[str, int]]) -> None:
    """Between one turning point of the jaw and the next that differs visibly lies about a frame."""
    found = spans(" ".join(f"{symbol}{milliseconds}" for symbol, milliseconds in items))
    jaw = [shape.jaw for shape in track(found)]
    turns = [i for i in range(1, len(jaw) - 1) if (jaw[i] - jaw[i - 1]) * (jaw[i + 1] - jaw[i]) < 0]
    for a, b, c in zip(turns, turns[1:], turns[2:], strict=False):
        if abs(jaw[a] - jaw[b]) > 0.2 and abs(jaw[b] - jaw[c]) > 0.2:
            assert (c - a) * STEP_S >= 0.04


@settings(max_examples=60, deadline=None)
@given(symbols)
def test_all_values_stay_in_range_and_move_continuously(items: list[tuple[str, int]]) -> None:
    found = spans(" ".join(f"{symbol}{milliseconds}" for symbol, milliseconds in items))
    fine = [mouth_shape(found, p) for p in np.arange(-0.1, found[-1].end + 0.1, 0.001)]
    for shape in fine:
        assert 0 <= shape.jaw <= 1
        assert -1 <= shape.width <= 1
        assert 0 <= shape.press <= 1
        assert 0 <= shape.tuck <= 1
        assert 0 <= shape.tongue <= 1
    for a, b in pairwise(fine):
        assert max(abs(x - y) for x, y in zip(a, b, strict=True)) < 0.15
