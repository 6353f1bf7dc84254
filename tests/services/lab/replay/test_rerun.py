"""A call that was recorded, held again: as it was, and under other settings."""

from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline.clock import MonotonicClock
from pipeline.errors import IllegalTransitionError, LanguageModelError
from pipeline.events import Prompt, Samples, TextDelta, Transcript
from pipeline.tape.entries import Ended
from pipeline.turn_taking import TurnTaking
from pipeline.webrtc import rtvi
from services.config import Config
from services.lab.replay import tape
from services.lab.replay.course import Course, course, first_difference
from services.lab.replay.rerun import Rerun, rerun
from services.lab.replay.tape import Tape
from tests.services.lab.replay.calls import LOSE_CONNECTION, Hearers, ear, only, recorded, settings


async def held_again(folder: Path, config: Config | None = None) -> tuple[Course, Course, Rerun]:
    """The course of the call, of its replay, and the replay."""
    kept = tape.load(folder)
    config = config or settings()
    again = await rerun(kept, config, ear(config))
    return _course(kept, None), _course(kept, again), again


def _course(kept: Tape, again: Rerun | None) -> Course:
    began, end = kept.header.started, kept.inputs[-1]
    assert isinstance(end, Ended)
    if again is None:
        return course(kept.told, began, until=end.at, fault=end.fault)
    return course(again.told, began, until=end.at, fault=again.fault)


async def same(folder: Path, turns: int) -> Course:
    """Assert that the replay goes as the call did, which had so many turns."""
    call, replay, again = await held_again(folder)
    assert len(call.turns) == turns
    assert first_difference(call, replay) is None
    assert again.missing == []
    assert all(abs(a.at - b.at) < 0.005 for a, b in zip(call.moments, replay.moments, strict=True))
    return call


# ── as it was ──────────────────────────────────────────────────────────────────────────────────


async def test_a_call_with_a_greeting_two_questions_and_an_interruption(tmp_path: Path) -> None:
    folder = await recorded(tmp_path, 13, [(2, 4), (5.5, 7), (9.5, 11)])
    call = await same(folder, 3)
    assert [turn.record["interrupted"] for turn in call.turns] == [True, False, False]
    assert call.turns[2].record["failed"] == "disconnected"
    assert any("starts to speak" in moment.what for moment in call.moments)


async def test_a_question_with_a_pause_that_is_gone_on_with_before_it_is_answered(tmp_path: Path) -> None:
    call = await same(await recorded(tmp_path, 9, [(2, 3), (3.12, 4.5)]), 1)
    assert call.turns[0].record["committed_revision"] > 1


async def test_typed_text_a_button_and_a_talk_key(tmp_path: Path) -> None:
    events = {
        2.0: rtvi.SendText("1", "How are you?"),
        3.5: rtvi.Interrupt(),
        5.0: rtvi.PushToTalk(True),
        6.5: rtvi.PushToTalk(False),
        8.0: rtvi.SendText("2", "And now something else, please."),
    }
    call = await same(await recorded(tmp_path, 12, [(5.2, 6.4)], events), 3)
    assert [turn.record["input"] for turn in call.turns] == ["text", "voice", "text"]


async def test_a_microphone_that_is_muted_in_mid_sentence(tmp_path: Path) -> None:
    events = {3.0: rtvi.TrackStatus(0, False)}
    await same(await recorded(tmp_path, 8, [(2, 3)], events), 1)


async def test_a_call_that_went_on_behind_another_connection(tmp_path: Path) -> None:
    await same(await recorded(tmp_path, 14, [(2, 4), (9, 10.5)], {7.0: LOSE_CONNECTION}), 2)


class Failing(Hearers):
    async def stream(self, prompt: Prompt) -> AsyncGenerator[TextDelta, None]:
        await self.clock.sleep_until(self.clock.now() + 0.2)
        raise LanguageModelError("the engine died")
        yield


async def test_a_failure_fails_again(tmp_path: Path) -> None:
    call = await same(await recorded(tmp_path, 9, [(2, 4)], models=Failing), 1)
    assert call.turns[0].record["failed"] == "llm_failed"


