import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.timeline.clock_tie import WINDOW, ClockSample, ClockTie

OFFSET = 1234.5
"""Our clock less the client's."""


def sample(
    asked: float, there: float, back: float, *, drift: float = 0.0, busy: float = 0.001
) -> ClockSample:
    """A request that left at `asked` of the client's clock and was under way so long, both ways."""

    def ours(client: float) -> float:
        return client + OFFSET + drift * client

    received = ours(asked + there)
    answered = received + busy
    return ClockSample(asked, received, answered, asked + there + busy + back)


def test_without_a_sample_nothing_is_known() -> None:
    tie = ClockTie()
    assert (tie.ours(1.0), tie.bound) == (None, None)


def test_equal_ways_give_the_offset_exactly() -> None:
    tie = ClockTie()
    tie.add(sample(10.0, 0.02, 0.02))
    assert tie.ours(10.0) == pytest.approx(10.0 + OFFSET)
    assert tie.bound == pytest.approx(0.02)


@given(st.lists(st.tuples(st.floats(0.0001, 0.5), st.floats(0.0001, 0.5)), min_size=1, max_size=60))
def test_the_error_stays_within_the_bound(ways: list[tuple[float, float]]) -> None:
    tie = ClockTie()
    for index, (there, back) in enumerate(ways):
        tie.add(sample(10.0 + index, there, back))
    now = 10.0 + len(ways)
    ours, bound = tie.ours(now), tie.bound
    assert ours is not None
    assert bound is not None
    assert abs(ours - now - OFFSET) <= bound + 1e-6


def test_the_sample_under_way_for_the_shortest_time_counts() -> None:
    tie = ClockTie()
    for index, back in enumerate((0.3, 0.001, 0.4, 0.2)):
        tie.add(sample(float(index), 0.001, back))
    assert tie.ours(1.0) == pytest.approx(1.0 + OFFSET, abs=1e-6)


def test_a_drift_is_fitted() -> None:
    tie = ClockTie()
    for index in range(30):
        tie.add(sample(2.0 * index, 0.002, 0.002, drift=1e-4))
    assert tie.drift == pytest.approx(1e-4, rel=0.01)
    ours = tie.ours(58.0)
    assert ours == pytest.approx(58.0 + OFFSET + 58.0 * 1e-4, abs=1e-5)


def test_old_samples_are_forgotten() -> None:
    tie = ClockTie()
    tie.add(sample(0.0, 0.001, 0.001))
    tie.add(sample(WINDOW + 1, 0.01, 0.03))
    assert tie.ours(WINDOW + 1) == pytest.approx(WINDOW + 1 + OFFSET - 0.01)


def test_a_bound_does_not_grow_while_there_are_newer_samples() -> None:
    tie = ClockTie()
    tie.add(sample(0.0, 0.001, 0.001))
    for index in range(1, 25):
        tie.add(sample(2.0 * index, 0.0015, 0.0015))
    assert tie.bound == pytest.approx(0.0015)


def test_stamps_that_cannot_be_are_ignored() -> None:
    tie = ClockTie()
    tie.add(ClockSample(5.0, 1.0, 2.0, 4.0))
    tie.add(ClockSample(5.0, 2.0, 1.0, 6.0))
    assert tie.ours(5.0) is None
