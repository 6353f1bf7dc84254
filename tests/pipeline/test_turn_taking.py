import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import turn_taking
from pipeline.errors import IllegalTransitionError
from pipeline.turn_taking import (
    Agent,
    Answer,
    Begin,
    Cancel,
    Commit,
    Dismiss,
    Drop,
    Duck,
    Forget,
    Hold,
    Reopen,
    Resume,
    TurnTaking,
    Unduck,
    User,
)


def spoken(floor: TurnTaking, *, asks: bool = True) -> list[turn_taking.Action]:
    """A whole utterance whose transcript comes before its end."""
    return [
        *floor.speech_started(),
        *floor.speech_paused(),
        *floor.transcribed(floor.revision, asks=asks),
        *floor.speech_ended(),
    ]


def test_a_plain_turn() -> None:
    floor = TurnTaking()
    assert spoken(floor) == [Begin(1, answer=True), Commit(1)]
    assert floor.agent is Agent.PREPARING
    floor.reply_started()
    assert floor.agent is Agent.SPEAKING
    floor.reply_ended()
    assert (floor.user, floor.agent) == (User.SILENT, Agent.IDLE)


def test_the_transcript_may_come_after_the_end() -> None:
    floor = TurnTaking()
    floor.speech_started()
    floor.speech_paused()
    assert floor.speech_ended() == []
    assert floor.transcribed(1, asks=True) == [Commit(1)]


def test_going_on_after_a_pause_drops_the_revision() -> None:
    floor = TurnTaking()
    floor.speech_started()
    floor.speech_paused()
    assert floor.speech_started() == [Drop(1)]
    assert floor.transcribed(1, asks=True) == [], "news of a dropped revision"
    assert floor.speech_paused() == [Begin(2, answer=True)]


def test_going_on_after_the_end_but_before_the_commit_drops_it_too() -> None:
    floor = TurnTaking()
    floor.speech_started()
    floor.speech_paused()
    floor.speech_ended()
    assert floor.speech_started() == [Drop(1)]
    assert floor.agent is Agent.IDLE


def test_noise_is_not_a_turn() -> None:
    floor = TurnTaking()
    assert spoken(floor, asks=False) == [Begin(1, answer=True), Dismiss(1)]
    assert floor.agent is Agent.IDLE


@pytest.mark.parametrize("started", [False, True])
def test_a_cough_gives_the_reply_back(started: bool) -> None:
    floor = TurnTaking()
    spoken(floor)
    if started:
        floor.reply_started()
    before = floor.agent
    assert spoken(floor, asks=False) == [Hold(), Begin(2, answer=False), Dismiss(2), Resume()]
    assert floor.agent is before


def test_words_over_a_reply_cancel_it_and_are_answered() -> None:
    floor = TurnTaking()
    spoken(floor)
    floor.reply_started()
    assert spoken(floor) == [Hold(), Begin(2, answer=False), Cancel(), Answer(2), Commit(2)]
    assert floor.agent is Agent.PREPARING


def test_words_before_anything_of_a_reply_was_heard_reopen_its_turn() -> None:
    floor = TurnTaking()
    spoken(floor)
    assert spoken(floor) == [Hold(), Begin(2, answer=False), Reopen(), Answer(2), Commit(2)]
    assert floor.agent is Agent.PREPARING


def test_words_before_a_reply_to_typed_text_do_not_reopen_it() -> None:
    floor = TurnTaking()
    floor.typed()
    assert spoken(floor)[2:] == [Cancel(), Answer(2), Commit(2)]


def test_a_sound_ducks_what_is_heard_and_nothing_else() -> None:
    floor = TurnTaking()
    assert floor.stirred() == floor.stilled() == []
    spoken(floor)
    assert floor.stirred() == [], "nothing is heard yet"
    floor.reply_started()
    assert floor.stirred() == [Duck()]
    assert floor.stilled() == [Unduck()]
    floor.uninterruptible()
    assert floor.stirred() == []


