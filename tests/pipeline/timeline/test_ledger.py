from pipeline.timeline.ledger import KEPT, Emitted, Ledger
from pipeline.timeline.presentation import Presentation

RATE = 48_000


def frame(pts: int, at: float, turn: str | None = None, start: float = 0.0) -> Emitted:
    return Emitted(pts, at, turn, start, start + 0.02)


def test_a_time_stamp_names_its_frame_also_past_the_wrap() -> None:
    ledger = Ledger(RATE, lambda: 2**32 - 1000)
    for index in range(100):
        ledger.made(frame(960 * index, 0.02 * index))
    assert ledger.pts((960 * 99 - 1000) % 2**32) == 960 * 99
    found = ledger.frame(960 * 50 + 5)
    assert found is not None
    assert found.pts == 960 * 50


def test_packets_say_when_a_frame_left_the_last_one_counts() -> None:
    ledger = Ledger(RATE, lambda: 7)
    ledger.made(frame(960, 1.0))
    ledger.sent(967, 1.001)
    ledger.sent(967, 1.004)
    found = ledger.frame(960)
    assert found is not None
    assert found.sent_at == 1.004


def test_nothing_is_known_before_the_origin_is() -> None:
    ledger = Ledger(RATE, lambda: None)
    ledger.made(frame(960, 1.0))
    assert ledger.pts(960) is None
    ledger.sent(960, 1.0)


def test_what_is_old_is_forgotten_and_a_reconnection_begins_anew() -> None:
    ledger = Ledger(RATE, lambda: 0)
    for index in range(round(KEPT / 0.02) + 100):
        ledger.made(frame(960 * index, 0.02 * index, "t"))
    assert len(ledger.of_turn("t")) <= KEPT / 0.02 + 1
    ledger.made(frame(0, 99.0))
    assert ledger.of_turn("t") == []


def test_what_was_presented_goes_on_until_the_next_report() -> None:
    heard = Presentation(RATE)
    assert heard.time_of(0) is None
    heard.add(48_000, 11.0)
    heard.add(96_000, 12.1)
    assert heard.time_of(0) is None
    assert heard.time_of(72_000) == 11.5
    assert heard.time_of(96_000) == 12.1
    assert heard.time_of(120_000) == 12.6


def test_sound_that_was_left_out_to_catch_up_is_spread_between_two_reports() -> None:
    heard = Presentation(RATE)
    heard.add(48_000, 11.0)
    heard.add(96_000, 11.5)
    assert heard.time_of(72_000) == 11.25
    assert heard.time_of(95_999) < 11.5, "nothing is heard before what precedes it"


def test_reports_that_go_back_are_ignored() -> None:
    heard = Presentation(RATE)
    heard.add(480_000, 11.0)
    heard.add(479_000, 11.5)
    heard.add(490_000, 10.9)
    assert heard.newest == 11.0
    heard.add(100, 12.0)
    assert heard.time_of(100) == 12.0, "another connection"
