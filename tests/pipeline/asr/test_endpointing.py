from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.asr.endpointing import Endpointing, EndpointingSettings, Mark

WINDOW = 0.032
SETTINGS = EndpointingSettings(onset=0.096, pause=0.2, endpoint=0.5, max_utterance=30)


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
    assert [mark for mark, _ in marks] == [Mark.ONSET, Mark.PAUSE, Mark.END]
    (_, onset), (_, pause), (_, end) = marks
    assert onset == 0.416, "96 ms into the speech that began at 0.32"
    assert 1.28 + 0.2 <= pause < 1.28 + 0.2 + WINDOW
    assert 1.28 + 0.5 <= end < 1.28 + 0.5 + WINDOW


def test_a_click_is_no_onset() -> None:
    assert run((0.0, 0.32), (0.95, 0.064), (0.0, 1.0)) == []


def test_going_on_after_a_pause_is_the_same_turn() -> None:
    marks = [mark for mark, _ in run((0.9, 0.64), (0.0, 0.32), (0.9, 0.64), (0.0, 1.0))]
    assert marks == [Mark.ONSET, Mark.PAUSE, Mark.RESUMED, Mark.PAUSE, Mark.END]


def test_a_short_gap_is_not_a_pause() -> None:
    assert [mark for mark, _ in run((0.9, 0.64), (0.0, 0.16), (0.9, 0.64))] == [Mark.ONSET]


def test_speech_that_gets_weaker_is_still_speech() -> None:
    assert [mark for mark, _ in run((0.9, 0.64), (0.4, 1.6))] == [Mark.ONSET]
    assert run((0.4, 1.6)) == [], "as strong as that it does not begin"


def test_endless_speech_is_ended() -> None:
    settings = EndpointingSettings(max_utterance=3.0)
    marks = run((0.9, 3.2), settings=settings)
    assert [mark for mark, _ in marks][:2] == [Mark.ONSET, Mark.END]
    assert 3.0 <= marks[1][1] <= 3.0 + 2 * WINDOW


def test_an_endless_talker_gets_an_end_and_begins_anew_only_after_a_pause() -> None:
    settings = EndpointingSettings(max_utterance=3.0)
    endpointing = Endpointing(settings)

    def feed(probability: float, begin: int, end: int) -> list[Mark]:
        marks = (endpointing.observe(probability, i * WINDOW, (i + 1) * WINDOW) for i in range(begin, end))
        return [mark for mark in marks if mark is not None]

    assert feed(0.9, 0, 200) == [Mark.ONSET, Mark.END]
    assert feed(0.0, 200, 210) + feed(0.9, 210, 230) == [], "the turn is not settled"
    endpointing.release()
    assert feed(0.9, 230, 250) == [], "no pause yet"
    assert feed(0.0, 250, 260) + feed(0.9, 260, 280) == [Mark.ONSET]


@given(st.lists(st.floats(0, 1), max_size=400))
def test_marks_come_in_an_order_that_turn_taking_allows(probabilities: list[float]) -> None:
    endpointing = Endpointing(EndpointingSettings(max_utterance=3.0))
    marks = [
        mark
        for index, probability in enumerate(probabilities)
        if (mark := endpointing.observe(probability, index * WINDOW, (index + 1) * WINDOW))
    ]
    follows = {
        Mark.ONSET: {Mark.PAUSE, Mark.END},
        Mark.PAUSE: {Mark.RESUMED, Mark.END},
        Mark.RESUMED: {Mark.PAUSE, Mark.END},
        Mark.END: {Mark.ONSET},
    }
    assert all(later in follows[earlier] for earlier, later in pairwise(marks))
    assert not marks or marks[0] is Mark.ONSET
