"""How each mood shows, and how one gives way to the next."""

import operator
from typing import NamedTuple

from pipeline.events import Mood
from pipeline.render.easing import ease

MOOD_CHANGE_S = 0.35
"""A change of mood takes this long: quick enough to answer, slow enough not to twitch."""


class Bearing(NamedTuple):
    """How the face is held, in values of a pose. Moods mix by mixing these."""

    smile: float
    brows: float
    turn: float
    nod: float
    tilt: float
    restlessness: float
    """How far the head drifts about that, against idling."""


class Attention(NamedTuple):
    """What the eyes do. It does not mix: eyes jump."""

    focus: tuple[float, float]
    """Where they rest, as gaze_x and gaze_y; (0, 0) is the user."""
    glances: float
    """How far they stray from it."""
    fixation_s: tuple[float, float]
    """Shortest and longest stay in one place."""


# Chosen by eye on the drawn character: told apart at a glance, none of them a pantomime.
BEARINGS = {
    Mood.IDLE: Bearing(smile=0.5, brows=0.0, turn=0.0, nod=0.0, tilt=0.0, restlessness=1.0),
    Mood.LISTENING: Bearing(smile=0.5, brows=0.5, turn=0.05, nod=0.3, tilt=0.36, restlessness=0.4),
    Mood.THINKING: Bearing(smile=0.12, brows=0.3, turn=0.34, nod=-0.3, tilt=-0.26, restlessness=0.6),
    Mood.SPEAKING: Bearing(smile=0.3, brows=0.06, turn=0.0, nod=0.04, tilt=0.04, restlessness=1.15),
}

ATTENTION = {
    Mood.IDLE: Attention(focus=(0.0, 0.0), glances=0.28, fixation_s=(0.9, 3.2)),
    Mood.LISTENING: Attention(focus=(0.0, 0.0), glances=0.06, fixation_s=(0.6, 2.0)),
    Mood.THINKING: Attention(focus=(0.62, -0.62), glances=0.18, fixation_s=(0.7, 1.6)),
    Mood.SPEAKING: Attention(focus=(0.0, 0.0), glances=0.14, fixation_s=(0.8, 2.6)),
}


class MoodBlend:
    """How much of each mood is showing."""

    def __init__(self) -> None:
        self._shares: dict[Mood, float] = {}

    def move(self, mood: Mood, elapsed: float) -> None:
        """`mood` has been due for `elapsed` seconds more; the very first mood shows at once."""
        if not self._shares:
            self._shares = {each: float(each is mood) for each in Mood}
        step = elapsed / MOOD_CHANGE_S
        for each, share in self._shares.items():
            target = float(each is mood)
            self._shares[each] = share + max(-step, min(step, target - share))

    def share(self, mood: Mood) -> float:
        """0 … 1; the shares of all moods add up to 1."""
        return ease(self._shares[mood]) / sum(map(ease, self._shares.values()))

    def bearing(self) -> Bearing:
        shares = [self.share(mood) for mood in Mood]
        traits = zip(*(BEARINGS[mood] for mood in Mood), strict=True)
        return Bearing(*(sum(map(operator.mul, shares, trait)) for trait in traits))
