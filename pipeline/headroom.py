"""Whether the processor has room for work that may turn out to be for nothing."""


class Headroom:
    """Shared by all conversations of a process; each tells it while it is in the middle of a turn."""

    def __init__(self, conversations: int = 1) -> None:
        """`conversations`: how many may be in mid-turn while there is still room."""
        self._most = conversations
        self._busy: set[str] = set()

    def note(self, session_id: str, *, busy: bool) -> None:
        """A conversation is in the middle of a turn, or no longer."""
        if busy:
            self._busy.add(session_id)
        else:
            self._busy.discard(session_id)

    @property
    def free(self) -> bool:
        return len(self._busy) <= self._most

    def wanted_elsewhere(self, session_id: str) -> bool:
        """Whether another conversation is in the middle of a turn."""
        return bool(self._busy - {session_id})
