"""Two real workers as one engine: what one has read, the other answers."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from pipeline.errors import AdmissionRefusedError, LanguageModelError
from pipeline.llm.contract import Band
from pipeline.llm.contract_check import mismatches
from pipeline.llm.dialects.llama_cpp_split import Worker
from pipeline.llm.pool.governed import GovernedSplit
from pipeline.llm.pool.routing import FAILURES, Part
from pipeline.llm.route import Pattern
from services.config import contracts
from services.engine.messages import Role as WorkerRole
from services.engine.model_file import shipped_model
from services.engine.supervisor import EngineSettings, EngineState, EngineSupervisor
from tests.services.engine.pair import (
    CALLER,
    CONTEXT,
    CONTRACT,
    SLOTS,
    Governed,
    Pair,
    answer,
    kill,
    open_pair,
    prompt,
)

pytestmark = [pytest.mark.engine, pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair() -> AsyncIterator[Pair]:
    async with open_pair() as opened:
        yield opened


@pytest.mark.parametrize("words", [5, 60, 400])
async def test_the_text_is_the_same_and_the_state_was_used(pair: Pair, words: int) -> None:
    asked = prompt("Tell me about the sea. " + "The sea is wide and blue. " * (words // 6))
    alone, _ = await answer(pair.client(split=False), asked)
    text, usage = await answer(pair.client(split=True), asked)
    assert text == alone
    assert usage.handed_tokens is not None
    assert usage.cached_tokens is not None
    assert usage.prompt_tokens is not None
    assert usage.cached_tokens >= usage.prompt_tokens - 1, "but for the last token nothing was read again"
    assert usage.kv_bytes is not None
    assert usage.kv_bytes > usage.handed_tokens * 23_000, "30 layers, 3 heads of 64, keys and values, 2 bytes"
    assert await pair.places() == (0, 0)


async def test_a_cancel_at_any_time_gives_the_place_back(pair: Pair) -> None:
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8):
        task = asyncio.create_task(answer(pair.client(split=True), prompt("Tell me a long story.", 60)))
        await asyncio.sleep(delay)  # the moment of the cancel is what is tried
        task.cancel()
        await asyncio.wait([task])
        assert (await pair.places())[0] == 0
    text, _ = await answer(pair.client(split=True), prompt("What is two and two?"))
    assert text


async def test_when_all_places_are_taken_the_next_is_refused(pair: Pair) -> None:
    gate = pair.decode.gate()
    for number in range(2):
        body = {"request": f"r{number}", "tenant": "acme"}
        assert (await pair.http.post(gate.at("/places"), json=body, headers=gate.headers)).status_code == 201
    with pytest.raises(AdmissionRefusedError, match="all 2 slots are taken"):
        await answer(pair.client(split=True), prompt("Hello?"))
    for number in range(2):
        await pair.http.delete(gate.at(f"/places/r{number}"), headers=gate.headers)


async def test_state_goes_nowhere_but_to_its_place(pair: Pair) -> None:
    gate = pair.decode.gate()
    place = await pair.http.post(
        gate.at("/places"), json={"request": "mine", "tenant": "acme"}, headers=gate.headers
    )
    ticket = place.json()["ticket"]
    release = {
        "X-Release": "0" * 64,
        "X-Tenant": "acme",
        "X-Digest": "0",
        "Authorization": f"Ticket {ticket}",
    }
    for name, headers in (
        ("mine", release),
        ("other", release),
        ("mine", {**release, "X-Tenant": "other"}),
        ("mine", {**release, "Authorization": "Ticket nonsense"}),
        ("mine", {**release, "Authorization": f"Bearer {ticket}"}),
    ):
        answered = await pair.http.put(gate.at(f"/state/{name}"), content=b"state", headers=headers)
        assert answered.status_code in (401, 403), answered.text
    other = pair.prefill.gate()
    body = {"request": "mine", "tenant": "evil", "slot": 0, "ticket": ticket, "to": gate.url}
    answered = await pair.http.post(other.at("/handoffs"), json=body, headers=other.headers)
    assert answered.status_code == 403
    await pair.http.delete(gate.at("/places/mine"), headers=gate.headers)


@pytest.mark.parametrize("phase", [WorkerRole.PREFILL, WorkerRole.DECODE])
@pytest.mark.parametrize("noticed", [False, True])
async def test_when_one_worker_dies_the_other_answers_alone(
    pair: Pair, phase: WorkerRole, noticed: bool
) -> None:
    dying, states = pair.worker(phase), pair.states[phase]
    asked = prompt("What is two and two?")
    whole, _ = await answer(pair.client(split=True), asked)
    kill(dying)
    if noticed:
        while await states.get() is not EngineState.RESTARTING:
            pass
    text, usage = await answer(pair.client(split=True), asked)
    assert (text, usage.fallback_from, usage.kv_bytes) == (whole, "split", None)
    while await states.get() is not EngineState.READY:
        pass
    assert (await pair.places())[0] == 0
    text, usage = await answer(pair.client(split=True), asked)
    assert (text, usage.fallback_from) == (whole, None)


async def test_where_the_contract_refuses_it_nobody_answers_alone(pair: Pair) -> None:
    def down() -> Worker:
        raise LanguageModelError("it does not serve")

    for name in ("_prefill", "_decode"):
        governed, engine = Governed(alone=False), pair.engine(0)
        setattr(engine, name, down)
        split = GovernedSplit(engine, governed.pool, pair.clock, caller=CALLER, terms=governed.terms)
        with pytest.raises(LanguageModelError, match="it does not serve"):
            async with split.handed_over(prompt("Hello?")):
                pass
        assert governed.lines[0].outcome != "finished"
    assert (await pair.places())[0] == 0


async def test_a_reply_that_fails_before_its_first_token_is_made_by_the_other_worker(pair: Pair) -> None:
    governed, asked = Governed(), replace(prompt("What is two and two?"), digest="d")
    whole, _ = await answer(pair.client(split=False), asked)
    split = governed.split(pair, 0)
    async with split.handed_over(asked) as landing:
        other = split.instead(landing, LanguageModelError("the connection broke"))
        assert (other.route.endpoint, other.fallback_from) == (pair.prefill.endpoint(), Pattern.SPLIT)
        third = split.instead(other, LanguageModelError("it too"))
        assert third.route.endpoint == pair.decode.endpoint()
        with pytest.raises(LanguageModelError, match="again"):
            split.instead(third, LanguageModelError("again"))
    text, usage = await answer(pair.client(split=True, governed=governed), asked)
    assert text == whole
    assert usage.fallback_from is None
    assert [line.prompt_digest for line in governed.lines] == ["d", "d"]
    assert (governed.lines[0].way, governed.lines[0].fallback) == ("decode_alone", "it too")


async def test_what_shows_how_a_turn_went(pair: Pair) -> None:
    governed = Governed()
    client = pair.client(split=True, governed=governed)
    asked = replace(prompt("What is two and two?"), digest="d1")
    _, usage = await answer(client, asked)
    (line,) = governed.lines
    assert (line.way, line.reached, line.outcome) == ("split", "answer", "finished")
    assert (line.tenant, line.contract, line.prompt_digest) == ("acme", CONTRACT.name, "d1")
    assert line.release == (await pair.decode.identity()).release.fingerprint
    assert line.kv_bytes == usage.kv_bytes
    assert line.kv_digest is not None
    assert len(line.kv_digest) == 64
    assert line.admission == "admit: there is room"
    assert None not in (line.queue_ms, line.read_ms, line.save_ms, line.send_ms, line.restore_ms)
    assert "two" not in str(line), "nothing that was said"
    task = asyncio.create_task(answer(client, replace(prompt("Tell me a long story.", 200), digest="d2")))
    while not await pair.reads():
        pass
    task.cancel()
    await asyncio.wait([task])
    assert governed.lines[1].outcome == "cancelled"
    assert governed.ledger.held == 0


async def test_who_finds_no_room_waits_for_it(pair: Pair) -> None:
    governed = Governed()
    clients = [pair.client(split=True, slot=slot, governed=governed) for slot in (0, 1, 0)]
    answers = await asyncio.gather(*(answer(each, prompt("What is one?")) for each in clients))
    assert all(text for text, _ in answers)
    admissions = [line.admission for line in governed.lines]
    assert admissions.count("admit: there is room") == SLOTS
    assert "queue: no room; 0 go first" in admissions
    assert max(usage.queue_seconds or 0.0 for _, usage in answers) > 0.01
    assert (governed.ledger.held, (await pair.places())[0]) == (0, 0)


async def test_a_short_prompt_stays_where_it_is_read(pair: Pair) -> None:
    workload = replace(CONTRACT.workload, prompt=Band(200, 1900))
    governed = Governed(replace(CONTRACT, workload=workload))
    client = pair.client(split=True, governed=governed)
    _, usage = await answer(client, prompt("What is two and two?"))
    assert (usage.pattern, usage.fallback_from, usage.kv_bytes) == ("colocated", None, None)
    assert governed.lines[0].way == "prefill_alone"
    assert governed.lines[0].why.endswith("tokens to read are not within 200 to 1900")


async def test_a_hand_off_that_keeps_failing_is_not_tried_for_a_while(pair: Pair) -> None:
    governed = Governed()
    for _ in range(FAILURES):
        governed.pool.routing.health[Part.TRANSFER].failed()
    text, usage = await answer(pair.client(split=True, governed=governed), prompt("What is one?"))
    assert text
    assert (usage.pattern, usage.fallback_from) == ("colocated", "split")
    assert governed.lines[0].why == "transfer has failed lately"


SENTENCES = (
    "The harbour is quiet in the morning. ",
    "A baker carries bread to the ships. ",
    "Nobody asked where the captain had gone. ",
    "Seven gulls sat on the old crane. ",
    "Rain came in from the west at noon. ",
)


@pytest.mark.proof
async def test_fifty_prompts_are_answered_as_one_worker_answers_them(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 20 to 1,500 tokens, greedy. Prints bytes and ms by length beside 2 · layers · heads · size · 2.

    The one worker has read the prompt before, too: evaluated by itself a prompt's last token differs from the
    same token in a batch, by 0.1 in the lead of the likeliest next one, also in one worker alone.
    """
    bytes_a_token = 2 * 30 * 3 * 64 * 2
    other = []
    for number in range(50):
        tokens = round(20 * (1500 / 20) ** (number / 49))
        text_read = "".join(SENTENCES[(number + i) % len(SENTENCES)] for i in range(tokens // 9))
        asked = prompt(f"{text_read}What is number {number} in this?", 16)
        await pair.client(split=False, slot=1).warm(asked)
        alone, _ = await answer(pair.client(split=False, slot=1), asked)
        text, usage = await answer(pair.client(split=True), asked)
        assert usage.handed_tokens is not None
        assert usage.kv_bytes is not None
        assert usage.kv_seconds is not None
        if text != alone:
            other.append((number, alone, text))
        if number % 7 == 0:
            formula = usage.handed_tokens * bytes_a_token
            told = (
                f"{usage.handed_tokens:5} tokens: {usage.kv_bytes:9} bytes, formula {formula:9} "
                f"({usage.kv_bytes / formula:.3f}), {usage.kv_seconds * 1000:.0f} ms\n"
            )
            with capsys.disabled():
                sys.stdout.write(told)
        assert usage.kv_bytes == pytest.approx(usage.handed_tokens * bytes_a_token, rel=0.05, abs=20_000)
    assert len(other) <= 1, other


async def test_a_prefill_worker_that_dies_while_it_reads(pair: Pair) -> None:
    long = prompt("Tell me about the sea. " + "The sea is wide and blue. " * 110)
    task = asyncio.create_task(answer(pair.client(split=True), long))
    while not await pair.reads():
        pass
    kill(pair.prefill)
    text, usage = await task
    assert text
    assert usage.fallback_from == "split"
    assert (await pair.places())[0] == 0
    states = pair.states[WorkerRole.PREFILL]
    while await states.get() is not EngineState.READY:
        pass


async def test_both_workers_are_of_one_release(pair: Pair) -> None:
    workers = [await each.identity() for each in (pair.prefill, pair.decode)]
    assert mismatches(contracts.load(), workers) == []
    assert workers[0].release.fingerprint == workers[1].release.fingerprint


async def test_other_weights_of_the_same_shape_are_refused_before_any_state_moves(
    pair: Pair, tmp_path: Path
) -> None:
    other = tmp_path / shipped_model().name
    data = bytearray(shipped_model().read_bytes())
    data[-1000] ^= 1
    other.write_bytes(data)
    settings = EngineSettings(other, slots=SLOTS, context=CONTEXT, role=WorkerRole.DECODE, name="decode-2")
    async with EngineSupervisor(settings, pair.clock) as decode:
        found = mismatches(contracts.load(), [await pair.prefill.identity(), await decode.identity()])
        assert [each.field for each in found] == ["model.weights"]
        assert "prefill-1 has" in found[0].what
        assert "decode-2 has" in found[0].what
        text, usage = await answer(replace(pair, decode=decode).client(split=True), prompt("What is one?"))
        assert (usage.fallback_from, usage.kv_bytes) == ("split", None), "its own reading, no foreign state"
        assert text
