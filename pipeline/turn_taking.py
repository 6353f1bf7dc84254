"""Who has the floor: two small machines fed with events, answering with actions. No I/O, no clock.

user   SILENT ⇄ SPEAKING ⇄ MAYBE_DONE     what the microphone does
agent  IDLE → PREPARING → SPEAKING ⇄ HELD  what becomes of the reply

A *revision* is one reading of what the user has said so far in this turn; each pause makes a new one,
and work on the one before is dropped. A revision is *committed* when the user's turn is over and there
is something in it to answer: from then on it is the turn, and its reply may be heard.

*Hold before cancel*: a sound that may become speech ducks the reply, speech holds it. While it is held
a new revision only gets transcribed, since a cough or an "mm-hm" must give the reply back. Words that
ask for an answer end it: a reply that was heard is cancelled, and one of which nothing was heard yet
had been begun too early, so the turn it was for is reopened and goes on in the new revision.
"""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.errors import IllegalTransitionError
from pipeline.events import Mood


class User(StrEnum):
    SILENT = "silent"
    SPEAKING = "speaking"
    MAYBE_DONE = "maybe_done"


class Agent(StrEnum):
    IDLE = "idle"
    PREPARING = "preparing"
    SPEAKING = "speaking"
    HELD = "held"


# ── actions, for the dialogue to carry out in order ────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Begin:
    """Transcribe what was said so far; `answer` says whether to prepare the reply ahead of the commit."""

    revision: int
    answer: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """Prepare this revision's reply, which `Begin` had put off."""

    revision: int


@dataclass(frozen=True, slots=True)
class Drop:
    """The user went on speaking: nothing of this revision may be heard or kept."""

    revision: int


