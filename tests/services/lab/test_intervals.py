import numpy as np
import pytest

from services.lab.intervals import difference, ratio, slope, spread, wilson


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_as_published(hits: int, trials: int, low: float, high: float) -> None:
    found = wilson(hits, trials)
    assert found.value == hits / trials
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize(("hits", "trials"), [(0, 0), (3, 2), (-1, 4)])
def test_no_share_has_no_interval(hits: int, trials: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(hits, trials)


def test_a_spread_of_nothing_is_not_zero() -> None:
    assert spread([]) == {"n": 0}
    assert spread([3.0, 1.0, 2.0])["median"] == 2.0


def test_ratios_and_differences_cover_the_truth_most_of_the_time() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(60):
        a, b = rng.normal(600, 90, 40), rng.normal(1000, 150, 40)
        found = ratio(list(a), list(b))
        assert found.low <= found.value <= found.high
        hits += found.low <= 0.6 <= found.high
    assert hits >= 51, "of 60 intervals of 95 %"
    apart = difference([600.0] * 10, [500.0] * 10)
    assert (apart.value, apart.low, apart.high) == (100, 100, 100)


def test_a_percentile_other_than_the_median_is_compared() -> None:
    assert ratio([1.0] * 9 + [10.0], [1.0] * 10, 95).value > 1.5


def test_comparing_with_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        ratio([], [1.0])


def test_a_slope_is_found_in_spite_of_outliers() -> None:
    rng = np.random.default_rng(2)
    turns = np.arange(120)
    growing = 500 + 0.5 * turns + rng.normal(0, 5, 120)
    growing[::15] += 900
    found = slope(list(turns), list(growing))
    assert found.value == pytest.approx(0.5, abs=0.05)
    assert found.low > 0.4


def test_noise_has_no_slope() -> None:
    rng = np.random.default_rng(3)
    found = slope(list(range(100)), list(rng.normal(500, 40, 100)))
    assert found.low < 0 < found.high


def test_two_points_are_no_slope() -> None:
    with pytest.raises(ValueError, match="2 points"):
        slope([1, 2], [1, 2])
