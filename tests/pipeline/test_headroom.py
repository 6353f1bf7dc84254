"""Who may count on the processor."""

from pipeline.headroom import Headroom


def test_one_conversation_in_mid_turn_has_room_and_two_share() -> None:
    headroom = Headroom()
    headroom.note("a", busy=True)
    assert headroom.free
    assert not headroom.wanted_elsewhere("a")
    assert headroom.wanted_elsewhere("b")
    headroom.note("b", busy=True)
    assert not headroom.free
    assert headroom.wanted_elsewhere("a")
    headroom.note("b", busy=False)
    assert headroom.free
