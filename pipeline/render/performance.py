"""One session's acting: cues, mood and time → poses."""

import math
from dataclasses import dataclass
from random import Random

from pipeline.events import Mood, Pose, SpeechChunk
from pipeline.render.idle_life import Blinks, Drift, Gaze, Nods, ease
from pipeline.render.mouth import REST, MouthShape
from pipeline.render.speech_track import SpeechTrack


@dataclass(frozen=True, slots=True)
class _Manner:
    """How a mood shows. Values of a pose; chosen by eye."""

    smile: float
    brows: float
    turn: float
    nod: float
    tilt: float
    restlessness: float
    """How far the head drifts about that."""
    focus: tuple[float, float]
    """Where the eyes rest; (0, 0) is the user."""
    glances: float
    """How far they stray from it."""
    fixation_s: tuple[float, float]


_MANNERS = {
    Mood.IDLE: _Manner(0.5, 0.0, 0.0, 0.0, 0.0, 1.0, (0.0, 0.0), 0.28, (0.9, 3.2)),
    Mood.LISTENING: _Manner(0.5, 0.5, 0.05, 0.3, 0.36, 0.4, (0.0, 0.0), 0.06, (0.6, 2.0)),
    Mood.THINKING: _Manner(0.12, 0.3, 0.34, -0.3, -0.26, 0.6, (0.62, -0.62), 0.18, (0.7, 1.6)),
    Mood.SPEAKING: _Manner(0.3, 0.06, 0.0, 0.04, 0.04, 1.15, (0.0, 0.0), 0.14, (0.8, 2.6)),
}

MOOD_CHANGE_S = 0.35
"""A change of mood takes this long."""

MOUTH_CATCH_UP_S = 0.12
"""When the speech breaks off or jumps, the mouth gets to where it should be within this time."""

_JUMP_S = 0.06
"""A position that runs off from `now` by more than this between two frames has jumped."""

_STALL_S = 0.1
"""Speech that has not moved on for this long is silence: a mouth frozen open would look dead."""

_GESTURE_LAG_S = 0.07
"""Head and brows follow a stressed syllable with the inertia of a first-order lag this long."""


class Performance:
    """A `Performer`: owns everything about the face that lasts longer than a frame.

    The same seed and the same sequence of calls give the same poses. Not thread-safe: call it where
    the session runs, and hand the pose to whoever draws.
    """

    def __init__(self, seed: int) -> None:
        self._track = SpeechTrack()
        self._mouth = _FollowingMouth()
        self._moods = _MoodBlend()
        self._blinks = Blinks(Random(f"{seed} blinks"))
        self._gaze = Gaze(Random(f"{seed} gaze"))
        self._nods = Nods(Random(f"{seed} nods"))
        drifts = Random(f"{seed} drift")
        self._slow = [Drift(drifts.getrandbits(64), period) for period in (3.3, 2.9, 3.9)]
        self._quick = [Drift(drifts.getrandbits(64), period) for period in (1.1, 0.9, 1.3)]
        self._breath_pace = Drift(drifts.getrandbits(64), 7.0)
        self._breath_phase = drifts.uniform(0.0, 2 * math.pi)
        self._side = 1.0
        self._beat = 0.0
        self._last: float | None = None
        self._mood: Mood | None = None

    @property
    def unknown_phonemes(self) -> int:
        """How many phonemes had no known viseme so far."""
        return self._track.unknown.total()

    def cue(self, chunk: SpeechChunk, at: float) -> None:
        """`chunk` will be heard from audio position `at` on; it replaces later cues."""
        self._track.cue(chunk, at)
        self._mouth.startle()

    def clear(self) -> None:
        """Forget all cues; the mouth closes within MOUTH_CATCH_UP_S."""
        self._track.clear()
        self._mouth.startle()

    def pose(self, now: float, position: float | None, mood: Mood) -> Pose:
        """The pose for a frame shown at `now`. Frames are asked for in order of time."""
        elapsed = 0.0 if self._last is None else max(0.0, now - self._last)
        self._last = now
        self._moods.move(mood, elapsed)
        mouth = self._mouth.shape(now, position, self._track)
        emphasis = 0.0 if position is None else self._track.emphasis(position)
        self._beat += (emphasis - self._beat) * (1.0 - math.exp(-elapsed / _GESTURE_LAG_S))
        turn, nod, tilt = self._head(now)
        gaze_x, gaze_y = self._eyes(now, mood, turn, nod)
        return Pose(
            jaw=mouth.jaw,
            width=mouth.width,
            press=mouth.press,
            tuck=mouth.tuck,
            tongue=mouth.tongue,
            smile=self._moods.mean("smile") + 0.06 * self._slow[0].at(now),
            blink=self._blinks.closure(now),
            brows=self._moods.mean("brows") + 0.08 * self._slow[1].at(now) + 0.5 * self._beat**2,
            gaze_x=gaze_x,
            gaze_y=gaze_y,
            turn=turn,
            nod=nod,
            tilt=tilt,
            breath=self._breathe(now, elapsed),
        )

    def _head(self, now: float) -> tuple[float, float, float]:
        calm = self._moods.mean("restlessness")
        speaking = self._moods.share(Mood.SPEAKING)
        turn, nod, tilt = (
            calm * (0.2 * slow.at(now) + (0.02 + 0.1 * speaking) * quick.at(now))
            for slow, quick in zip(self._slow, self._quick, strict=True)
        )
        turn += self._moods.mean("turn") * self._side + 0.1 * self._beat * self._quick[0].at(now)
        nod += self._moods.mean("nod") + 0.3 * self._beat
        nod += 0.3 * self._nods.at(now) * self._moods.share(Mood.LISTENING)
        tilt += self._moods.mean("tilt") * self._side
        return turn, nod, tilt

    def _eyes(self, now: float, mood: Mood, turn: float, nod: float) -> tuple[float, float]:
        if mood is Mood.THINKING and self._mood is not mood:
            # not always to the same side
            self._side = -self._side
        if mood is not self._mood or self._gaze.restless(now):
            manner = _MANNERS[mood]
            focus = (manner.focus[0] * self._side, manner.focus[1])
            self._gaze.look(now, focus, manner.glances, manner.fixation_s)
            self._mood = mood
        x, y = self._gaze.at(now)
        # eyes hold on to what they look at while the head moves
        return x - 0.45 * turn, y - 0.4 * nod

    def _breathe(self, now: float, elapsed: float) -> float:
        per_second = (0.26 + 0.04 * self._breath_pace.at(now)) * 2 * math.pi
        self._breath_phase += elapsed * per_second
        return 0.5 - 0.5 * math.cos(self._breath_phase)


