"""Which way a turn goes, and why."""

from dataclasses import replace

import pytest

from pipeline.clock import VirtualClock
from pipeline.llm.contract import TurnClass
from pipeline.llm.pool.routing import FAILURES, REST, Part, Routing, Way
from services.config import contracts

TURN = TurnClass(avatar="vis", tenant="acme", language="en", unread=300, output=80)

CONTRACT = contracts.load()


def routing(*, alone: bool = True) -> tuple[Routing, VirtualClock]:
    clock = VirtualClock()
    return Routing(CONTRACT, clock, alone=alone), clock


def test_a_turn_of_the_contract_is_split() -> None:
    ways, _ = routing()
    assert ways.choose(TURN).way is Way.SPLIT


def test_another_turn_stays_where_its_prefix_is() -> None:
    ways, _ = routing()
    choice = ways.choose(replace(TURN, language="de"))
    assert choice.way is Way.PREFILL_ALONE
    assert "language de" in choice.why
    assert not choice.fallback


@pytest.mark.parametrize(
    ("part", "way"),
    [
        (Part.PREFILL, Way.DECODE_ALONE),
        (Part.DECODE, Way.PREFILL_ALONE),
        (Part.TRANSFER, Way.PREFILL_ALONE),
    ],
)
async def test_a_part_that_keeps_failing_is_left_alone_and_tried_again(part: Part, way: Way) -> None:
    ways, clock = routing()
    for _ in range(FAILURES):
        assert ways.choose(TURN).way is Way.SPLIT
        ways.health[part].failed()
    choice = ways.choose(TURN)
    assert (choice.way, choice.why, choice.fallback) == (way, f"{part} has failed lately", True)
    await clock.advance(REST)
    assert ways.choose(TURN).way is Way.SPLIT
    ways.health[part].failed()
    assert ways.choose(TURN).way is way, "one failure more is enough"
    await clock.advance(REST)
    ways.health[part].succeeded()
    ways.health[part].failed()
    assert ways.choose(TURN).way is Way.SPLIT


def test_where_no_worker_may_do_both_there_is_no_other_way() -> None:
    ways, _ = routing(alone=False)
    assert ways.choose(TURN).way is Way.SPLIT
    for _ in range(FAILURES):
        ways.health[Part.TRANSFER].failed()
    choice = ways.choose(TURN)
    assert choice.way is Way.NOWHERE
    assert choice.why == "transfer has failed lately, and the contract allows no other way"
