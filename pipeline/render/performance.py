"""One session's acting: cues, mood and time → poses."""

import math
from random import Random

from pipeline.events import Mood, Pose, SpeechChunk
from pipeline.render.following_mouth import FollowingMouth
from pipeline.render.idle_life import Blinks, Drift, Gaze, Nods
from pipeline.render.moods import ATTENTION, MOOD_CHANGE_S, Bearing, MoodBlend
from pipeline.render.speech_track import SpeechTrack

_GESTURE_LAG_S = 0.07
"""Head and brows follow a stressed syllable with the inertia of a first-order lag this long."""


class Performance:
    """A `Performer`: owns everything about the face that lasts longer than a frame.

    The same seed and the same sequence of calls give the same poses. Not thread-safe: call it where
    the session runs, and hand the pose to whoever draws.
    """

    def __init__(self, seed: int) -> None:
        self._track = SpeechTrack()
        self._mouth = FollowingMouth()
        self._moods = MoodBlend()
        self._blinks = Blinks(Random(f"{seed} blinks"))
        self._gaze = Gaze(Random(f"{seed} gaze"))
        self._nods = Nods(Random(f"{seed} nods"))
        drifts = Random(f"{seed} drifts")
        self._slow = [Drift(drifts.getrandbits(64), period) for period in (3.3, 2.9, 3.9)]
        self._quick = [Drift(drifts.getrandbits(64), period) for period in (1.1, 0.9, 1.3)]
        self._breath_pace = Drift(drifts.getrandbits(64), 7.0)
        self._breath_phase = drifts.uniform(0.0, 2 * math.pi)
        self._sides = Random(f"{seed} sides")
        self._side = self._side_due = 1.0
        self._beat = 0.0
        self._mood: Mood | None = None
        self._now: float | None = None

    @property
    def unknown_phonemes(self) -> int:
        """How many phonemes had no known viseme so far."""
        return self._track.unknown.total()

    def cue(self, chunk: SpeechChunk, at: float) -> None:
        """`chunk` will be heard from audio position `at` on; it replaces what was cued from there on."""
        self._track.cue(chunk, at)

    def clear(self) -> None:
        """Forget all cues; the mouth closes within `following_mouth.CATCH_UP_S`."""
        self._track.clear()

    def pose(self, now: float, position: float | None, mood: Mood) -> Pose:
        """The pose for a frame shown at `now`. Frames are asked for in order of time."""
        elapsed = 0.0 if self._now is None else max(0.0, now - self._now)
        self._moods.move(mood, elapsed)
        self._choose_side(mood, elapsed)
        bearing = self._moods.bearing()
        mouth = self._mouth.shape(now, position, self._track.spans)
        emphasis = 0.0 if position is None else self._track.emphasis(position)
        self._beat += (emphasis - self._beat) * (1.0 - math.exp(-elapsed / _GESTURE_LAG_S))
        turn, nod, tilt = self._head(now, bearing)
        gaze_x, gaze_y = self._eyes(now, mood, turn, nod)
        self._mood, self._now = mood, now
        return Pose(
            jaw=mouth.jaw,
            width=mouth.width,
            press=mouth.press,
            tuck=mouth.tuck,
            tongue=mouth.tongue,
            smile=bearing.smile + 0.06 * self._slow[0].at(now),
            blink=self._blinks.closure(now),
            brows=min(1.0, bearing.brows + 0.08 * self._slow[1].at(now) + 0.5 * self._beat**2),
            gaze_x=gaze_x,
            gaze_y=gaze_y,
            turn=turn,
            nod=nod,
            tilt=tilt,
            breath=self._breathe(now, elapsed),
        )

    def _choose_side(self, mood: Mood, elapsed: float) -> None:
        """Whoever looks aside to think does not always look to the same side."""
        if mood is Mood.THINKING and self._mood is not mood:
            self._side_due = self._sides.choice((-1.0, 1.0))
        step = 2 * elapsed / MOOD_CHANGE_S
        self._side += max(-step, min(step, self._side_due - self._side))

    def _head(self, now: float, bearing: Bearing) -> tuple[float, float, float]:
        lively = 0.02 + 0.1 * self._moods.share(Mood.SPEAKING)
        turn, nod, tilt = (
            bearing.restlessness * (0.2 * slow.at(now) + lively * quick.at(now))
            for slow, quick in zip(self._slow, self._quick, strict=True)
        )
        turn += bearing.turn * self._side + 0.1 * self._beat * self._quick[0].at(now)
        nod += bearing.nod + 0.3 * self._beat
        nod += 0.3 * self._nods.at(now) * self._moods.share(Mood.LISTENING)
        tilt += bearing.tilt * self._side
        return turn, nod, tilt

    def _eyes(self, now: float, mood: Mood, turn: float, nod: float) -> tuple[float, float]:
        attention = ATTENTION[mood]
        if mood is not self._mood or self._gaze.restless(now):
            x, y = attention.focus
            self._gaze.look(now, (x * self._side_due, y), attention.glances, attention.fixation_s)
        x, y = self._gaze.at(now)
        # eyes hold on to what they look at while the head moves
        return x - 0.45 * turn, y - 0.4 * nod

    def _breathe(self, now: float, elapsed: float) -> float:
        per_second = (0.26 + 0.04 * self._breath_pace.at(now)) * 2 * math.pi
        self._breath_phase += elapsed * per_second
        return 0.5 - 0.5 * math.cos(self._breath_phase)
