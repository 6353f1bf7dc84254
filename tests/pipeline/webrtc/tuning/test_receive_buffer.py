from hypothesis import given
from hypothesis import strategies as st

from pipeline.webrtc.tuning.receive_buffer import BURST, MAX_HELD, PATIENCE, Arrived, ReceiveBuffer, Released

FRAME = 960
SPACING = 0.02


def packet(index: int, *, at: float | None = None, ssrc: int = 1, first: int = 0) -> Arrived:
    """The packet `index` of a stream that counts from `first`."""
    return Arrived(
        ssrc,
        (first + index) & 0xFFFF,
        (index * FRAME) & 0xFFFFFFFF,
        b"x",
        index * SPACING if at is None else at,
    )


def numbers(released: list[Released]) -> list[int]:
    return [each.packet.sequence_number for each in released]


def fed(buffer: ReceiveBuffer, *indices: int, first: int = 0) -> list[Released]:
    released: list[Released] = []
    for index in indices:
        released += buffer.add(packet(index, first=first))
    return released


def test_a_packet_in_order_goes_on_at_once() -> None:
    buffer = ReceiveBuffer()
    for index in range(200):
        assert numbers(buffer.add(packet(index))) == [index]
        assert buffer.deadline is None


def test_the_counter_wraps_around() -> None:
    buffer = ReceiveBuffer()
    released = fed(buffer, *range(10), first=65_530)
    assert numbers(released) == [65_530, 65_531, 65_532, 65_533, 65_534, 65_535, 0, 1, 2, 3]
    assert not any(each.lost for each in released)


def test_a_loss_at_the_wrap_is_one_packet() -> None:
    released = fed(ReceiveBuffer(), 0, 2, 3, first=65_535)
    assert [each.lost for each in released] == [0, 1, 0]


def test_overtaken_packets_are_put_in_order() -> None:
    buffer = ReceiveBuffer()
    assert numbers(fed(buffer, 0, 2)) == [0]
    assert numbers(fed(buffer, 1)) == [1, 2]
    assert (buffer.lost, buffer.late) == (0, 0)


def test_two_later_packets_are_enough_to_give_one_up() -> None:
    buffer = ReceiveBuffer()
    assert numbers(fed(buffer, 0, 2)) == [0]
    released = fed(buffer, 3)
    assert numbers(released) == [2, 3]
    assert [each.lost for each in released] == [1, 0]
    assert numbers(fed(buffer, 4)) == [4], "the delay is gone again"


def test_one_later_packet_waits_for_so_long_and_no_longer() -> None:
    buffer = ReceiveBuffer()
    fed(buffer, 0)
    buffer.add(packet(2, at=5.0))
    assert buffer.deadline == 5.0 + PATIENCE
    assert buffer.expire(5.0 + PATIENCE / 2) == []
    released = buffer.expire(5.0 + PATIENCE)
    assert numbers(released) == [2]
    assert released[0].lost == 1
    assert buffer.deadline is None


def test_packets_that_come_in_one_burst_are_no_evidence_of_a_loss() -> None:
    buffer = ReceiveBuffer()
    fed(buffer, 0)
    for index in (4, 5, 1, 6, 2):
        buffer.add(packet(index, at=1.0))
    assert buffer.deadline == 1.0 + BURST
    assert numbers(buffer.add(packet(3, at=1.001))) == [3, 4, 5, 6]
    assert buffer.lost == 0


def test_a_burst_with_a_hole_waits_for_so_long_and_holds_so_much() -> None:
    buffer = ReceiveBuffer()
    fed(buffer, 0)
    for index in range(2, MAX_HELD + 1):
        assert buffer.add(packet(index, at=1.0)) == []
    assert len(buffer.add(packet(MAX_HELD + 1, at=1.0))) == MAX_HELD
    for index in (30, 31):
        assert buffer.add(packet(index, at=2.0)) == []
    assert numbers(buffer.expire(2.0 + BURST)) == [30, 31]


def test_a_long_outage_is_over_with_the_second_packet_after_it() -> None:
    buffer = ReceiveBuffer()
    released = fed(buffer, 0, 150, 151, 152)
    assert numbers(released) == [0, 150, 151, 152]
    assert [each.lost for each in released] == [0, 149, 0, 0]


