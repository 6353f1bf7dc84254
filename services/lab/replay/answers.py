"""Answers to what stages are asked in a replay: from the tape, and at the time at which they came then.

What is asked when it was asked in the call is answered when it was then; anything else takes as long as it
took then. What the tape holds no answer to is noted, and answered by a real stage, or by
the nearest that there is.
"""

import hashlib
import math
from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from pipeline.clock import Clock, VirtualClock
from pipeline.errors import LanguageModelError, StageError, SynthesisError, TranscriptionError
from pipeline.events import WIRE_RATE
from pipeline.headroom import Headroom
from pipeline.tape import values
from pipeline.tape.entries import DONE, DROPPED, Asked, Call
from pipeline.tape.values import Form, Question
from pipeline.webrtc.playout import FRAME_SECONDS
from services.lab.replay.tape import Tape

T = TypeVar("T")

_SAME_SOUND = {Asked.TRANSCRIBER: 1.0, Asked.TURN_END: 1.0}
"""Seconds within which sound of one length is the same utterance."""

_ERRORS = {Asked.TRANSCRIBER: TranscriptionError, Asked.SYNTHESIZER: SynthesisError}

_WORD = 0.33
"""Seconds that a word takes whose speech is not on the tape."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that was not asked in the call, or whose answer nobody waited for then."""

    at: float
    question: Question


@dataclass(frozen=True, slots=True)
class _Take(Generic[T]):
    """An answer that can be given again."""

    pieces: Sequence[tuple[float, float, T]]
    """When each was waited for, and when it came."""
    waited_since: float = 0.0
    """Since when its end was waited for."""
    ended: float = 0.0
    outcome: str = DONE
    """As a call's."""


