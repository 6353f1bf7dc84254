import pytest

from services.lab.plots.scale import Scale, rounded, step, ticks


@pytest.mark.parametrize(
    ("span", "most", "expected"),
    [(10, 5, 2), (1000, 6, 200), (0.3, 6, 0.05), (7, 7, 1), (60, 8, 10), (0, 5, 1), (1e-9, 5, 2e-10)],
)
def test_steps_are_round(span: float, most: int, expected: float) -> None:
    assert step(span, most) == pytest.approx(expected)


def test_ticks_lie_inside() -> None:
    assert ticks(0, 1000) == [0, 200, 400, 600, 800, 1000]
    assert ticks(13, 48, 4) == [20, 30, 40]
    assert ticks(-60, 90, 6) == [-50, -25, 0, 25, 50, 75]


def test_a_rounded_range_holds_both_ends_and_is_never_empty() -> None:
    assert rounded(13, 48, 4) == (10, 50)
    low, high = rounded(5, 5)
    assert low <= 5 < high
    assert rounded(0, 0) == (0, 1)


def test_a_scale_may_run_downwards() -> None:
    scale = Scale(0, 10, 200, 100)
    assert (scale.at(0), scale.at(5), scale.at(10)) == (200, 150, 100)
