"""What a link does to packets, in virtual time."""

from itertools import groupby, pairwise

import numpy as np
import pytest

from pipeline.clock import VirtualClock
from services.lab.network.link import Link
from services.lab.network.profiles import PROFILES, Loss, Profile

PACKET = 1000
"""Bytes."""


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(start=50.0)


def link(profile: Profile, clock: VirtualClock, seed: int = 1) -> Link:
    return Link(profile, clock, np.random.default_rng(seed))


async def fates(link: Link, clock: VirtualClock, count: int, every: float = 0.0) -> list[float | None]:
    found = []
    for _ in range(count):
        found.append(link.passage(PACKET))
        await clock.advance(every)
    return found


async def test_a_clean_link_passes_everything_at_once(clock: VirtualClock) -> None:
    clean = link(PROFILES["clean"], clock)
    assert await fates(clean, clock, 50) == [50.0] * 50
    assert (clean.carried, clean.lost) == (50, 0)


async def test_the_lossy_one_loses_two_of_a_hundred_one_by_one(clock: VirtualClock) -> None:
    lossy = link(PROFILES["lossy"], clock)
    found = await fates(lossy, clock, 20_000)
    lost = [fate is None for fate in found]
    assert lossy.lost == sum(lost)
    assert sum(lost) == pytest.approx(400, rel=0.2)
    assert mean_burst(lost) < 1.1


async def test_the_bursty_one_loses_as_many_in_a_row(clock: VirtualClock) -> None:
    lost = [fate is None for fate in await fates(link(PROFILES["bursty"], clock), clock, 50_000)]
    assert sum(lost) == pytest.approx(1000, rel=0.3)
    assert mean_burst(lost) == pytest.approx(8, rel=0.3)


def mean_burst(lost: list[bool]) -> float:
    return float(np.mean([len(list(run)) for is_lost, run in groupby(lost) if is_lost]))


async def test_a_seed_loses_the_same_packets_whenever_they_come(clock: VirtualClock) -> None:
    profile = Profile(loss=Loss(good=0.3), jitter=0.01)

    async def lost(seed: int, every: float) -> list[bool]:
        return [fate is None for fate in await fates(link(profile, clock, seed), clock, 200, every)]

    assert await lost(1, 0.0) == await lost(1, 0.02)
    assert await lost(1, 0.0) != await lost(2, 0.0)


async def test_jitter_is_spread_and_keeps_the_order(clock: VirtualClock) -> None:
    jittery = link(PROFILES["jittery"], clock)
    late = []
    newest = 0.0
    for _ in range(2000):
        comes = jittery.passage(PACKET)
        assert comes is not None
        assert comes >= newest
        late.append(comes - clock.now())
        newest = comes
        await clock.advance(0.02)
    assert min(late) >= 0.02
    # The mean of what is drawn, and what waiting for those before adds.
    assert 0.03 < np.mean(late) < 0.04


async def test_a_narrow_link_sends_one_after_the_other_and_drops_what_would_wait_too_long(
    clock: VirtualClock,
) -> None:
    narrow = link(Profile(rate=800_000, queue=0.035, delay=1.0), clock)
    took = [None if fate is None else fate - 50.0 for fate in await fates(narrow, clock, 5)]
    assert took == [pytest.approx(1.01), pytest.approx(1.02), pytest.approx(1.03), pytest.approx(1.04), None]
    await clock.advance(0.04)
    assert narrow.passage(PACKET) == pytest.approx(51.05)


async def test_a_blocked_link_loses_everything_and_then_nothing(clock: VirtualClock) -> None:
    clean = link(Profile(), clock)
    clean.block(0.3)
    found = await fates(clean, clock, 4, every=0.1)
    assert [fate is None for fate in found] == [True, True, True, False]


async def test_what_follows_a_late_packet_waits_behind_it(clock: VirtualClock) -> None:
    clean = link(Profile(), clock)
    clean.delay(0.25, seconds=0.01)
    comes = [fate for fate in await fates(clean, clock, 20, every=0.02) if fate is not None]
    assert comes[:13] == [pytest.approx(50.25)] * 13
    assert comes[13] == pytest.approx(50.26)
    assert all(earlier <= later for earlier, later in pairwise(comes))
