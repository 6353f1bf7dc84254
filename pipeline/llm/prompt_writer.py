"""Writes one conversation's prompts: finds the evidence for a turn and has the prompt built."""

from collections.abc import Sequence

from pipeline.events import EvidenceSource, Message, Prompt
from pipeline.llm.prompt import PromptBuilder


class PromptWriter:
    """For conversations of one tenant and role; `evidence` is None where there is none."""

    def __init__(
        self, builder: PromptBuilder, evidence: EvidenceSource | None, *, tenant: str, role: str
    ) -> None:
        self._builder = builder
        self._evidence = evidence
        self._tenant = tenant
        self._role = role

    async def opening(self, history: Sequence[Message] = ()) -> Prompt:
        """What the next prompt of the conversation begins with. Raises ConfigError when it does not fit."""
        return await self._builder.opening(history)

    async def write(self, history: Sequence[Message], turn: str) -> Prompt:
        """The prompt for what the user just said. Raises LanguageModelError."""
        if self._evidence is None:
            return await self._builder.build(turn, history)
        found = await self._evidence.find(turn, tenant=self._tenant, role=self._role)
        return await self._builder.build(turn, history, found)
