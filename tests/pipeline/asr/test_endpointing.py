from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.asr.endpointing import Endpointing, EndpointingSettings, Mark

WINDOW = 0.032
SETTINGS = EndpointingSettings(onset=0.096, pause=0.2, longest=0.5, max_utterance=30)


def run(
    *stretches: tuple[float, float], settings: EndpointingSettings = SETTINGS
) -> list[tuple[Mark, float]]:
    """Feed stretches of (speech probability, seconds); the marks and when they came."""
    endpointing = Endpointing(settings)
    marks: list[tuple[Mark, float]] = []
    index = 0
    for probability, seconds in stretches:
        for _ in range(round(seconds / WINDOW)):
            mark = endpointing.observe(probability, index * WINDOW, (index + 1) * WINDOW)
            index += 1
            if mark is not None:
                marks.append((mark, round(index * WINDOW, 3)))
    return marks


def test_a_turn_has_an_onset_a_pause_and_an_end() -> None:
    marks = run((0.0, 0.32), (0.9, 0.96), (0.0, 1.0))
    assert [mark for mark, _ in marks] == [Mark.STIR, Mark.ONSET, Mark.PAUSE, Mark.END]
    _, (_, onset), (_, pause), (_, end) = marks
    assert onset == 0.416, "96 ms into the speech that began at 0.32"
    assert 1.28 + 0.2 <= pause < 1.28 + 0.2 + WINDOW
    assert 1.28 + 0.5 <= end < 1.28 + 0.5 + WINDOW


def test_a_click_is_no_onset() -> None:
    assert run((0.0, 0.32), (0.95, 0.032), (0.0, 1.0)) == []
    assert [mark for mark, _ in run((0.0, 0.32), (0.95, 0.064), (0.0, 1.0))] == [Mark.STIR, Mark.STILL]


def test_going_on_after_a_pause_is_the_same_turn() -> None:
    marks = [mark for mark, _ in run((0.9, 0.64), (0.0, 0.32), (0.9, 0.64), (0.0, 1.0))]
    assert marks == [Mark.STIR, Mark.ONSET, Mark.PAUSE, Mark.RESUMED, Mark.PAUSE, Mark.END]


def test_a_short_gap_is_not_a_pause() -> None:
    assert [mark for mark, _ in run((0.9, 0.64), (0.0, 0.16), (0.9, 0.64))] == [Mark.STIR, Mark.ONSET]


def test_speech_that_gets_weaker_is_still_speech() -> None:
    assert [mark for mark, _ in run((0.9, 0.64), (0.4, 1.6))] == [Mark.STIR, Mark.ONSET]
    assert run((0.4, 1.6)) == [], "as strong as that it does not begin"


def test_endless_speech_is_ended() -> None:
    settings = EndpointingSettings(max_utterance=3.0)
    marks = run((0.9, 3.2), settings=settings)
    assert [mark for mark, _ in marks] == [Mark.STIR, Mark.ONSET, Mark.END]
    assert 3.0 <= marks[2][1] <= 3.0 + 2 * WINDOW


def test_an_endless_talker_gets_an_end_and_begins_anew_only_after_a_pause() -> None:
    settings = EndpointingSettings(max_utterance=3.0)
    endpointing = Endpointing(settings)

    def feed(probability: float, begin: int, end: int) -> list[Mark]:
        marks = (endpointing.observe(probability, i * WINDOW, (i + 1) * WINDOW) for i in range(begin, end))
        return [mark for mark in marks if mark is not None]

    assert feed(0.9, 0, 200) == [Mark.STIR, Mark.ONSET, Mark.END]
    assert feed(0.0, 200, 210) + feed(0.9, 210, 230) == [], "the turn is not settled"
    endpointing.release()
    assert feed(0.9, 230, 250) == [], "no pause yet"
    assert feed(0.0, 250, 260) + feed(0.9, 260, 280) == [Mark.STIR, Mark.ONSET]