def test_what_comes_twice_or_too_late_is_dropped() -> None:
    buffer = ReceiveBuffer()
    fed(buffer, 0, 1, 3, 4)
    assert fed(buffer, 2, 4, 1) == []
    assert numbers(fed(buffer, 6, 6)) == []
    assert buffer.late == 4
    assert numbers(fed(buffer, 5)) == [5, 6]


def test_a_new_source_is_believed_at_its_second_packet() -> None:
    buffer = ReceiveBuffer()
    fed(buffer, 0, 1)
    assert buffer.add(packet(0, ssrc=2, first=40_000)) == []
    released = buffer.add(packet(1, ssrc=2, first=40_000))
    assert numbers(released) == [40_000, 40_001]
    assert [each.restarted for each in released] == [True, False]


def test_a_counter_that_starts_anew_is_followed_and_what_waited_goes_first() -> None:
    buffer = ReceiveBuffer()
    fed(buffer, 0, 2)
    assert buffer.add(packet(0, first=30_000)) == []
    released = buffer.add(packet(1, first=30_000))
    assert numbers(released) == [2, 30_000, 30_001]
    assert [each.lost for each in released] == [1, 0, 0]


def test_a_straggler_from_long_ago_changes_nothing() -> None:
    buffer = ReceiveBuffer()
    fed(buffer, *range(300))
    assert fed(buffer, 5) == []
    assert numbers(fed(buffer, 300, 301)) == [300, 301]


def test_of_two_sources_that_talk_at_once_one_is_heard() -> None:
    buffer = ReceiveBuffer()
    heard: list[Released] = []
    for index in range(50):
        heard += buffer.add(packet(index))
        heard += buffer.add(packet(index, ssrc=2, first=9000))
    assert {each.packet.ssrc for each in heard} == {1}
    assert len(heard) == 50


@given(st.lists(st.integers(0, 2), min_size=1, max_size=120), st.integers(0, 0xFFFF))
def test_whatever_is_lost_twice_or_late_goes_on_in_order_and_is_accounted_for(
    copies: list[int], first: int
) -> None:
    """Packets come 0, 1 or 2 times, in order."""
    buffer = ReceiveBuffer()
    released = fed(buffer, 0, first=first)
    for index, count in enumerate(copies, 1):
        released += fed(buffer, *[index] * count, first=first)
    released += buffer.expire(float("inf"))
    came = [0, *(index for index, count in enumerate(copies, 1) if count)]
    assert [(number - first) & 0xFFFF for number in numbers(released)] == came
    assert sum(each.lost for each in released) == buffer.lost == came[-1] + 1 - len(came)
    assert buffer.late == sum(count == 2 for count in copies)


@given(
    st.permutations(range(1, 40)),
    st.integers(0, 0xFFFF),
    st.lists(st.sampled_from([0.0, 0.003, 0.02, 0.05]), min_size=39, max_size=39),
)
def test_in_any_order_and_rhythm_nothing_goes_on_twice_or_backwards(
    order: list[int], first: int, gaps: list[float]
) -> None:
    buffer = ReceiveBuffer()
    released = fed(buffer, 0, first=first)
    now = 1.0
    for index, gap in zip(order, gaps, strict=True):
        now += gap
        released += buffer.add(packet(index, at=now, first=first))
        assert len(buffer._held) < MAX_HELD
        released += buffer.expire(now)
        assert buffer.deadline is None or now < buffer.deadline <= now + PATIENCE
    released += buffer.expire(float("inf"))
    found = [(number - first) & 0xFFFF for number in numbers(released)]
    assert found == sorted(set(found))
    assert len(found) + buffer.late == 40
    assert len(found) + buffer.lost == max(found) + 1


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_neighbours_may_change_places_without_loss(swaps: list[bool]) -> None:
    order: list[int] = []
    for pair, swap in enumerate(swaps):
        order += [2 * pair + 2, 2 * pair + 1] if swap else [2 * pair + 1, 2 * pair + 2]
    buffer = ReceiveBuffer()
    assert numbers(fed(buffer, 0, *order)) == list(range(2 * len(swaps) + 1))
    assert buffer.lost == 0


@given(st.sets(st.integers(1, 300)))
def test_three_packets_after_any_loss_the_delay_is_gone(lost: set[int]) -> None:
    buffer = ReceiveBuffer()
    for index in range(304):
        if index in lost:
            continue
        out = numbers(buffer.add(packet(index)))
        if lost.isdisjoint(range(index - 2, index)):
            assert out[-1:] == [index]
