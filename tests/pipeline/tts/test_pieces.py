import pytest

from pipeline.tts.pieces import GROWTH, SHORTEST, SHORTEST_SHARED, cuts


def test_pieces_grow_and_none_is_very_short() -> None:
    ends = [(symbol, symbol / 10) for symbol in range(1, 60)]
    chosen = cuts(ends, 0.0, 6.0)
    assert chosen == [3, 12]
    assert chosen[0] / 10 >= SHORTEST
    assert (chosen[1] - chosen[0]) / 10 >= GROWTH * chosen[0] / 10


@pytest.mark.parametrize("stop", [0.4, 0.54])
def test_a_short_clause_is_not_cut(stop: float) -> None:
    assert cuts([(1, 0.2), (2, 0.3)], 0.0, stop) == []


def test_the_quiet_before_the_first_sound_does_not_count() -> None:
    assert cuts([(1, 0.3), (2, 0.4), (3, 0.6)], 0.2, 2.0) == [3]


def test_one_long_word_is_one_piece() -> None:
    assert cuts([(9, 1.0)], 0.0, 1.0) == []


def test_the_first_piece_is_longer_where_the_next_will_be_late() -> None:
    ends = [(1, 0.3), (2, 0.7), (3, 3.0)]
    assert cuts(ends, 0.0, 6.0) == [1, 3]
    assert cuts(ends, 0.0, 6.0, SHORTEST_SHARED) == [2, 3]