class _MoodBlend:
    """How much of each mood is showing."""

    def __init__(self) -> None:
        self._shares: dict[Mood, float] = {}

    def move(self, mood: Mood, elapsed: float) -> None:
        if not self._shares:
            self._shares = {each: float(each is mood) for each in Mood}
        step = elapsed / MOOD_CHANGE_S
        for each, share in self._shares.items():
            target = float(each is mood)
            self._shares[each] = share + max(-step, min(step, target - share))

    def share(self, mood: Mood) -> float:
        return ease(self._shares[mood]) / sum(ease(share) for share in self._shares.values())

    def mean(self, trait: str) -> float:
        return sum(self.share(mood) * float(getattr(_MANNERS[mood], trait)) for mood in Mood)


class _FollowingMouth:
    """The mouth of the track, with jumps smoothed: what was shown last fades into what is due."""

    def __init__(self) -> None:
        self._shown = REST
        self._offset = REST
        self._offset_since = -math.inf
        self._last_now: float | None = None
        self._last_position: float | None = None
        self._advanced_at = -math.inf
        self._silent = True
        self._startled = False

    def startle(self) -> None:
        """What is due may change at once."""
        self._startled = True

    def shape(self, now: float, position: float | None, track: SpeechTrack) -> MouthShape:
        jumped = self._notice(now, position)
        due = REST if position is None or self._silent else track.shape(position)
        if jumped:
            self._offset = _combine(self._shown, due, -1.0)
            self._offset_since = now if self._last_now is None else self._last_now
        fade = 1.0 - ease((now - self._offset_since) / MOUTH_CATCH_UP_S)
        self._shown = _combine(due, self._offset, fade) if fade > 0.0 else due
        self._last_now, self._last_position = now, position
        return self._shown

    def _notice(self, now: float, position: float | None) -> bool:
        """Whether what is due may have jumped since the last frame."""
        was_silent, was_at = self._silent, self._last_position
        if position is not None and position != was_at:
            self._advanced_at = now
        self._silent = position is None or now - self._advanced_at >= _STALL_S
        jumped = self._startled or self._silent is not was_silent
        if position is not None and was_at is not None and self._last_now is not None and position != was_at:
            jumped = jumped or abs((position - was_at) - (now - self._last_now)) > _JUMP_S
        self._startled = False
        return jumped


def _combine(a: MouthShape, b: MouthShape, factor: float) -> MouthShape:
    return MouthShape(
        a.jaw + factor * b.jaw,
        a.width + factor * b.width,
        a.press + factor * b.press,
        a.tuck + factor * b.tuck,
        a.tongue + factor * b.tongue,
    )
