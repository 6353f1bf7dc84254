"""A timeline that only keeps the traces of turns."""

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.events import ClientObservation, ClockStamps, TurnTrace


class Unobserved:
    def __init__(self) -> None:
        self.turns: list[TurnTrace] = []
        self.holds: list[bool] = []

    def connected(self, rtp_origin: Callable[[str], int | None]) -> None:
        pass

    def voice_made(self, pts: int, turn: str | None, span: tuple[float, float] | None) -> None:
        pass

    def picture_made(
        self, pts: int, at: float, turn: str | None, position: float | None, *, moving: bool
    ) -> None:
        pass

    def packet_sent(self, kind: str, rtp_timestamp: int) -> None:
        pass

    def held(self, held: bool) -> None:
        self.holds.append(held)

    def stamped(self, stamps: ClockStamps) -> None:
        pass

    def speech_ended(self, client_time: float) -> None:
        pass

    def observed(self, observation: ClientObservation) -> None:
        pass

    def turn_over(self, trace: TurnTrace) -> Mapping[str, Any]:
        self.turns.append(trace)
        return {"turn_id": trace.turn_id}

    def close(self) -> None:
        pass
