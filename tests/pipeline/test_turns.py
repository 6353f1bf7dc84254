"""How turns begin, change their mind and end, in virtual time: everything real but the models."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.events import (
    SpeechChunk,
    SpeechEnd,
    SpeechOnset,
    SpeechPause,
    SpeechProgress,
    Stilled,
    Stirring,
    TurnInput,
    Utterance,
)
from pipeline.stages import Conduct, Saying
from tests.pipeline.test_dialogue import Call, calling, speech


def glimpse(call: Call, ended_at: float | None = None) -> None:
    now = call.clock.now()
    utterance = Utterance(np.zeros(100, np.float32), now - 1, now if ended_at is None else ended_at)
    call.dialogue.heard(SpeechProgress(now, utterance))


def say_what_does_not_seem_all(call: Call) -> None:
    call.models.complete = 0.01
    call.dialogue.heard(SpeechOnset(call.clock.now()))
    glimpse(call)


def loudest(call: Call) -> int:
    return int(np.abs(call.dialogue.delivery.playout.next_frame().astype(int)).max())


# ── before the reply is heard ──────────────────────────────────────────────────────────────────


async def test_going_on_before_the_reply_is_heard_is_the_same_turn() -> None:
    async with calling() as call:
        call.models.hears = ["What is the capital", "What is the capital of France?"]
        call.speak()
        await call.play(0.12)
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert turn.user_text == "What is the capital of France?"
        assert not turn.interrupted
        assert call.ear.closed == 1, "the ear kept the beginning"


async def test_a_cough_before_the_reply_costs_nothing() -> None:
    async with calling() as call:
        call.models.hears = ["Hello there.", "Hello there."]
        call.speak()
        await call.play(0.12)
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert (turn.committed_revision, turn.interrupted) == (1, False)
        assert turn.heard_text == turn.reply_text


@pytest.mark.parametrize(("others", "first"), [(0, "Sure."), (2, "Sure. I am well.")])
async def test_a_first_clause_is_longer_while_others_are_answered(others: int, first: str) -> None:
    async with calling() as call:
        for number in range(others):
            call.dialogue._stages.headroom.note(f"other {number}", busy=True)
        voice, said = call.models.voice.stream, list[str]()

        def noted(text: str) -> AsyncGenerator[SpeechChunk, None]:
            said.append(text)
            return voice(text)

        call.models.voice.stream = noted  # type: ignore[method-assign]
        call.models.says = ["Sure. I am well. ", "Thank you for asking me today."]
        call.speak()
        await call.play(5)
        assert said[0] == first


async def test_the_rest_of_a_sentence_that_was_typed_over_is_no_interruption() -> None:
    async with calling() as call:
        call.speak(pause=False, end=False)
        await call.play(0.5)
        call.dialogue.typed("What is your name?")
        assert call.ear.forgotten == 1, "the ear hears nothing more of it up to a pause"
        await call.play(5)
        (turn,) = call.turns
        assert (turn.user_text, turn.interrupted) == ("What is your name?", False)
        assert turn.heard_text == turn.reply_text


# ── over the reply ─────────────────────────────────────────────────────────────────────────────


async def test_a_sound_ducks_the_reply_and_silence_brings_it_back() -> None:
    async with calling() as call:
        call.speak()
        await call.play(1)
        full = loudest(call)
        call.dialogue.heard(Stirring(call.clock.now()))
        call.dialogue.delivery.playout.next_frame()
        assert 0 < loudest(call) <= full // 9
        call.dialogue.heard(Stilled(call.clock.now()))
        call.dialogue.delivery.playout.next_frame()
        assert loudest(call) == full


async def test_a_listeners_sound_gives_the_reply_back() -> None:
    async with calling() as call:
        call.models.hears = ["Tell me.", "Mm-hmm."]
        call.speak()
        await call.play(1)
        call.dialogue.heard(SpeechOnset(call.clock.now()))
        await call.play(0.4)
        call.pause()
        await call.play(0.2)
        assert call.ear.patience[-1] == 0.0, "nothing more is waited for"
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(5)
        (turn,) = call.turns
        assert (turn.interrupted, turn.heard_text) == (False, turn.reply_text)


async def test_the_same_sound_is_an_answer_when_nobody_speaks() -> None:
    async with calling() as call:
        call.models.hears = ["Yeah."]
        call.speak()
        await call.play(4)
        assert [turn.user_text for turn in call.turns] == ["Yeah."]


async def test_words_over_the_reply_cancel_it_before_their_end_is_certain() -> None:
    async with calling() as call:
        call.models.hears = ["First.", "No, the other one."]
        call.speak()
        await call.play(1)
        call.speak(end=False)
        await call.play(0.3)
        (first,) = call.turns
        assert first.interrupted
        assert len(call.models.prompts) == 2, "the answer to the interruption is prepared already"
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(4)
        assert call.turns[-1].user_text == "No, the other one."


@pytest.mark.parametrize("after", [0.4, 0.45, 1.0, 2.0])
async def test_a_button_ends_the_reply_and_the_next_turn_works(after: float) -> None:
    async with calling() as call:
        call.models.hears = ["First.", "Second."]
        call.speak()
        await call.play(after)
        call.dialogue.interrupted()
        call.dialogue.interrupted()
        assert loudest(call) >= 0
        assert loudest(call) == 0
        await call.play(0.5)
        assert [turn.interrupted for turn in call.turns] == [True]
        call.speak()
        await call.play(4)
        assert [turn.interrupted for turn in call.turns] == [True, False]


async def test_a_reply_that_may_not_be_interrupted_is_heard_out_and_what_was_said_is_answered() -> None:
    async with calling(Conduct(uninterruptible=frozenset({Saying.REPLY}))) as call:
        call.models.hears = ["First.", "Second."]
        call.speak()
        await call.play(1)
        call.speak()
        await call.play(8)
        first, second = call.turns
        assert (first.interrupted, first.heard_text) == (False, first.reply_text)
        assert (second.user_text, second.heard_text) == ("Second.", second.reply_text)


# ── speculation ────────────────────────────────────────────────────────────────────────────────


async def test_a_reply_begun_while_the_user_spoke_is_ready_when_the_pause_comes() -> None:
    async with calling() as call:
        call.models.hears = ["What time is it?", "What time is it?"]
        call.dialogue.heard(SpeechOnset(call.clock.now()))
        glimpse(call, ended_at=call.clock.now() - 1)
        await call.play(1)
        assert len(call.models.prompts) == 1
        call.pause()
        await call.play(0.14)
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(0.04)
        assert call.kinds("bot-started-speaking") == ["bot-started-speaking"]
        await call.play(4)
        (turn,) = call.turns
        assert len(call.models.prompts) == 1, "it was not made twice"
        assert (turn.user_text, turn.cancels, turn.wasted_tokens) == ("What time is it?", 0, 0)
        assert {span.revision for span in turn.spans} == {turn.committed_revision}


async def test_a_reply_begun_for_other_words_is_dropped_and_counted() -> None:
    async with calling() as call:
        call.models.hears = ["What time is it?", "What time is it in Paris?"]
        call.dialogue.heard(SpeechOnset(call.clock.now()))
        glimpse(call, ended_at=call.clock.now() - 1)
        await call.play(1)
        call.pause()
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(5)
        (turn,) = call.turns
        assert turn.user_text == "What time is it in Paris?"
        assert turn.cancels == 1
        assert turn.wasted_tokens == 2
        assert turn.wasted_speech > 0


async def test_a_failed_draft_is_the_turns_failure_only_if_it_becomes_one() -> None:
    async with calling() as call:
        call.models.hears = ["What time is it?", "What time is it?"]
        call.models.cut_after = 0
        call.dialogue.heard(SpeechOnset(call.clock.now()))
        glimpse(call, ended_at=call.clock.now() - 1)
        await call.play(1)
        assert call.kinds("error") == []
        call.pause()
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(4)
        (turn,) = call.turns
        assert turn.failed == "llm_failed"


async def test_nothing_is_begun_on_words_that_do_not_seem_to_be_all() -> None:
    async with calling() as call:
        call.models.hears = ["What is the"]
        say_what_does_not_seem_all(call)
        await call.play(1)
        assert call.models.prompts == []


async def test_what_was_heard_right_before_a_pause_is_answered_before_all_of_it_is_transcribed() -> None:
    async with calling() as call:
        call.models.hears = ["I would like", "I would like"]
        say_what_does_not_seem_all(call)
        await call.play(0.12)
        assert call.models.prompts == [], "it does not seem to be all"
        call.pause()
        await call.play(0.02)
        assert len(call.models.prompts) == 1
        await call.play(0.2)
        assert call.ear.patience[0] > 0.6, "how long to wait is judged all the same"
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(4)
        (turn,) = call.turns
        assert len(call.models.prompts) == 1, "it was not made twice"
        assert (turn.user_text, turn.cancels, turn.failed) == ("I would like", 0, None)


@pytest.mark.parametrize(
    ("text", "seconds"), [("We are sure that it is it.", 0.2), ("We are sure that it is...", 1.0)]
)
async def test_whoever_trails_off_is_waited_for(text: str, seconds: float) -> None:
    async with calling() as call:
        call.models.hears, call.models.complete = [text], 0.97
        call.speak(end=False)
        await call.play(0.5)
        assert call.ear.patience[-1] == seconds


async def test_what_was_heard_long_before_a_pause_is_not() -> None:
    async with calling() as call:
        call.models.hears = ["I would like", "I would like some tea"]
        say_what_does_not_seem_all(call)
        await call.play(0.2)
        call.pause()
        await call.play(0.06)
        assert call.models.prompts == []


async def test_whoever_goes_on_after_such_a_pause_is_not_answered() -> None:
    async with calling() as call:
        call.models.hears = ["I would like", "I would like some tea."]
        say_what_does_not_seem_all(call)
        await call.play(0.12)
        call.pause()
        await call.play(0.04)
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert turn.user_text == "I would like some tea."
        assert turn.cancels == 1
        assert call.models.streams_closed == 2


async def test_without_speculation_the_model_is_asked_when_the_turn_is_over() -> None:
    async with calling(Conduct(speculate=False)) as call:
        call.models.hears = ["Hello there."] * 2
        call.dialogue.heard(SpeechOnset(call.clock.now()))
        glimpse(call)
        await call.play(1)
        call.pause()
        await call.play(1)
        assert call.models.prompts == []
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(4)
        assert len(call.turns) == 1


async def test_a_budget_limits_what_is_begun_for_one_turn() -> None:
    async with calling(Conduct(drafts_a_turn=2)) as call:
        call.models.hears = [f"One two three {n}." for n in range(5)]
        for _ in range(4):
            call.speak(end=False)
            await call.play(1)
        assert len(call.models.prompts) == 2
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert turn.cancels == 2
        assert len(call.models.prompts) == 3


async def test_partial_transcripts_only_grow() -> None:
    async with calling() as call:
        call.models.hears = ["What", "What is", "What is the", "What was the capital", "What is the capital?"]
        call.dialogue.heard(SpeechOnset(call.clock.now()))
        for _ in range(4):
            glimpse(call, ended_at=0.0)
            await call.play(0.4)
        call.pause()
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(3)
        told = [m["data"] for m in call.sent if m["type"] == "user-transcription"]
        partials = [each["text"] for each in told if not each["final"]]
        assert partials
        for before, after in pairwise(partials):
            assert after.startswith(before)
        assert [each["text"] for each in told if each["final"]] == ["What is the capital?"]


async def test_a_listeners_words_do_not_begin_the_next_turns_partials() -> None:
    async with calling() as call:
        call.models.hears = ["First.", "Yeah", "Yeah", "Yeah.", "What is", "What is the", "What is the time?"]
        call.speak()
        await call.play(1)
        call.dialogue.heard(SpeechOnset(call.clock.now()))
        for _ in range(2):
            glimpse(call, ended_at=0.0)
            await call.play(0.2)
        call.pause()
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(4)
        call.dialogue.heard(SpeechOnset(call.clock.now()))
        for _ in range(2):
            glimpse(call, ended_at=0.0)
            await call.play(0.2)
        call.pause()
        call.dialogue.heard(SpeechEnd(call.clock.now()))
        await call.play(4)
        told = [m["data"]["text"] for m in call.sent if m["type"] == "user-transcription"]
        assert not any("Yeah" in text for text in told)
        assert "What is" in told


async def test_a_judgement_about_words_that_were_dropped_does_not_ask_the_engine() -> None:
    async with calling() as call:
        call.models.hears = ["What is the", "What is the capital?"]
        call.speak(end=False)
        await call.play(0.14)
        assert call.models.reads == 0, "the first clause is being written"
        call.speak(end=False)
        await call.play(1)
        assert call.models.reads == 1


async def test_going_on_after_a_turn_seemed_over_teaches_patience() -> None:
    async with calling() as call:
        waits = []
        for _ in range(6):
            call.models.hears = ["I would like some tea and a piece of cake."] * 2
            call.speak(end=False)
            await call.play(0.4)
            waits.append(call.ear.patience[-1])
            call.dialogue.heard(SpeechEnd(call.clock.now()))
            call.models.hears = ["I would like some tea and a piece of cake and an apple."]
            call.dialogue.heard(SpeechOnset(call.clock.now() + 0.6))
            call.pause()
            await call.play(0.14)
            call.dialogue.heard(SpeechEnd(call.clock.now()))
            await call.play(5)
        assert waits[-1] > waits[0]


async def test_a_turn_that_was_reopened_still_counts_what_was_wasted_before() -> None:
    async with calling() as call:
        call.models.hears = ["One two three.", "One two three four.", "One two three four five."]
        call.speak(end=False)
        await call.play(0.4)
        call.speak()
        await call.play(0.12)
        assert call.turns == []
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert turn.user_text == "One two three four five."
        assert turn.cancels == 2
        assert turn.wasted_tokens >= 1


# ── what the ear keeps ─────────────────────────────────────────────────────────────────────────


async def test_a_listeners_sound_over_a_reply_is_no_part_of_the_next_turn() -> None:
    async with calling() as call:
        call.models.hears = ["First.", "Mm-hm."]
        call.speak()
        await call.play(1)
        assert call.ear.closed == 1, "when the reply began"
        call.speak()
        await call.play(1)
        assert call.ear.closed == 2


async def test_interrupting_a_typed_question_keeps_what_is_being_said() -> None:
    async with calling() as call:
        call.models.hears = ["What is the", "What is the capital?"]
        call.dialogue.typed("Hello?")
        await call.play(0.04)
        call.speak(end=False)
        await call.play(0.2)
        assert call.turns[0].interrupted
        assert call.ear.closed == 0, "they may not be done"


# ── what clients are told ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("after", [0.14, 0.3, 1.0, 2.5])
async def test_every_reply_that_is_begun_is_told_to_have_stopped_once(after: float) -> None:
    async with calling() as call:
        call.models.hears = ["One two three.", "One two three four."]
        call.models.says = ["Well then. ", *["So it goes on and on. "] * 8]
        call.speak()
        await call.play(after)
        call.speak()
        await call.play(20)
        told = call.kinds("bot-llm-started", "bot-llm-stopped")
        assert told == ["bot-llm-started", "bot-llm-stopped"] * 2
        assert len(call.kinds("bot-tts-stopped")) == 2


# ── no silent turn ─────────────────────────────────────────────────────────────────────────────


async def test_speech_without_words_is_asked_about_and_on_record() -> None:
    async with calling() as call:
        call.models.hears = [""]
        now = call.clock.now()
        call.dialogue.heard(SpeechOnset(now))
        call.dialogue.heard(SpeechPause(now, Utterance(np.zeros(9, np.float32), now - 1, now, voiced=0.8)))
        call.dialogue.heard(SpeechEnd(now))
        await call.play(3)
        (turn,) = call.turns
        assert turn.failed == "not_understood"
        assert call.texts("bot-tts-text") == ["Pardon", "me?"]


async def test_a_noise_is_not_asked_about() -> None:
    async with calling() as call:
        call.models.hears = [""]
        call.speak()
        await call.play(3)
        assert call.turns == []
        assert call.texts("bot-tts-text") == []
        assert call.dialogue.mood() == "idle"


async def test_words_that_could_not_be_made_out_yet_do_not_end_the_turn() -> None:
    async with calling() as call:
        call.models.hears = ["", "Ask what you can do."]
        call.speak(end=False)
        await call.play(0.3)
        assert call.ear.patience == [], "the user may be going on"
        assert call.ear.closed == 0
        call.speak()
        await call.play(4)
        assert [turn.user_text for turn in call.turns] == ["Ask what you can do."]


async def test_a_filler_breaks_a_long_silence_and_is_not_the_first_audio() -> None:
    async with calling(Conduct(filler_after=0.5), filler=speech("Let me think.")) as call:
        call.models.says = ["Well."]

        works = call.models.stream
        waiting = asyncio.Event()

        async def stream(prompt):  # type: ignore[no-untyped-def]
            await waiting.wait()
            async for delta in works(prompt):
                yield delta

        call.models.stream = stream  # type: ignore[method-assign]
        call.speak()
        await call.play(1.5)
        assert call.texts("bot-tts-text") == ["Let", "me", "think."]
        waiting.set()
        await call.play(3)
        (turn,) = call.turns
        assert turn.first_sound_at is not None
        assert turn.first_audio_at is not None
        assert turn.first_audio_at > turn.first_sound_at + 0.6
        assert turn.heard_text == "Well."


async def test_a_filler_is_no_reply() -> None:
    async with calling(Conduct(filler_after=0.1), filler=speech("Let me think.")) as call:
        call.models.says = ["* * *"]
        call.speak()
        await call.play(4)
        (turn,) = call.turns
        assert turn.failed == "reply_empty"
        assert call.texts("bot-tts-text")[-3:] == ["Sorry", "about", "that."]


async def test_a_quick_reply_has_no_filler() -> None:
    async with calling(Conduct(filler_after=0.5), filler=speech("Let me think.")) as call:
        call.speak()
        await call.play(4)
        assert "think." not in call.texts("bot-tts-text")


# ── whatever happens ───────────────────────────────────────────────────────────────────────────

STEPS = st.lists(
    st.one_of(
        st.sampled_from(["stir", "still", "onset", "glimpse", "pause", "end", "type", "button"]),
        st.floats(0.02, 0.8),
    ),
    max_size=20,
)


@settings(max_examples=60, deadline=None)
@given(
    STEPS, st.lists(st.sampled_from(["What now?", "Mm-hmm.", "", "Tell me more."]), min_size=25, max_size=25)
)
def test_every_turn_has_one_end_one_message_each_and_the_next_one_works(
    steps: list[str | float], hears: list[str]
) -> None:
    async def story() -> None:
        async with calling() as call:
            call.models.hears = [*hears, *hears, *hears, *hears, "Still there?"]
            speaking = paused = False
            for step in steps:
                now = call.clock.now()
                match step:
                    case float():
                        await call.play(step)
                    case "stir":
                        call.dialogue.heard(Stirring(now))
                    case "still":
                        call.dialogue.heard(Stilled(now))
                    case "onset" if not speaking:
                        call.dialogue.heard(SpeechOnset(now))
                        speaking, paused = True, False
                    case "glimpse" if speaking:
                        glimpse(call)
                    case "pause" if speaking:
                        call.pause()
                        speaking, paused = False, True
                    case "end" if paused:
                        call.dialogue.heard(SpeechEnd(now))
                        paused = False
                    case "type":
                        call.dialogue.typed("Typed.")
                        speaking = paused = False
                    case "button":
                        call.dialogue.interrupted()
            call.dialogue.typed("Hush.")
            await call.play(4)
            call.models.hears = ["Still there?"]
            call.speak()
            await call.play(4)
            assert call.turns[-1].user_text == "Still there?"
            assert call.turns[-1].heard_text == call.turns[-1].reply_text
            ids = [turn.turn_id for turn in call.turns]
            assert len(ids) == len(set(ids)), "one end each"
            history = call.dialogue.delivery.history()
            said = [message.text for message in history if message.role == "user"]
            assert said == [turn.user_text for turn in call.turns if turn.user_text]
            committed = [turn.committed_revision for turn in call.turns]
            assert committed == sorted(committed), "nothing of an older revision"
            assert all(turn.input in TurnInput for turn in call.turns)

    asyncio.run(story())
