"""Whatever comes between them, turns are answered rightly, and nothing is left over."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
import pytest_asyncio

from pipeline.errors import LanguageModelError
from services.engine.messages import Role as WorkerRole
from services.engine.supervisor import EngineState
from tests.services.engine.pair import SLOTS, Governed, Pair, answer, kill, open_pair, prompt

pytestmark = [
    *(pytest.mark.engine, pytest.mark.models, pytest.mark.proof),
    pytest.mark.asyncio(loop_scope="module"),
]

STEPS = 200

QUESTIONS = [
    prompt(f"{'The sea is wide and blue. ' * length}What is {number} and one?", 12)
    for number, length in enumerate((0, 0, 3, 10, 25, 60))
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair() -> AsyncIterator[Pair]:
    async with open_pair() as opened:
        yield opened


@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_is_left_over(pair: Pair, seed: int) -> None:
    right = [(await answer(pair.client(split=False), each))[0] for each in QUESTIONS]
    random, governed = Random(seed), Governed()
    turns: list[asyncio.Task[None]] = []
    done = {"right": 0, "cancelled": 0, "kills": 0}

    async def turn(slot: int, number: int, patience: float | None) -> None:
        try:
            async with asyncio.timeout(patience):
                text, _ = await answer(
                    pair.client(split=True, slot=slot, governed=governed), QUESTIONS[number]
                )
        except TimeoutError:
            done["cancelled"] += 1
        else:
            assert text == right[number]
            done["right"] += 1

    for _ in range(STEPS // SLOTS):
        turns = [
            asyncio.create_task(
                turn(slot, random.randrange(len(QUESTIONS)), random.choice((None, random.uniform(0, 0.5))))
            )
            for slot in range(SLOTS)
        ]
        kills = random.random() < 0.06
        if kills:
            await _killed(pair, random)
            done["kills"] += 1
        # A reply that was under way in a worker that died is a failed turn: the contract has it so.
        for ended in await asyncio.gather(*turns, return_exceptions=True):
            assert ended is None or (kills and isinstance(ended, LanguageModelError)), ended
    assert done["right"] > STEPS / 4
    assert done["cancelled"] > STEPS / 10
    assert done["kills"]
    assert governed.ledger.held == 0
    assert (await pair.places())[0] == 0
    assert len(governed.lines) >= done["right"]
    for each in (pair.prefill, pair.decode):
        engine = each.endpoint()
        slots = (await pair.http.get(engine.at("/slots"), headers=engine.headers)).json()
        assert not any(slot["is_processing"] for slot in slots)
        assert each.pid is not None
        assert state_files(each.pid) == [], "no state is held in memory, and none has a name"


def state_files(process: int) -> list[str]:
    """What `slot_files.slot_file` opened and did not close."""
    open_ones = [os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir() if each.is_symlink()]
    return [name for name in open_ones if name.startswith("/memfd:slot")]


async def _killed(pair: Pair, random: Random) -> None:
    role = random.choice((WorkerRole.PREFILL, WorkerRole.DECODE))
    kill(pair.worker(role))
    while await pair.states[role].get() is not EngineState.READY:
        pass