def test_what_was_abandoned_goes_on_unheard_until_something_new_is_said() -> None:
    endpointing = Endpointing(SETTINGS)

    def feed(probability: float, begin: int, end: int) -> list[Mark]:
        marks = (endpointing.observe(probability, i * WINDOW, (i + 1) * WINDOW) for i in range(begin, end))
        return [mark for mark in marks if mark is not None]

    assert feed(0.9, 0, 20) == [Mark.STIR, Mark.ONSET]
    endpointing.abandon()
    assert not endpointing.speaking
    assert feed(0.9, 20, 40) + feed(0.0, 40, 52) + feed(0.9, 52, 70) == [], "a gap between its words"
    assert feed(0.0, 70, 90) == []
    assert feed(0.9, 90, 100) == [Mark.STIR, Mark.ONSET]


def test_abandoning_nothing_changes_nothing() -> None:
    endpointing = Endpointing(SETTINGS)
    endpointing.abandon()
    marks = [endpointing.observe(0.9, i * WINDOW, (i + 1) * WINDOW) for i in range(10)]
    assert Mark.ONSET in marks


def paused(silence: int) -> Endpointing:
    """After a second of speech and this many windows of silence."""
    endpointing = Endpointing(SETTINGS)
    for index in range(31 + silence):
        endpointing.observe(0.9 if index < 31 else 0.0, index * WINDOW, (index + 1) * WINDOW)
    return endpointing


def test_a_judgement_shortens_the_wait() -> None:
    endpointing = paused(7)
    assert endpointing.judged(0.25, 38 * WINDOW) is None
    assert endpointing.observe(0.0, 38 * WINDOW, 39 * WINDOW) is Mark.END


def test_a_judgement_that_comes_late_ends_the_turn_at_once() -> None:
    assert paused(10).judged(0.25, 41 * WINDOW) is Mark.END


def test_no_judgement_stretches_the_upper_bound_or_outlives_its_pause() -> None:
    endpointing = paused(7)
    endpointing.judged(9.0, 38 * WINDOW)
    marks = [endpointing.observe(0.0, i * WINDOW, (i + 1) * WINDOW) for i in range(38, 60)]
    assert marks.index(Mark.END) == round(0.5 / WINDOW) + 30 - 38
    endpointing = paused(7)
    endpointing.judged(0.3, 38 * WINDOW)
    for i in range(38, 45):
        endpointing.observe(0.9, i * WINDOW, (i + 1) * WINDOW)
    marks = [endpointing.observe(0.0, i * WINDOW, (i + 1) * WINDOW) for i in range(45, 58)]
    assert Mark.END not in marks, "this pause was not judged"


def test_nothing_ends_a_turn_while_the_user_begins_to_go_on() -> None:
    endpointing = paused(10)
    endpointing.observe(0.9, 41 * WINDOW, 42 * WINDOW)
    assert endpointing.judged(0.2, 42 * WINDOW) is None
    assert endpointing.observe(0.9, 42 * WINDOW, 43 * WINDOW) is Mark.RESUMED


def test_a_judgement_without_a_pause_is_for_nothing() -> None:
    assert Endpointing(SETTINGS).judged(0.0, 1.0) is None
    assert paused(0).judged(0.0, 31 * WINDOW) is None


@given(st.lists(st.floats(0, 1), max_size=400))
def test_marks_come_in_an_order_that_turn_taking_allows(probabilities: list[float]) -> None:
    endpointing = Endpointing(EndpointingSettings(max_utterance=3.0))
    marks = [
        mark
        for index, probability in enumerate(probabilities)
        if (mark := endpointing.observe(probability, index * WINDOW, (index + 1) * WINDOW))
    ]
    follows = {
        Mark.STIR: {Mark.STILL, Mark.ONSET},
        Mark.STILL: {Mark.STIR},
        Mark.ONSET: {Mark.PAUSE, Mark.END},
        Mark.PAUSE: {Mark.RESUMED, Mark.END},
        Mark.RESUMED: {Mark.PAUSE, Mark.END},
        Mark.END: {Mark.STIR},
    }
    assert all(later in follows[earlier] for earlier, later in pairwise(marks))
    assert not marks or marks[0] is Mark.STIR
