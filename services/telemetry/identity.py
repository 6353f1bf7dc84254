"""Who tells."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """One server among those of an operator; each name is one level of a topic."""

    site: str
    node: str

    @property
    def state_topic(self) -> str:
        return f"visavis/{self.site}/node/{self.node}/state"

    def turn_topic(self, session_id: str) -> str:
        return f"visavis/{self.site}/session/{session_id}/turn"

    @property
    def alarm_topic(self) -> str:
        return f"visavis/{self.site}/alarm"