def test_what_is_said_over_an_uninterruptible_reply_is_answered_after_it() -> None:
    floor = TurnTaking()
    spoken(floor)
    floor.uninterruptible()
    floor.reply_started()
    assert spoken(floor) == [Begin(2, answer=False)]
    assert floor.agent is Agent.SPEAKING
    assert floor.reply_ended() == [Answer(2), Commit(2)]
    assert floor.agent is Agent.PREPARING


def test_a_reply_that_becomes_uninterruptible_while_held_goes_on() -> None:
    floor = TurnTaking()
    spoken(floor)
    floor.speech_started()
    assert floor.uninterruptible() == [Resume()]
    assert floor.agent is Agent.PREPARING


def test_a_button_ends_the_reply_also_while_it_is_held() -> None:
    floor = TurnTaking()
    assert floor.interrupted() == []
    spoken(floor)
    floor.reply_started()
    assert floor.interrupted() == [Cancel()]
    assert floor.agent is Agent.IDLE
    spoken(floor)
    floor.speech_started()
    assert floor.interrupted() == [Cancel()]
    floor.speech_paused()
    assert floor.transcribed(3, asks=True) == []
    assert floor.speech_ended() == [Commit(3)]


def test_a_reply_that_ends_while_held_leaves_the_floor_free() -> None:
    floor = TurnTaking()
    spoken(floor)
    floor.reply_started()
    floor.speech_started()
    floor.reply_ended()
    floor.speech_paused()
    floor.transcribed(2, asks=True)
    assert floor.speech_ended() == [Commit(2)]


def test_text_replaces_reply_and_speech() -> None:
    floor = TurnTaking()
    spoken(floor)
    floor.reply_started()
    assert floor.typed() == [Cancel(), Begin(2, answer=True), Commit(2)]
    floor.reply_ended()
    floor.speech_started()
    floor.speech_paused()
    assert floor.typed() == [Drop(3), Forget(), Begin(4, answer=True), Commit(4)]
    assert floor.user is User.SILENT


def test_text_replaces_speech_that_still_goes_on_or_waits_for_its_transcript() -> None:
    floor = TurnTaking()
    floor.speech_started()
    assert floor.typed() == [Forget(), Begin(1, answer=True), Commit(1)]
    assert floor.user is User.SILENT
    floor.reply_ended()
    floor.speech_started()
    floor.speech_paused()
    floor.speech_ended()
    assert floor.typed() == [Drop(2), Forget(), Begin(3, answer=True), Commit(3)]


def test_an_illegal_event_names_state_and_event() -> None:
    with pytest.raises(IllegalTransitionError, match="speech_paused while user silent, agent idle"):
        TurnTaking().speech_paused()


EVENTS = st.lists(
    st.sampled_from(
        [
            *("stir", "still", "start", "pause", "end", "words", "noise", "late_words", "type"),
            *("reply_start", "reply_end", "button", "announce", "insist"),
        ]
    ),
    max_size=60,
)


