import numpy as np
import pytest

from pipeline.events import WIRE_RATE
from services.lab.arrivals import LOOK_AHEAD, PLAYOUT, Heard
from services.lab.playout_buffer import PlayoutBuffer

PACKET = WIRE_RATE // 50

BEGIN = 2**32 - 3 * PACKET
"""Time stamps begin anew at 0 after three packets."""


def packets(
    *, late: dict[int, float] | None = None, lost: tuple[int, ...] = (), count: int = 50
) -> list[Heard]:
    pcm = np.zeros(PACKET, np.int16)
    return [
        Heard(5.0 + k * 0.02 + (late or {}).get(k, 0.0), (BEGIN + k * PACKET) % 2**32, pcm)
        for k in range(count)
        if k not in lost
    ]


def times(heard: list[Heard]) -> list[float]:
    return [at - LOOK_AHEAD for _, at in PlayoutBuffer().play(heard).moments]


def test_packets_in_time_are_played_a_buffer_later() -> None:
    assert times(packets()) == pytest.approx([5.0 + PLAYOUT + k * 0.02 for k in range(50)])


def test_jitter_below_the_buffer_is_not_heard() -> None:
    assert times(packets(late={10: 0.03, 11: 0.01})) == pytest.approx(times(packets()))


def test_what_is_later_than_the_buffer_is_played_when_it_comes() -> None:
    found, usual = times(packets(late={10: 0.2})), times(packets())
    assert found[10] == pytest.approx(5.0 + 0.2 + 0.2)
    assert found[9] == pytest.approx(usual[9])
    assert found[20] == pytest.approx(usual[20])


def test_what_never_came_is_told() -> None:
    played = PlayoutBuffer().play(packets(lost=(10, 11, 12)))
    assert played.concealed == [(pytest.approx(5.2 + PLAYOUT), pytest.approx(5.26 + PLAYOUT))]


def test_a_longer_way_is_the_usual_one_after_a_while() -> None:
    heard = packets(late=dict.fromkeys(range(50, 800), 0.1), count=800)
    assert times(heard)[-1] == pytest.approx(5.0 + 799 * 0.02 + 0.1 + PLAYOUT)
