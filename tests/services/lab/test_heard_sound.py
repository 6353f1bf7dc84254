import pytest

from services.lab.heard_sound import HeardSound
from tests.services.lab.heard import packets, silence, tone, without


def test_sound_is_found_where_it_arrived() -> None:
    sound = HeardSound(packets(silence(0.5), tone(0.3), silence(0.2)), 100.0, 101.0)
    (run,) = sound.runs()
    assert sound.arrival(run.start) == pytest.approx(100.5, abs=0.011)
    assert sound.arrival(run.end - 1) == pytest.approx(100.8, abs=0.011)


def test_jitter_does_not_tear_the_sound_but_a_late_beginning_is_late() -> None:
    heard = packets(silence(0.5), tone(0.3), silence(0.2), late={25: 0.07, 26: 0.05, 30: 0.03})
    sound = HeardSound(heard, 100.0, 101.0)
    (run,) = sound.runs()
    assert sound.arrival(run.start) == pytest.approx(100.57, abs=0.011), "70 ms after its time stamp's turn"


def test_what_was_lost_counts_at_its_time_stamp() -> None:
    heard = without(packets(silence(0.5), tone(0.3), silence(0.2)), 10)
    sound = HeardSound(heard, 100.0, 101.0)
    assert sound.arrival(10 * 960 + 5) == pytest.approx(100.2, abs=0.001)
    assert len(sound.runs()) == 1


def test_nothing_heard_is_silence() -> None:
    sound = HeardSound([], 5.0, 6.0)
    assert sound.runs() == []
    assert sound.arrival(48_000) == 6.0
