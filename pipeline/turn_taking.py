"""Who has the floor: two small machines fed with events, answering with actions. No I/O, no clock.

user   SILENT ⇄ SPEAKING ⇄ MAYBE_DONE     what the microphone does
agent  IDLE → PREPARING → SPEAKING ⇄ HELD  what becomes of the reply

A *revision* is one reading of what the user has said so far in this turn; each pause makes a new one,
and work on the one before is dropped. A revision is *committed* when the user's turn is over and its
text is not empty: from then on it is the turn, and its reply may be heard. While an earlier reply is
held (the user spoke over it), a new revision only gets transcribed, since a cough must give that reply
back; it is answered once it is committed, when the held reply is cancelled.
"""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.errors import IllegalTransitionError


class User(StrEnum):
    SILENT = "silent"
    SPEAKING = "speaking"
    MAYBE_DONE = "maybe_done"


class Agent(StrEnum):
    IDLE = "idle"
    PREPARING = "preparing"
    SPEAKING = "speaking"
    HELD = "held"


# ── actions, for the session to carry out in order ─────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Begin:
    """Transcribe what was said so far; `answer` says whether to prepare the reply ahead of the commit."""

    revision: int
    answer: bool


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
    """This revision held no words; it is not a turn."""

    revision: int


@dataclass(frozen=True, slots=True)
class Forget:
    """What was being said does not count: the user typed instead."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Stop the reply where it is and keep everything."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with the held reply."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """The held or unfinished reply is over: empty everything."""


Action = Begin | Drop | Commit | Dismiss | Forget | Hold | Resume | Cancel


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
        self._held_from = Agent.IDLE
        self._has_words: bool | None = None
        self._ended = False
        self._open = False

    # ── the user ───────────────────────────────────────────────────────────────────────────────

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
        if self.agent in (Agent.PREPARING, Agent.SPEAKING):
            self._held_from, self.agent = self.agent, Agent.HELD
            return [Hold()]
        return []

    def speech_paused(self) -> list[Action]:
        """The user fell silent; perhaps that was all."""
        if self.user is not User.SPEAKING:
            raise self._illegal("speech_paused", "user speaking")
        self.user = User.MAYBE_DONE
        self._new_revision()
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

    def transcribed(self, revision: int, *, has_words: bool) -> list[Action]:
        """Whether a revision is something to answer; late news of an old one changes nothing."""
        if revision != self.revision or not self._open:
            return []
        self._has_words = has_words
        return self._settle()

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
        self.agent, self._replying = Agent.PREPARING, True
        return [*stopped, Begin(self.revision, answer=True), Commit(self.revision)]

    def announced(self) -> list[Action]:
        """The agent is about to say something of its own accord."""
        if self.agent is not Agent.IDLE or self.user is not User.SILENT:
            raise self._illegal("announced", "user silent and agent idle")
        self.agent, self._replying = Agent.PREPARING, True
        return []

    # ── the agent ──────────────────────────────────────────────────────────────────────────────

    def reply_started(self) -> list[Action]:
        """The first sample of the reply went out."""
        if self.agent is not Agent.PREPARING:
            raise self._illegal("reply_started", "agent preparing")
        self.agent = Agent.SPEAKING
        return []

    def reply_ended(self) -> list[Action]:
        """The reply was played to its end, or could not be made."""
        if self.agent is Agent.IDLE:
            raise self._illegal("reply_ended", "a reply under way")
        self.agent, self._replying = Agent.IDLE, False
        return []

    # ── between the two ────────────────────────────────────────────────────────────────────────

    def _settle(self) -> list[Action]:
        """Decide once the turn is over and its text is known."""
        if not self._ended or self._has_words is None:
            return []
        self._open = False
        if not self._has_words:
            if self.agent is Agent.HELD:
                self.agent = self._held_from
                return [Dismiss(self.revision), Resume()]
            if not self._replying:
                self.agent = Agent.IDLE
            return [Dismiss(self.revision)]
        cancelled: list[Action] = [Cancel()] if self._replying else []
        self.agent, self._replying = Agent.PREPARING, True
        return [*cancelled, Commit(self.revision)]

    def _new_revision(self) -> None:
        self.revision += 1
        self._has_words = None
        self._ended = False
        self._open = True

    def _illegal(self, event: str, expected: str) -> IllegalTransitionError:
        return IllegalTransitionError(
            f"{event} while user {self.user}, agent {self.agent}; expected {expected}"
        )