async def test_a_fault_of_ours_is_met_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reply_ended(self: TurnTaking) -> Any:
        raise IllegalTransitionError("a bug")

    monkeypatch.setattr(TurnTaking, "reply_ended", reply_ended)
    with pytest.raises(ExceptionGroup):
        await recorded(tmp_path, 9, [])
    call = await same(only(tmp_path), 0)
    assert call.moments[-1].what == "the call ends by IllegalTransitionError"


# ── otherwise ──────────────────────────────────────────────────────────────────────────────────


async def test_more_patience_makes_one_turn_of_two_and_says_what_nobody_heard(tmp_path: Path) -> None:
    folder = await recorded(tmp_path, 14, [(2, 3.5), (4.3, 5.8)])
    patient = settings(patience={"shortest_ms": 1000, "unsure_ms": 1000})
    call, replay, again = await held_again(folder, patient)
    assert (len(call.turns), len(replay.turns)) == (2, 1)
    difference = first_difference(call, replay)
    assert difference is not None
    ours, _ = difference
    assert ours is not None
    assert ours.at == pytest.approx(3.75, abs=0.15), "where the first turn ended"
    assert any("speech" in missing.question.about for missing in again.missing)
    assert replay.turns[0].record["failed"] is None, "it goes on with the nearest there is"


async def test_less_patience_ends_a_turn_sooner(tmp_path: Path) -> None:
    calm = settings(tmp_path, patience={"shortest_ms": 600, "unsure_ms": 700})
    folder = await recorded(tmp_path, 9, [(2, 4)], config=calm)
    call, replay, _ = await held_again(folder)
    assert call.turns[0].committed is not None
    assert replay.turns[0].committed is not None
    sooner = call.turns[0].committed - replay.turns[0].committed
    assert sooner == pytest.approx(0.4, abs=0.07)
    assert replay.turns[0].record["heard_text"] == call.turns[0].record["heard_text"]


async def test_a_tape_that_broke_off_is_replayed_up_to_there(tmp_path: Path) -> None:
    folder = await recorded(tmp_path, 12, [(2, 4)])
    entries = folder / "tape.jsonl"
    lines = entries.read_bytes().splitlines(keepends=True)
    entries.write_bytes(b"".join(lines[:-100])[:-5])
    kept = tape.load(folder)
    assert not kept.whole
    again = await rerun(kept, settings(), ear(settings()))
    until = np.nextafter(kept.inputs[-1].at, 0)
    began = kept.header.started
    call = course(kept.told, began, until=until, fault=None)
    assert call.turns
    assert first_difference(call, course(again.told, began, until=until, fault=again.fault)) is None


# ── with real stages ───────────────────────────────────────────────────────────────────────────


class Understanding(Hearers):
    """Models in real time; the recogniser notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(MonotonicClock())  # type: ignore[arg-type]
        self.asked: list[int] = []

    async def transcribe(self, samples: Samples) -> Transcript:
        self.asked.append(len(samples))
        return Transcript("What is the time?")


async def test_what_the_tape_does_not_hold_is_asked_of_real_stages(tmp_path: Path) -> None:
    folder = await recorded(tmp_path, 14, [(2, 3.5), (4.3, 5.8)])
    patient, kept, real = (
        settings(patience={"shortest_ms": 1000, "unsure_ms": 1000}),
        tape.load(folder),
        Understanding(),
    )
    live: Any = SimpleNamespace(
        transcriber=real, prompts=real, language_model=real, synthesizer=real.voice, turn_end=None
    )
    replay = _course(kept, await rerun(kept, patient, ear(patient), live))
    assert real.asked
    (turn,) = replay.turns
    assert (turn.record["user_text"], turn.record["failed"]) == ("What is the time?", None)


async def test_real_stages_are_not_asked_what_the_tape_holds(tmp_path: Path) -> None:
    folder = await recorded(tmp_path, 9, [(2, 4)])
    kept, real = tape.load(folder), Understanding()
    live: Any = SimpleNamespace(
        transcriber=real, prompts=real, language_model=real, synthesizer=real.voice, turn_end=None
    )
    again = await rerun(kept, settings(), ear(settings()), live)
    assert first_difference(_course(kept, None), _course(kept, again)) is None
    assert (real.asked, real.prompts) == ([], [])
