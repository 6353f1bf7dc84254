"""Puts a turn's prompt together from authorised sections, under one token budget.

Sections, in the order of their digests: instructions, tools, evidence, history, turn. In chat form:

    system      instructions, then tool definitions
    user, assistant, …     the instructions' examples
    user, assistant, …     history
    user        evidence, then the turn

What is stable comes first and what changes every turn comes last, so that an engine which keeps a
conversation's cache finds all but the newest exchange in it. Evidence is part of the turn it was found
for and never enters history; after a turn with evidence the engine re-reads that one exchange.

What does not fit: instructions and tools are never cut (ConfigError) · a turn of more than half of what
they leave loses its beginning, since what is asked mostly comes last, and says so with an ellipsis ·
evidence goes lowest score first · history goes oldest exchange first, and down to 60 % of its share
at once, so that the prefix then stands still for several turns instead of moving in each.

Digests are SHA-256 of: instructions and history as JSON `[["user", "…"], …]`; tools, evidence and turn as
their text stands in the messages; of an empty text where a section is empty. The prompt's digest is that
of the lines `<section> <digest>`.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.errors import ConfigError
from pipeline.events import Evidence, Message, Prompt, PromptSection, Role
from pipeline.llm.budget import LEAST_FREE, MESSAGE_OVERHEAD, REPLY_OVERHEAD, TURN_RESERVE, TokenBudget
from pipeline.llm.instructions import DEFAULT_INSTRUCTIONS, Instructions
from pipeline.llm.tokens import TokenCounter

KEPT_AFTER_DROP = 0.6

ELLIPSIS = "… "


@dataclass(frozen=True, slots=True)
class _Prefix:
    """What every prompt of the conversation begins with."""

    messages: tuple[Message, ...]
    instructions: PromptSection
    tools: PromptSection
    free: int
    """Tokens left for evidence, history and turn."""


class PromptBuilder:
    """Builds prompts for conversations that share instructions, tools and budget. Keeps no history."""

    def __init__(
        self,
        counter: TokenCounter,
        budget: TokenBudget,
        instructions: Instructions = DEFAULT_INSTRUCTIONS,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._counter = counter
        self._budget = budget
        self._instructions = instructions
        self._tools = tools
        self._known_prefix: _Prefix | None = None

    async def opening(self, history: Sequence[Message] = ()) -> Prompt:
        """How the next prompt will begin, whatever its turn: to warm an engine with.

        Raises as `build` does; called before the first conversation, it checks the settings.
        """
        prefix = await self._prefix()
        share = self._history_share(prefix)
        past, past_tokens = await self._fit_history(history, share, share)
        return self._prompt(
            prefix,
            (*prefix.messages, *past),
            _section("evidence"),
            _section("history", _canonical(past), past_tokens),
            "",
            0,
        )

    async def build(
        self, turn: str, history: Sequence[Message] = (), evidence: Sequence[Evidence] = ()
    ) -> Prompt:
        """The prompt for what the user just said, after `history` (oldest first, this turn not in it).

        Never over budget; instructions and tools always whole, the turn always present. Raises
        ConfigError; LanguageModelError when tokens cannot be counted; ValueError when the budget has
        nothing for evidence and some is given.
        """
        if evidence and not self._budget.evidence:
            raise ValueError("evidence given, and TokenBudget.evidence is 0")
        prefix = await self._prefix()
        turn, turn_tokens = await self._fit_turn(_inert(turn), prefix.free // 2)
        left = prefix.free - turn_tokens

        notes, notes_tokens = await self._fit_evidence(evidence, min(left, self._budget.evidence))
        left -= notes_tokens

        past, past_tokens = await self._fit_history(history, self._history_share(prefix), left)

        question = f"{notes}\n\n{turn}" if notes else turn
        return self._prompt(
            prefix,
            (*prefix.messages, *past, Message(Role.USER, question)),
            _section("evidence", notes, notes_tokens),
            _section("history", _canonical(past), past_tokens),
            turn,
            turn_tokens,
        )

    def _prompt(
        self,
        prefix: _Prefix,
        messages: Sequence[Message],
        evidence: PromptSection,
        history: PromptSection,
        turn: str,
        turn_tokens: int,
    ) -> Prompt:
        sections = (
            prefix.instructions,
            prefix.tools,
            evidence,
            history,
            _section("turn", turn, turn_tokens),
        )
        named = "\n".join(f"{section.name} {section.digest}" for section in sections)
        return Prompt(_joined(messages), sections, _digest(named), self._budget.max_output)

    def _history_share(self, prefix: _Prefix) -> int:
        """Tokens for history, the same in every turn, so that the same exchanges are kept."""
        reserve = min(TURN_RESERVE, prefix.free // 4)
        return min(self._budget.history, prefix.free - reserve - self._budget.evidence)

    async def _prefix(self) -> _Prefix:
        if self._known_prefix is None:
            self._known_prefix = await self._make_prefix()
        return self._known_prefix

    async def _make_prefix(self) -> _Prefix:
        instructions = self._instructions
        examples = tuple(
            message
            for question, answer in instructions.examples
            for message in (Message(Role.USER, question), Message(Role.ASSISTANT, answer))
        )
        spoken = (Message(Role.SYSTEM, instructions.system), *examples)
        tools = ""
        if self._tools:
            definitions = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in self._tools)
            tools = f"\n\nTools you can use:\n{definitions}"
        spoken_tokens = sum(await asyncio.gather(*map(self._cost, spoken)))
        tools_tokens = await self._counter.count(tools) if tools else 0

        budget = self._budget
        free = budget.prompt - spoken_tokens - tools_tokens
        if free < LEAST_FREE:
            raise ConfigError(
                f"agent.instructions: {spoken_tokens} tokens, and {tools_tokens} of tools, leave {free} "
                f"of the {budget.prompt} a prompt may have (context {budget.context} − reply "
                f"{budget.max_output} − template {REPLY_OVERHEAD}); expected at least {LEAST_FREE} left"
            )
        most = free - 2 * min(TURN_RESERVE, free // 4)
        if budget.evidence > most:
            raise ConfigError(
                f"llm.evidence.max_tokens: {budget.evidence}, expected at most {most}: "
                f"{free} tokens are left by instructions and tools, for evidence, history and turn"
            )
        return _Prefix(
            (Message(Role.SYSTEM, instructions.system + tools), *examples),
            _section("instructions", _canonical(spoken), spoken_tokens),
            _section("tools", tools, tools_tokens),
            free,
        )

    async def _cost(self, message: Message) -> int:
        return await self._counter.count(message.text) + MESSAGE_OVERHEAD

    async def _fit_turn(self, text: str, limit: int) -> tuple[str, int]:
        async def cost(text: str) -> int:
            return await self._cost(Message(Role.USER, text))

        tokens = await cost(text)
        if tokens <= limit:
            return text, tokens
        starts = _cuts(text)
        kept, kept_tokens = ELLIPSIS, await cost(ELLIPSIS)
        low, high = 0, len(starts)
        while low < high:
            middle = (low + high) // 2
            candidate = ELLIPSIS + text[starts[middle] :]
            tokens = await cost(candidate)
            if tokens <= limit:
                kept, kept_tokens, high = candidate, tokens, middle
            else:
                low = middle + 1
        return kept, kept_tokens

    async def _fit_evidence(self, evidence: Sequence[Evidence], limit: int) -> tuple[str, int]:
        best_first = sorted(evidence, key=lambda passage: passage.score, reverse=True)
        lines = ["Notes that may help:", *(f"- {_inert(passage.text)}" for passage in best_first)]
        # Counted with the line end that follows, so that the parts add up to the whole.
        costs = await asyncio.gather(*(self._counter.count(line + "\n") for line in lines))
        used, kept = costs[0] + 1, 0
        for cost in costs[1:]:
            if used + cost > limit:
                break
            used += cost
            kept += 1
        return ("\n".join(lines[: kept + 1]), used) if kept else ("", 0)

    async def _fit_history(
        self, history: Sequence[Message], share: int, left: int
    ) -> tuple[tuple[Message, ...], int]:
        exchanges = _exchanges([Message(message.role, _inert(message.text)) for message in history])
        # One after the other: all but the newest are known to the counter, and then nothing waits.
        costs = [sum([await self._cost(message) for message in exchange]) for exchange in exchanges]
        first = _first_kept(costs, share)
        while sum(costs[first:]) > left:  # a long turn takes its room from this prompt's history only
            first += 1
        kept = tuple(message for exchange in exchanges[first:] for message in exchange)
        return kept, sum(costs[first:])


def _joined(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The user's messages that follow each other as one: many chat templates refuse two in a row, and a
    turn whose reply nobody heard leaves two."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role is message.role is Role.USER:
            message = Message(Role.USER, f"{joined.pop().text}\n{message.text}")
        joined.append(message)
    return tuple(joined)


def _first_kept(costs: Sequence[int], share: int) -> int:
    """Index of the oldest exchange kept. A fold over the whole history, so that it takes no memory of
    earlier turns to decide as they did, and moves only when an exchange too many comes in."""
    first = total = 0
    for cost in costs:
        total += cost
        if total > share:
            while total > KEPT_AFTER_DROP * share:
                total -= costs[first]
                first += 1
    return first


def _exchanges(history: Sequence[Message]) -> list[list[Message]]:
    """History as what goes together: a user's message and everything up to the next."""
    exchanges: list[list[Message]] = []
    for message in history:
        if message.role is Role.USER or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    return exchanges


def _cuts(text: str) -> list[int]:
    """Where a text may be cut: at words, and anywhere in one that has no spaces."""
    starts = [0, *(at + 1 for at, character in enumerate(text) if character.isspace())]
    longest = max(end - start for start, end in zip(starts, [*starts[1:], len(text)], strict=True))
    return starts if longest <= 100 else list(range(len(text)))


def _inert(text: str) -> str:
    """Text from outside with chat-template markers broken up: engines read `<|im_end|>` inside a message
    as the end of that message, and what follows as whatever role it claims. Half a surrogate pair, which
    JSON can carry and UTF-8 cannot, becomes a question mark."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("<|", "< |").replace("<\uff5c", "< \uff5c")  # DeepSeek's bar is a full-width one


def _canonical(messages: Sequence[Message]) -> str:
    pairs = [[message.role.value, message.text] for message in messages]
    return json.dumps(pairs, ensure_ascii=False) if pairs else ""


def _section(name: str, text: str = "", tokens: int = 0) -> PromptSection:
    return PromptSection(name, _digest(text), tokens)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
