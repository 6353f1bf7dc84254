"""Callers whose turns come at random, and how turns are dealt out to them."""

import numpy as np
import pytest

from services.lab.bench.sessions import DUTY, silence


@pytest.mark.parametrize("turn", [4.0, 9.0])
def test_turns_fill_their_share_of_the_time(turn: float) -> None:
    rng = np.random.default_rng(4)
    between = [silence([turn] * 5, rng) for _ in range(3000)]
    assert turn / (turn + float(np.mean(between))) == pytest.approx(DUTY, abs=0.02)


def test_silences_are_exponential() -> None:
    rng = np.random.default_rng(4)
    between = np.array([silence([6.0], rng) for _ in range(3000)])
    assert float(between.std()) == pytest.approx(float(between.mean()), rel=0.1)
    assert float(np.median(between)) == pytest.approx(float(between.mean()) * np.log(2), rel=0.1)