@settings(max_examples=600)
@given(EVENTS)
def test_any_story_keeps_the_rules(events: list[str]) -> None:
    """Whatever legal events come in whatever order: one fate a revision, one reply at a time, never stuck."""
    floor = TurnTaking()
    fate: dict[int, str] = {}
    alive: set[int] = set()
    playing: int | None = None
    held = started = insisting = False

    def take(actions: list[turn_taking.Action]) -> None:
        nonlocal playing, held, started, insisting
        for action in actions:
            match action:
                case Begin(revision=revision):
                    assert all(revision > other for other in [*fate, *alive])
                    alive.add(revision)
                case Drop(revision=revision) | Dismiss(revision=revision):
                    assert revision in alive
                    alive.remove(revision)
                    fate[revision] = "none"
                case Commit(revision=revision):
                    assert revision in alive
                    assert revision == max(alive), "only the newest revision may speak"
                    assert playing is None, "two replies at once"
                    alive.remove(revision)
                    fate[revision] = "turn"
                    playing, started, insisting = revision, False, False
                case Hold():
                    assert playing is not None
                    assert not held
                    held = True
                case Resume():
                    assert playing is not None
                    assert held
                    held = False
                case Cancel():
                    assert playing is not None
                    playing, held = None, False
                case Reopen():
                    assert playing is not None
                    assert not started, "what was heard is a turn"
                    assert alive, "it goes on in another revision"
                    fate[playing] = "none"
                    playing, held = None, False
                case Answer(revision=revision):
                    assert revision in alive
                    assert playing is None
                case Duck() | Unduck():
                    assert floor.agent is Agent.SPEAKING

    def feed(event: str) -> None:
        nonlocal playing, held, started, insisting
        match event:
            case "stir":
                take(floor.stirred())
            case "still":
                take(floor.stilled())
            case "button":
                take(floor.interrupted())
            case "announce" if floor.agent is Agent.IDLE and floor.user is User.SILENT:
                take(floor.announced())
                playing, started, insisting = floor.revision, False, False
            case "insist" if playing is not None:
                insisting = True
                take(floor.uninterruptible())
            case "start" if floor.user is not User.SPEAKING:
                take(floor.speech_started())
            case "pause" if floor.user is User.SPEAKING:
                take(floor.speech_paused())
            case "end" if floor.user is User.MAYBE_DONE:
                take(floor.speech_ended())
            case "words":
                take(floor.transcribed(floor.revision, asks=True))
            case "noise":
                take(floor.transcribed(floor.revision, asks=False))
            case "late_words":
                take(floor.transcribed(floor.revision - 1, asks=True))
            case "type":
                take(floor.typed())
            case "reply_start" if playing is not None and floor.agent is Agent.PREPARING:
                take(floor.reply_started())
                started = True
            case "reply_end" if playing is not None:
                playing, held = None, False
                take(floor.reply_ended())

    for event in events:
        feed(event)
        assert len(alive) <= 1
        assert (floor.agent is Agent.HELD) == held
        both = (floor.user is User.SPEAKING, floor.agent is Agent.SPEAKING)
        assert insisting or both != (True, True), "the agent talks over the user"

    # After any story it can still take a turn.
    for event in ("pause", "words", "end", "reply_end", "start", "pause", "words", "end"):
        feed(event)
    assert fate[floor.revision] == "turn"
    assert floor.agent is Agent.PREPARING


def test_the_button_lets_what_waited_for_an_uninterruptible_reply_be_answered() -> None:
    floor = TurnTaking()
    spoken(floor)
    floor.uninterruptible()
    floor.reply_started()
    spoken(floor)
    assert floor.interrupted() == [Cancel(), Answer(2), Commit(2)]


def test_the_button_dismisses_a_turn_whose_words_are_not_known_yet() -> None:
    floor = TurnTaking()
    floor.speech_started()
    floor.speech_paused()
    floor.speech_ended()
    assert floor.interrupted() == [Dismiss(1)]
    assert floor.agent is Agent.IDLE
    assert floor.transcribed(1, asks=True) == []


def test_a_reply_that_was_lowered_and_must_be_heard_is_at_full_level_again() -> None:
    floor = TurnTaking()
    spoken(floor)
    floor.reply_started()
    assert floor.stirred() == [Duck()]
    assert floor.uninterruptible() == [Unduck()]


def test_a_reply_put_off_is_prepared_when_the_one_before_ends_meanwhile() -> None:
    floor = TurnTaking()
    spoken(floor)
    floor.reply_started()
    floor.speech_started()
    assert floor.speech_paused() == [Begin(2, answer=False)]
    assert floor.interrupted() == [Cancel()]
    assert floor.transcribed(2, asks=True) == [Answer(2)]
    assert floor.speech_ended() == [Commit(2)]
