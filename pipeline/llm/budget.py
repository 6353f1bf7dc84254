"""How a prompt's tokens are shared out."""

from dataclasses import dataclass

MESSAGE_OVERHEAD = 8
"""Tokens a chat template may add around one message: ChatML takes 5 or 6, Llama 3's template 5."""

REPLY_OVERHEAD = 8
"""Tokens a chat template may add once: start of text, and the head of the reply."""

TURN_RESERVE = 96
"""Tokens kept free for a turn when history's share is fixed: about twenty seconds of speech."""

LEAST_FREE = 64
"""Tokens that instructions and tools must leave; with fewer there is no conversation."""


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """What one slot of the engine holds, and how it is shared out."""

    context: int
    """Tokens, prompt and reply together."""
    max_output: int = 80
    history: int = 240
    """The most that history may take. A 135M-parameter model begins to repeat itself when it reads more
    than a few of its own answers, and every 100 tokens of it cost time; larger models can have more."""
    evidence: int = 0
    """The most that evidence may take; 0 where there is no evidence source."""

    @property
    def prompt(self) -> int:
        """Tokens that all sections together may come to."""
        return self.context - self.max_output - REPLY_OVERHEAD
