"""Turns and history: what was said, and what was really heard."""

from dataclasses import dataclass

from pipeline.events import Message, Role


@dataclass(slots=True)
class Exchange:
    """One turn: exactly one user message and one assistant message."""

    user: str
    assistant: str = ""


class Conversation:
    """The history a prompt is made of. An assistant message holds only what the user heard."""

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []

    def commit(self, user_text: str) -> Exchange:
        """The user's turn, for good; its reply is filled in as far as it was heard."""
        exchange = Exchange(user_text)
        self._exchanges.append(exchange)
        return exchange

    def history(self) -> list[Message]:
        """Every message so far, oldest first. A reply nobody heard is not in it."""
        messages: list[Message] = []
        for exchange in self._exchanges:
            if exchange.user:
                messages.append(Message(Role.USER, exchange.user))
            if exchange.assistant:
                messages.append(Message(Role.ASSISTANT, exchange.assistant))
        return messages
