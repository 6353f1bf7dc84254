"""Turns for exporters: one as a session's timeline gives it, and variations of it."""

from typing import Any

from pipeline.events import (
    ClientObservation,
    ClockStamps,
    Prompt,
    PromptSection,
    Span,
    Stage,
    TurnInput,
    TurnTrace,
    Usage,
)
from pipeline.timeline.loop_lag import LoopLag
from pipeline.timeline.session_timeline import SessionTimeline

CANARY = "marzipan"
"""A word that people said."""

STARTED, SPEECH_END = 100.0, 102.0


class _Hands:
    """A clock that shows what it is set to."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    async def sleep_until(self, deadline: float) -> None:
        raise AssertionError("nobody sleeps here")


def a_turn(**fields: Any) -> dict[str, Any]:
    """The whole record of a turn of 2 s of speech and 1 s of reply; `fields` differ."""
    clock = _Hands(STARTED)
    measured: list[dict[str, Any]] = []
    route = {"pattern": "colocated", "dialect": "llama_cpp"}
    timeline = SessionTimeline(clock, route, LoopLag(clock), lambda record: measured.append({**record}))
    timeline.connected(lambda kind: 0)
    timeline.stamped(ClockStamps(STARTED, STARTED, STARTED, STARTED))
    trace = _trace()
    sound, pictures = [], []
    clock.at = SPEECH_END + 0.5
    for number in range(50):
        now, position = clock.now(), number * 0.02
        timeline.voice_made(number * 960, "turn-7", (position, position + 0.02))
        timeline.packet_sent("audio", number * 960)
        sound.append((number * 960, now + 0.1))
        if number % 2 == 0:
            timeline.picture_made(number * 1800, now, "turn-7", position, moving=True)
            timeline.packet_sent("video", number * 1800)
            pictures.append((number * 1800, now + 0.1))
        clock.at += 0.02
    trace.ended_at = clock.now()
    timeline.observed(ClientObservation(tuple(sound), tuple(pictures)))
    timeline.turn_over(trace)
    timeline.close()
    (record,) = measured
    return {**record, **fields}


def _trace() -> TurnTrace:
    trace = TurnTrace("turn-7", "session-5", TurnInput.VOICE, STARTED, speech_end=SPEECH_END)
    trace.user_text = f"Who likes {CANARY}?"
    trace.reply_text = f"Everybody likes {CANARY}."
    trace.heard_text = trace.reply_text
    trace.committed_revision = 1
    trace.spans = [
        Span(Stage.ENDPOINTING, SPEECH_END, SPEECH_END + 0.2, 1),
        Span(Stage.ASR, SPEECH_END + 0.05, SPEECH_END + 0.15, 1),
        Span(Stage.PREFILL, SPEECH_END + 0.2, SPEECH_END + 0.3, 1),
        Span(Stage.FIRST_CLAUSE, SPEECH_END + 0.3, SPEECH_END + 0.4, 1),
        Span(Stage.TTS, SPEECH_END + 0.4, SPEECH_END + 0.48, 1),
    ]
    trace.clause_times = [(0.0, SPEECH_END + 0.4, SPEECH_END + 0.48)]
    trace.first_audible = 0.0
    trace.first_sound_at = trace.first_audio_at = SPEECH_END + 0.5
    trace.token_times = [SPEECH_END + 0.3 + 0.02 * n for n in range(6)]
    trace.usage = Usage(prompt_tokens=100, cached_tokens=80, output_tokens=6)
    trace.prompt = Prompt((), (PromptSection("turn", "d" * 64, 10),), "p" * 64, 80)
    trace.cancels, trace.wasted_tokens, trace.wasted_speech = 1, 7, 1.5
    return trace


GAP = {"at_ms": 400.0, "duration_ms": 200.0, "cause": "tts"}
FREEZE = {"at_ms": 500.0, "duration_ms": 440.0, "cause": "render", "w3c": True}
STALL = {"at_ms": 100.0, "duration_ms": 130.0, "cause": "encode", "w3c": False}