class Answers:
    """One replay's `Way`. `clock` is its virtual one; `real` times what real stages do."""

    def __init__(self, tape: Tape, clock: VirtualClock, real: Clock) -> None:
        self.missing: list[Missing] = []
        self._tape = tape
        self._clock = clock
        self._real = real
        self._inputs = [entry.at for entry in tape.inputs]

    async def stream(
        self, question: Question, form: Form[T], stage: Callable[[], AsyncGenerator[T, None]] | None
    ) -> AsyncGenerator[T, None]:
        """The answer, piece by piece. Raises StageError where the stage did, or where nothing answers."""
        call, given = self._known(question), 0
        if call is not None:
            take = _of_tape(call, form)
            if question.asked is Asked.PROMPTS and stage is not None:
                take = await self._rewritten(take, form, stage)
            async with aclosing(self._play(take, question)) as pieces:
                async for piece in pieces:
                    yield piece
                    given += 1
            if take.outcome != DROPPED:
                return
        self.missing.append(Missing(self._clock.now(), question))
        if given:
            return  # what nobody waited for in the call ends here
        take = self._instead(question, form) if stage is None else await self._measured(stage())
        async with aclosing(self._play(take, question)) as pieces:
            async for piece in pieces:
                yield piece

    def free(self, headroom: Headroom | None) -> bool:
        """What other conversations left of the processor is as it was."""
        call = self._known(values.HEADROOM)
        return call is None or bool(call.pieces[0].value)

    def _known(self, question: Question) -> Call | None:
        """The same question in the call; of several, the one asked nearest to now."""
        same = [call for call in self._tape.calls[question.asked] if call.key == question.key]
        call = self._nearest(same)
        limit = _SAME_SOUND.get(question.asked, math.inf)
        return call if call is not None and abs(call.asked - self._clock.now()) <= limit else None

    def _nearest(self, calls: Sequence[Call]) -> Call | None:
        now = self._clock.now()
        return min(calls, key=lambda call: abs(call.asked - now), default=None)

    async def _rewritten(
        self, take: _Take[T], form: Form[T], stage: Callable[[], AsyncGenerator[T, None]]
    ) -> _Take[T]:
        """A prompt by what the instructions say now; one that comes out as it did takes as long as it did."""
        written = await self._measured(stage())
        same = [form.write(piece[2]) for piece in (*take.pieces, *written.pieces)]
        if len(same) != 2 or same[0] != same[1]:
            return written
        ((asked, came, _),), ((_, _, prompt),) = take.pieces, written.pieces
        return _Take([(asked, came, prompt)], take.waited_since, take.ended)

    async def _measured(self, stage: AsyncGenerator[T, None]) -> _Take[T]:
        """A real stage's answer: what it takes in real time it takes here too."""
        now, pieces = self._clock.now(), []
        with self._clock.standing_still():
            began = waited_since = self._real.now()
            async with aclosing(stage) as answer:
                async for piece in answer:
                    came = self._real.now()
                    pieces.append((now + waited_since - began, now + came - began, piece))
                    waited_since = came
            ended = self._real.now()
        return _Take(pieces, now + waited_since - began, now + ended - began)

    def _instead(self, question: Question, form: Form[T]) -> _Take[T]:
        """Where there is no real stage: what is known without one, or what it was asked around now."""
        if (value := _made_up(question)) is not None:
            return _Take([(0.0, 0.0, form.read(value))])
        answered = [call for call in self._tape.calls[question.asked] if call.outcome == DONE]
        nearest = self._nearest(answered)
        if nearest is not None:
            return _of_tape(nearest, form)
        if question.asked is Asked.TURN_END:
            return _Take([(0.0, 0.0, form.read(0.5))])
        raise _error(question)(f"the tape holds no answer to {question.about}")

    async def _play(self, take: _Take[T], question: Question) -> AsyncGenerator[T, None]:
        """One that was dropped ends when it is sure that nobody drops it now."""
        for asked, came, piece in take.pieces:
            await self._clock.sleep_until(self._moment(came, asked))
            yield piece
        ended = self._moment(take.ended, take.waited_since)
        if take.outcome == DROPPED:
            ended = max(ended, self._clock.now()) + FRAME_SECONDS
        await self._clock.sleep_until(ended)
        if take.outcome not in (DONE, DROPPED):
            raise _error(question)("it failed like this in the call")

    def _moment(self, came: float, asked: float) -> float:
        """When something comes that was waited for since `asked` in the call, and is since now.

        The same time is one within a frame, or after the same input: the loop may have been late in the call.
        """
        now = self._clock.now()
        earlier, later = min(asked, now), max(asked, now)
        if later - earlier <= FRAME_SECONDS:
            return came
        inputs = bisect_right(self._inputs, earlier)
        # Before the first one nothing says when it is: the agent's own lines are spoken long before a replay.
        after_same = 0 < inputs == bisect_left(self._inputs, later)
        return came if after_same else now + (came - asked)


def _of_tape(call: Call, form: Form[T]) -> _Take[T]:
    pieces = [(piece.asked, piece.came, form.read(piece.value)) for piece in call.pieces]
    return _Take(pieces, call.waited_since, call.ended, call.outcome)


def _error(question: Question) -> type[StageError]:
    return _ERRORS.get(question.asked, LanguageModelError)


def _made_up(question: Question) -> Any:
    """An answer that needs no recording, as it would stand on a tape: a prompt known by what was said, and
    silence as long as the speech is. None: there is none."""
    match question.asked:
        case Asked.PROMPTS:
            digest = hashlib.sha256(question.key.encode()).hexdigest()
            return {"sections": [], "digest": digest, "max_output_tokens": 0}
        case Asked.SYNTHESIZER:
            words = question.key.split()
            times = [(word, _WORD * n, _WORD * (n + 1)) for n, word in enumerate(words)]
            pcm = np.zeros(round(_WORD * len(words) * WIRE_RATE), np.int16)
            return {"text": question.key, "pcm": values.as_json(pcm), "words": times, "aligned": False}
    return None
