"""How much silence ends a turn: a policy fed with evidence, no I/O.

Four witnesses, weighed by logistic regression on 342 pauses (125 at the end of an utterance, 217 inside
one; two synthetic voices and human speech; five folds, no sentence in two of them):

    the language model    probability that a sentence ends after these words     area under ROC 0.96
    the transcript        whether Whisper put a full stop or a question mark                    0.74
    Smart Turn            how it sounds                                                         0.62
    their number          more words are likelier to be all
    together                                                                                    0.968

A transcript that trails off ("We are sure that one war is it...") is no end: 79 of 311 pauses inside were
written so, and none of 234 ends.

Smart Turn alone takes two thirds of the pauses inside synthetic sentences for ends, and four of ten human
ends for pauses; so it is asked only where the words leave it open (docs/decisions/0008).
"""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a pause being the end. None: this witness is missing."""

    words: float | None
    """Probability that a sentence ends after these words, by a language model."""
    punctuated: bool
    """The transcript closes with a full stop, a question mark or an exclamation mark."""
    count: int
    """Words in the transcript."""
    sound: float | None = None
    """Probability that the speaker sounds finished."""
    trails_off: bool = False
    """The transcript closes with an ellipsis or a dash."""


@dataclass(frozen=True, slots=True)
class PatienceSettings:
    """Seconds of silence."""

    shortest: float = 0.2
    """When the turn is clearly complete."""
    unsure: float = 0.72
    """When that is all but ruled out; in between it is waited the longer the less is sure."""
    longest: float = 1.0
    """When it is clearly not complete, and the upper bound of all."""


_CERTAIN = 2.75
_LIKELY = 1.5
"""Log-odds. By words alone 78 % of those pauses at the end are above the latter, and 2 % of those inside."""

_DOUBTFUL = 0.0
_DOUBTFUL_SHORT = 1.0
"""Log-odds below which it is clearly no end. A recogniser completes what was only begun ("There is a |
problem" becomes "There is a problem."), and a few words are easily completed."""

_SHORT = 4
"""Words up to which a turn is short."""

_CERTAIN_UNREAD = 1.5
"""Where no language model reads the words, which leaves it less sure: 38 % at the end, 2 % inside."""

_ENOUGH_WORDS = 10
"""More do not make the end likelier."""

_HESITATION = 0.85
"""Exponent of doubt: below 1, a little of it already costs some patience."""

_TRAILS_OFF = -5.0
"""Log-odds of what trails off."""

_USUAL_SOUND = 0.21
"""What a sound that was not judged counts: the mean of those pauses."""

_MOST_ADDED = 0.15
"""Seconds that a user's own habit can add to `shortest`."""


class Patience:
    """One user's: it learns how long they pause in mid-turn."""

    def __init__(self, settings: PatienceSettings) -> None:
        self._settings = settings
        self._habit = 0.0
        """Typical pause of this user inside a turn that seemed complete, in seconds."""

    def with_evidence(self, evidence: Evidence) -> float:
        """Seconds of silence after which a turn with this evidence is over."""
        score = log_odds(evidence)
        doubtful = _DOUBTFUL_SHORT if evidence.count <= _SHORT else _DOUBTFUL
        if score < doubtful:
            return self._settings.longest
        least, most = self.when_certain, max(self.when_certain, self._settings.unsure)
        if score >= _certain(evidence):
            return least
        doubt = (_certain(evidence) - score) / (_certain(evidence) - doubtful)
        return least + math.pow(doubt, _HESITATION) * (most - least)

    @property
    def when_certain(self) -> float:
        """Seconds of silence after which a turn is over that is certainly complete."""
        shortest = self._settings.shortest
        return shortest + min(_MOST_ADDED, max(0.0, self._habit - shortest))

    def likely_complete(self, evidence: Evidence) -> bool:
        """Whether a turn with this evidence is probably complete."""
        return log_odds(evidence) >= _LIKELY

    def hinges_on_sound(self, evidence: Evidence) -> bool:
        """Whether the words leave it open and how they sounded could change how long to wait."""
        if log_odds(evidence) >= _certain(evidence):
            return False
        least, most = (self.with_evidence(replace(evidence, sound=sound)) for sound in (0.0, 1.0))
        return least != most

    def went_on(self, pause: float, evidence: Evidence) -> None:
        """The user went on after `pause` seconds, although the evidence was this."""
        if self.likely_complete(evidence):
            self._habit += (pause - self._habit) / 4

    def ended(self) -> None:
        """A turn came to its end undisturbed: the habit fades."""
        self._habit *= 0.9


def log_odds(evidence: Evidence) -> float:
    """That a pause is an end."""
    if evidence.trails_off:
        return _TRAILS_OFF
    heard = _USUAL_SOUND if evidence.sound is None else 0.25 * _logit(evidence.sound)
    length = math.log1p(min(evidence.count, _ENOUGH_WORDS))
    if evidence.words is None:
        return 2.04 * evidence.punctuated + 2.86 * length + heard - 7.18
    return 0.84 * _logit(evidence.words) + 0.57 * evidence.punctuated + 1.7 * length + heard - 2.55


def _certain(evidence: Evidence) -> float:
    return _CERTAIN_UNREAD if evidence.words is None else _CERTAIN


def _logit(probability: float) -> float:
    return math.log((probability + 1e-3) / (1 - probability + 1e-3))