@dataclass(frozen=True, slots=True)
class Commit:
    """This revision is the user's turn: its reply may be heard."""

    revision: int


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Nothing in this revision asks for an answer; it is not a turn."""

    revision: int


@dataclass(frozen=True, slots=True)
class Forget:
    """What was being said does not count: the user typed instead."""


@dataclass(frozen=True, slots=True)
class Duck:
    """Lower the reply: the user may be about to speak."""


@dataclass(frozen=True, slots=True)
class Unduck:
    """It was nothing: the reply at full level again."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Stop the reply where it is and keep everything."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with the held reply."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """The held or unfinished reply is over: empty everything."""


@dataclass(frozen=True, slots=True)
class Reopen:
    """Nothing of the held reply was heard: drop it; the turn it was for is not over."""


Action = Begin | Answer | Drop | Commit | Dismiss | Forget | Duck | Unduck | Hold | Resume | Cancel | Reopen


class TurnTaking:
    """One conversation's floor. Every method is an event and returns what is to be done about it.

    Raises IllegalTransitionError, naming state and event, for an event that cannot happen.
    """

    def __init__(self) -> None:
        self.user = User.SILENT
        self.agent = Agent.IDLE
        self.revision = 0
        self._replying = False
        """A committed reply is not over yet."""
        self._interruptible = True
        self._from_speech = False
        """The turn under way was spoken, so that speech can go on with it."""
        self._held_from = Agent.IDLE
        self._asks: bool | None = None
        """Whether the newest revision asks for an answer, once its text is known."""
        self._put_off = False
        """Its reply is not being prepared, because another was under way."""
        self._ended = False
        self._open = False

    @property
    def replying(self) -> bool:
        """A committed reply is not over yet."""
        return self._replying

    @property
    def mood(self) -> Mood:
        """What the agent visibly does now."""
        if self.agent is Agent.SPEAKING:
            return Mood.SPEAKING
        if self.user is not User.SILENT:
            return Mood.LISTENING
        return Mood.THINKING if self.agent is Agent.PREPARING else Mood.IDLE

    # ── the user ───────────────────────────────────────────────────────────────────────────────

    def stirred(self) -> list[Action]:
        """A sound that may become speech."""
        return [Duck()] if self.agent is Agent.SPEAKING and self._interruptible else []

    def stilled(self) -> list[Action]:
        """The sound ended and was none."""
        return [Unduck()] if self.agent is Agent.SPEAKING and self._interruptible else []

    def speech_started(self) -> list[Action]:
        """The user began or went on speaking."""
        if self.user is User.SPEAKING:
            raise self._illegal("speech_started", "user silent or maybe_done")
        self.user = User.SPEAKING
        if self._open:  # not committed yet, so it goes on, even when its end had been called
            self._open = False
            if not self._replying:
                self.agent = Agent.IDLE
            return [Drop(self.revision)]
        if self.agent in (Agent.PREPARING, Agent.SPEAKING) and self._interruptible:
            self._held_from, self.agent = self.agent, Agent.HELD
            return [Hold()]
        return []

    def speech_paused(self) -> list[Action]:
        """The user fell silent; perhaps that was all."""
        if self.user is not User.SPEAKING:
            raise self._illegal("speech_paused", "user speaking")
        self.user = User.MAYBE_DONE
        self._new_revision()
        self._put_off = self._replying
        return [Begin(self.revision, answer=not self._replying)]

    def speech_ended(self) -> list[Action]:
        """The silence lasted: the user's turn is over."""
        if self.user is not User.MAYBE_DONE:
            raise self._illegal("speech_ended", "user maybe_done")
        self.user = User.SILENT
        self._ended = True
        if self.agent is Agent.IDLE:
            self.agent = Agent.PREPARING
        return self._settle()

    def transcribed(self, revision: int, *, asks: bool) -> list[Action]:
        """Whether a revision asks for an answer; late news of an old one changes nothing."""
        if revision != self.revision or not self._open:
            return []
        self._asks = asks
        actions: list[Action] = []
        if asks and self.agent is Agent.HELD:
            actions = [*self._interrupt(), Answer(revision)]
        elif asks and self._put_off and not self._replying:
            actions = [Answer(revision)]
        return [*actions, *self._settle()]

    def typed(self) -> list[Action]:
        """The user sent text: a turn at once, in place of any reply or speech under way."""
        stopped: list[Action] = [Drop(self.revision)] if self._open else []
        if self._open or self.user is not User.SILENT:
            self.user = User.SILENT
            stopped.append(Forget())
        if self._replying:
            stopped.append(Cancel())
        self._new_revision()
        self._open = False
        self._start_reply(from_speech=False)
        return [*stopped, Begin(self.revision, answer=True), Commit(self.revision)]

    def interrupted(self) -> list[Action]:
        """The user asked for silence, by a button: the reply is over, even one that was not begun yet."""
        if self._replying:
            return [Cancel(), *self._reply_over()]
        if self._open and self._ended:
            self._open, self.agent = False, Agent.IDLE
            return [Dismiss(self.revision)]
        return []

    # ── the agent ──────────────────────────────────────────────────────────────────────────────

    def announced(self, *, interruptible: bool = True) -> list[Action]:
        """The agent is about to say something of its own accord."""
        if self.agent is not Agent.IDLE or self.user is not User.SILENT:
            raise self._illegal("announced", "user silent and agent idle")
        self._start_reply(from_speech=False)
        self._interruptible = interruptible
        return []

    def uninterruptible(self) -> list[Action]:
        """The reply under way is one that must be heard to its end."""
        if not self._replying:
            raise self._illegal("uninterruptible", "a reply under way")
        self._interruptible = False
        if self.agent is Agent.HELD:
            self.agent = self._held_from
            return [Resume()]
        return [Unduck()] if self.agent is Agent.SPEAKING else []

    def reply_started(self) -> list[Action]:
        """The first sample of the reply went out."""
        if self.agent is not Agent.PREPARING:
            raise self._illegal("reply_started", "agent preparing")
        self.agent = Agent.SPEAKING
        return []

    def reply_ended(self) -> list[Action]:
        """The reply was played to its end, or could not be made."""
        if not self._replying:
            raise self._illegal("reply_ended", "a reply under way")
        return self._reply_over()

    # ── between the two ────────────────────────────────────────────────────────────────────────

    def _reply_over(self) -> list[Action]:
        self.agent, self._replying = Agent.IDLE, False
        if not self._open:
            return []
        # What was said meanwhile had to wait for a reply that could not be interrupted.
        if self._ended:
            self.agent = Agent.PREPARING
        return [Answer(self.revision), *self._settle()] if self._asks else self._settle()

    def _settle(self) -> list[Action]:
        """Decide once the turn is over and it is known what is in it."""
        if not self._ended or self._asks is None:
            return []
        if self._asks and self._replying and not self._interruptible:
            return []  # until the reply has ended
        self._open = False
        if not self._asks:
            if self.agent is Agent.HELD:
                self.agent = self._held_from
                return [Dismiss(self.revision), Resume()]
            if not self._replying:
                self.agent = Agent.IDLE
            return [Dismiss(self.revision)]
        cancelled = self._interrupt() if self._replying else []
        self._start_reply(from_speech=True)
        return [*cancelled, Commit(self.revision)]

    def _interrupt(self) -> list[Action]:
        """The reply under way makes room for what the user says."""
        unheard = self.agent is Agent.PREPARING or (
            self.agent is Agent.HELD and self._held_from is Agent.PREPARING
        )
        self._replying = False
        self.agent = Agent.PREPARING if self._ended else Agent.IDLE
        return [Reopen()] if unheard and self._from_speech else [Cancel()]

    def _start_reply(self, *, from_speech: bool) -> None:
        self.agent, self._replying = Agent.PREPARING, True
        self._interruptible, self._from_speech = True, from_speech

    def _new_revision(self) -> None:
        self.revision += 1
        self._asks = None
        self._ended = False
        self._open = True

    def _illegal(self, event: str, expected: str) -> IllegalTransitionError:
        return IllegalTransitionError(
            f"{event} while user {self.user}, agent {self.agent}; expected {expected}"
        )
