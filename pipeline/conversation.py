"""Turns and history: what was said, and what was really heard."""

from dataclasses import dataclass

from pipeline.events import Message, Role


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: exactly one user message and one assistant message."""

    user: str
    assistant: str
    """As far as it was heard."""


class Conversation:
    """The history a prompt is made of: turns that are over, as the user knows them."""

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        self._exchanges.append(exchange)

    def history(self) -> list[Message]:
        """Every message so far, oldest first. What was not understood or not heard is not in it."""
        messages: list[Message] = []
        for exchange in self._exchanges:
            if exchange.user:
                messages.append(Message(Role.USER, exchange.user))
            if exchange.assistant:
                messages.append(Message(Role.ASSISTANT, exchange.assistant))
        return messages
