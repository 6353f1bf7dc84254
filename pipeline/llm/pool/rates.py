"""How fast a pool has been lately, and what that promises."""

from dataclasses import dataclass

_NEWEST = 0.2
"""Share of the newest measurement in a mean."""


@dataclass(slots=True)
class Rates:
    """Means of what was measured, the newest counting most. Seconds."""

    _per_token: float | None = None
    """Of prefill."""
    _moving: float | None = None
    """Of a hand-off."""
    _holding: float | None = None
    """That a reservation is held."""

    def read(self, tokens: int, seconds: float) -> None:
        """A prefill of so many tokens."""
        if tokens > 0:
            self._per_token = _mean(self._per_token, seconds / tokens)

    def moved(self, seconds: float) -> None:
        """A hand-off."""
        self._moving = _mean(self._moving, seconds)

    def held(self, seconds: float) -> None:
        """A reservation was given back after so long."""
        self._holding = _mean(self._holding, seconds)

    def first_token(self, unread: int) -> float | None:
        """To the first token of a prompt with so many tokens to read; None: nothing was measured yet."""
        if self._per_token is None:
            return None
        return unread * self._per_token + (self._moving or 0.0)

    def room(self, count: int, held: int) -> float | None:
        """Until `count` of the `held` reservations have been given back, if they began at random times."""
        if self._holding is None or held == 0:
            return None
        return self._holding * count / held


def _mean(before: float | None, newest: float) -> float:
    return newest if before is None else before + _NEWEST * (newest - before)
