"""From when to when something was so, as it is told that it is, or no longer."""

from collections import deque
from collections.abc import Sequence

_KEPT = 50


class Spells:
    """The newest of them; seconds."""

    def __init__(self) -> None:
        self._over: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._since: float | None = None

    def note(self, so: bool, now: float) -> None:
        """It is so now, or it is not."""
        if so and self._since is None:
            self._since = now
        elif not so and self._since is not None:
            self._over.append((self._since, now))
            self._since = None

    def until(self, now: float) -> Sequence[tuple[float, float]]:
        """Those that are over, and the one that is not, up to now."""
        return [*self._over] if self._since is None else [*self._over, (self._since, now)]
