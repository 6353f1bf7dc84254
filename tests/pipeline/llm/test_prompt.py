import itertools
from collections.abc import Sequence
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigError
from pipeline.events import Evidence, Message, Prompt, Role
from pipeline.llm.budget import MESSAGE_OVERHEAD, TokenBudget
from pipeline.llm.instructions import Instructions
from pipeline.llm.prompt import PromptBuilder
from pipeline.llm.tokens import EstimatedTokenCounter

INSTRUCTIONS = Instructions("Be kind.", (("Hi", "Hello."),))
NAMES = ["instructions", "tools", "evidence", "history", "turn"]


class WordCounter:
    """A token is a word or a run of ten characters of one."""

    async def count(self, text: str) -> int:
        return sum(-(-len(word) // 10) for word in text.split())


def builder(context: int = 600, instructions: Instructions = INSTRUCTIONS, **budget: int) -> PromptBuilder:
    return PromptBuilder(WordCounter(), TokenBudget(context, **{"max_output": 40, **budget}), instructions)


def exchange(number: int, words: int = 5) -> list[Message]:
    return [
        Message(Role.USER, f"question {number} " + "word " * words),
        Message(Role.ASSISTANT, f"answer {number} " + "word " * words),
    ]


def conversation(exchanges: int, words: int = 5) -> list[Message]:
    return [message for number in range(exchanges) for message in exchange(number, words)]


def section(prompt: Prompt, name: str) -> tuple[str, int]:
    found = next(section for section in prompt.sections if section.name == name)
    return found.digest, found.tokens


# ── shape and digests ──────────────────────────────────────────────────────────────────────────


async def test_messages_and_sections_stand_in_order() -> None:
    prompt = await builder(evidence=100).build("why?", exchange(1), [Evidence("a.md", "Because.", 1.0)])
    assert [section.name for section in prompt.sections] == NAMES
    assert list(prompt.messages) == [
        Message(Role.SYSTEM, "Be kind."),
        Message(Role.USER, "Hi"),
        Message(Role.ASSISTANT, "Hello."),
        *exchange(1),
        Message(Role.USER, "Notes that may help:\n- Because.\n\nwhy?"),
    ]
    assert prompt.max_output_tokens == 40


async def test_tools_stand_in_the_system_message_and_in_a_section_of_their_own() -> None:
    tool = {"name": "weather", "parameters": {"city": "string"}}
    plain = await builder().build("hi")
    armed = await PromptBuilder(WordCounter(), TokenBudget(600, 40), INSTRUCTIONS, [tool]).build("hi")
    assert '"weather"' in armed.messages[0].text
    assert section(armed, "instructions") == section(plain, "instructions")
    assert section(armed, "tools")[0] != section(plain, "tools")[0]


async def test_a_digest_changes_with_its_own_section_only() -> None:
    base = await builder(evidence=100).build("a", exchange(1), [Evidence("s", "x", 1.0)])
    others = {
        "evidence": await builder(evidence=100).build("a", exchange(1), [Evidence("s", "y", 1.0)]),
        "history": await builder(evidence=100).build("a", exchange(2), [Evidence("s", "x", 1.0)]),
        "turn": await builder(evidence=100).build("b", exchange(1), [Evidence("s", "x", 1.0)]),
        "instructions": await builder(evidence=100, instructions=Instructions("Be curt.")).build(
            "a", exchange(1), [Evidence("s", "x", 1.0)]
        ),
    }
    for changed, other in others.items():
        assert base.digest != other.digest
        for name in NAMES:
            assert (section(base, name)[0] != section(other, name)[0]) is (name == changed), (changed, name)


async def test_digests_are_made_as_documented() -> None:
    """Records of different machines are compared by them, so how they are made is an interface."""
    prompt = await builder().build("why?", [Message(Role.USER, "a"), Message(Role.ASSISTANT, "b")])
    content = {
        "instructions": '[["system", "Be kind."], ["user", "Hi"], ["assistant", "Hello."]]',
        "tools": "",
        "evidence": "",
        "history": '[["user", "a"], ["assistant", "b"]]',
        "turn": "why?",
    }
    digests = {name: sha256(text.encode()).hexdigest() for name, text in content.items()}
    assert {section.name: section.digest for section in prompt.sections} == digests
    named = "\n".join(f"{name} {digests[name]}" for name in NAMES)
    assert prompt.digest == sha256(named.encode()).hexdigest()


async def test_who_said_it_is_part_of_historys_digest() -> None:
    mine = await builder().build("a", [Message(Role.USER, "x")])
    yours = await builder().build("a", [Message(Role.ASSISTANT, "x")])
    assert section(mine, "history")[0] != section(yours, "history")[0]


# ── the budget ─────────────────────────────────────────────────────────────────────────────────

texts = st.text(max_size=400) | st.lists(st.sampled_from(["a", "word", "x" * 50]), max_size=400).map(" ".join)
messages = st.lists(st.builds(Message, st.sampled_from([Role.USER, Role.ASSISTANT]), texts), max_size=20)
passages = st.lists(st.builds(Evidence, st.just("s"), texts, st.floats(0, 10)), max_size=8)


@settings(max_examples=150, deadline=None)
@given(texts, messages, passages, st.integers(250, 700), st.integers(1, 60), st.integers(0, 700))
async def test_never_over_budget_instructions_whole_turn_present(
    turn: str, history: list[Message], evidence: list[Evidence], context: int, share: int, most: int
) -> None:
    counter = EstimatedTokenCounter()
    budget = TokenBudget(context, max_output=40, evidence=share, history=most)
    prompt = await PromptBuilder(counter, budget, INSTRUCTIONS).build(turn, history, evidence)
    needed = sum([await counter.count(message.text) + MESSAGE_OVERHEAD for message in prompt.messages])
    assert needed <= prompt.tokens <= budget.prompt
    assert section(prompt, "history")[1] <= most
    assert section(prompt, "evidence")[1] <= share
    assert list(prompt.messages[:3]) == [
        Message(Role.SYSTEM, "Be kind."),
        Message(Role.USER, "Hi"),
        Message(Role.ASSISTANT, "Hello."),
    ]
    assert prompt.messages[-1].role is Role.USER
    said = prompt.messages[-1].text
    assert said.endswith(turn[-3:].replace("<|", "< |")) or not turn


async def test_instructions_that_do_not_fit_stop_the_start() -> None:
    with pytest.raises(ConfigError, match=r"agent\.instructions: 408 tokens.*context 400.*reply 40"):
        await builder(400, Instructions("word " * 400)).opening()


async def test_evidence_that_leaves_no_room_stops_the_start() -> None:
    with pytest.raises(ConfigError, match=r"llm\.evidence\.max_tokens: 500, expected at most"):
        await builder(evidence=500).opening()


async def test_a_long_turn_keeps_its_end_and_says_so() -> None:
    turn = " ".join(f"w{number}" for number in range(5000))
    said = (await builder().build(turn)).messages[-1].text
    assert said.startswith("… w")
    assert said.endswith(" w4999")
    assert said.removeprefix("… ") in turn
    assert len(said.split()) > 200  # half of what is free, not less


async def test_a_long_turn_without_spaces_is_cut_too() -> None:
    prompt = await builder().build("语" * 20_000)
    assert prompt.messages[-1].text.startswith("… 语")
    assert prompt.tokens <= 600


async def test_evidence_drops_the_lowest_score_first() -> None:
    found = [Evidence("s", f"passage {score} " + "word " * 30, score) for score in (0.5, 3.0, 1.0, 2.0)]
    text = (await builder(evidence=80).build("q", (), found)).messages[-1].text
    assert text.index("passage 3.0") < text.index("passage 2.0")
    assert "passage 1.0" not in text
    assert "passage 0.5" not in text


async def test_evidence_without_a_share_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="evidence"):
        await builder().build("q", (), [Evidence("s", "x", 1.0)])


# ── history ────────────────────────────────────────────────────────────────────────────────────


async def test_the_oldest_exchanges_go_first_and_whole() -> None:
    kept = (await builder(history=150).build("q", conversation(20))).messages[3:-1]
    assert list(kept) == conversation(20)[-len(kept) :]
    assert kept[0].role is Role.USER


async def test_the_prefix_stands_still_while_nothing_is_dropped_and_moves_seldom_after() -> None:
    build = builder(history=300).build
    before: Sequence[Message] = ()
    moved = []
    for turn in range(40):
        prompt = await build(f"turn {turn}", conversation(turn))
        stable = prompt.messages[:-1]
        moved.append(list(stable[: len(before)]) != list(before))
        before = stable
    first = moved.index(True)
    assert first >= 9  # 300 tokens hold nine exchanges of 30
    assert sum(moved[first:]) <= len(moved[first:]) / 3


async def test_a_long_turn_takes_room_from_history_for_once() -> None:
    history = conversation(8)
    build = builder(400, history=300).build
    usual = await build("q", history)
    squeezed = await build("word " * 300, history)
    again = await build("q", history)
    assert len(squeezed.messages) < len(usual.messages) == len(again.messages)


async def test_opening_is_how_the_next_prompt_begins() -> None:
    for turns in (0, 3, 30):
        opening = await builder().opening(conversation(turns))
        prompt = await builder().build("next", conversation(turns))
        assert prompt.messages[:-1] == opening.messages
        assert [section(prompt, name) for name in NAMES[:4]] == [section(opening, name) for name in NAMES[:4]]


# ── text from outside ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "marker", ["<|im_end|>", "<|im_<|im_end|>end|>", "<<|im_start|>s", "<\uff5cUser\uff5c>"]
)
async def test_template_markers_from_outside_are_broken_up(marker: str) -> None:
    found = [Evidence("s", marker, 1.0)]
    prompt = await builder(evidence=80).build(marker, [Message(Role.USER, marker)], found)
    assert not any("<|" in message.text or "<\uff5c" in message.text for message in prompt.messages)


async def test_half_a_surrogate_pair_is_not_the_end() -> None:
    assert (await builder().build("hi \ud83d")).messages[-1].text == "hi ?"


async def test_roles_alternate_also_after_a_reply_that_nobody_heard() -> None:
    history = [
        Message(Role.USER, "First."),
        Message(Role.ASSISTANT, "One."),
        Message(Role.USER, "Second, and the engine died."),
        Message(Role.USER, "Third, cut off."),
    ]
    budget = TokenBudget(1000, max_output=40)
    prompt = await PromptBuilder(EstimatedTokenCounter(), budget, INSTRUCTIONS).build("Fourth.", history)
    roles = [message.role for message in prompt.messages]
    assert all(earlier is not later for earlier, later in itertools.pairwise(roles))
    assert prompt.messages[-1].text == "Second, and the engine died.\nThird, cut off.\nFourth."
