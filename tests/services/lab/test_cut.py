"""When an utterance counts as cut off, on made-up calls."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.audible import Run
from pipeline.events import Pcm
from pipeline.timeline.record import empty_record
from services.lab import cut
from services.lab.exchange import Exchange
from services.lab.microphone import Utterance
from services.lab.speech_file import SpeechFile
from services.lab.studio.speech import Pause, Spoken
from tests.services.lab.heard import packets, silence, tone

BEFORE, AFTER = ("I", "would", "like", "the"), ("blue", "bicycle", "please")


def exchange(*user_texts: str, pause: bool = True, answered: bool = True) -> Exchange:
    """The user spoke from 100 to 103 s; one turn for each text."""
    file = SpeechFile(Path("q.wav"), tone(0.1), Run(0, 4800))
    spoken = Spoken(file, "", "human", "v", Pause(600.0, True, BEFORE, AFTER, 1.5) if pause else None)
    utterance = Utterance(file, asyncio.Event(), onset=100.0, end=103.0)
    records: list[dict[str, Any]] = [{**empty_record(), "user_text": text} for text in user_texts]
    return Exchange(spoken, utterance, records, answered)


WHOLE = "I would like the blue bicycle, please."


def heard(*pieces: Pcm) -> Any:
    return packets(silence(1.0), *pieces, start=99.0)


def test_an_answer_after_the_end_is_no_cut() -> None:
    assert cut.reasons(exchange(WHOLE), heard(silence(3.4), tone(2.0))) == []


def test_the_reply_of_before_is_none_of_this_utterances_business() -> None:
    assert cut.reasons(exchange(WHOLE), packets(tone(0.5), silence(4.0), tone(1.0), start=99.4)) == []


def test_a_reply_audible_before_the_end_is_a_cut() -> None:
    (reason,) = cut.reasons(exchange(WHOLE), heard(silence(2.5), tone(2.0)))
    assert "500 ms before the end" in reason


def test_a_duck_or_a_click_is_not_audible() -> None:
    assert cut.reasons(exchange(WHOLE), heard(silence(1.5), tone(0.02), tone(0.5, 0.002), silence(2.0))) == []


def test_two_turns_are_a_cut() -> None:
    assert cut.reasons(exchange("I would like the", WHOLE), heard(silence(4.0))) == ["2 turns"]


@pytest.mark.parametrize(
    ("understood", "reason"),
    [
        ("blue bicycle please", "before"),
        ("I would like the", "after"),
        ("I would like the sky and sea.", None),
        ("I would like to blue icicle please", None),
        ("Thank you", None),
        ("", None),
    ],
)
def test_half_an_utterance_is_a_cut_and_a_misheard_one_is_not(understood: str, reason: str | None) -> None:
    found = cut.reasons(exchange(understood), heard(silence(4.0)))
    assert found == ([f"the words {reason} the pause are missing"] if reason else [])


def test_an_utterance_without_a_pause_has_no_sides() -> None:
    assert cut.reasons(exchange("bicycle please", pause=False), heard(silence(4.0))) == []


def test_no_answer_is_no_cut() -> None:
    assert cut.reasons(exchange(answered=False), heard(silence(4.0))) == []


def test_rates_by_kind_and_length() -> None:
    def row(ms: float | None, kind: str, *reasons: str) -> dict[str, Any]:
        return {"pause_ms": ms, "kind": kind, "pause_inside": True, "cut": list(reasons)}

    rows = [row(320, "human"), row(500, "human", "2 turns"), row(900, "synthetic"), row(None, "human", "x")]
    found = cut.rates(rows)
    assert (found["all"]["cut"], found["all"]["of"]) == (1, 3), "what has no pause does not count"
    assert found["human"]["of"] == 2
    assert found["750-900 ms"]["of"] == 1, "the last bin has its end"
    assert "600-750 ms" not in found
    assert found["all"]["low_percent"] < 33.3 < found["all"]["high_percent"]


def test_a_turn_that_began_after_the_pause_lost_what_came_before() -> None:
    late = replace(exchange("the blue bicycle, please."), began=102.1)
    assert "the turn began after the pause" in cut.reasons(late, heard(silence(3.4), tone(2.0)))
    kept = replace(exchange(WHOLE), began=102.1)
    assert cut.reasons(kept, heard(silence(3.4), tone(2.0))) == [], "what was kept for it is there"
    misheard = replace(exchange("the blue bicycle, please."), began=100.02)
    assert cut.reasons(misheard, heard(silence(3.4), tone(2.0))) == [], "it was heard from the beginning on"
    in_time = replace(exchange(WHOLE), began=100.02)
    assert cut.reasons(in_time, heard(silence(3.4), tone(2.0))) == []


def test_a_single_word_misheard_is_no_cut() -> None:
    assert cut.missing(("Like",), ("your", "country"), "What your country") == []
