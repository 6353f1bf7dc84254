"""What a soak is told, checked: a wrong value is named with its option and what was expected."""

import re
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import BadInputError
from services.lab import server_address
from services.lab.network.profiles import PROFILES, Profile

MOST_SESSIONS = 64
"""What `server.max_sessions` allows."""

_MOST_TURNS = 1_000_000
_LONGEST = 7 * 86_400.0

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Options:
    """Exactly one of `turns`, of each user, and `seconds` is given."""

    sessions: int
    turns: int | None
    seconds: float | None
    browser: bool
    """Users are Chromium, not aiortc."""
    network: str | None
    """Name of a profile; None: no relay."""
    report: Path
    url: str | None
    """None: a server of our own."""
    config: Path | None
    slo: Path | None
    seed: int
    audio: tuple[Path, ...]
    """What users say; empty: synthesised lines."""

    @property
    def profile(self) -> Profile | None:
        return None if self.network is None else PROFILES[self.network]

    @property
    def client(self) -> str:
        """What records are marked with."""
        return "chromium" if self.browser else "aiortc"


def checked(
    *,
    sessions: int,
    turns: int | None,
    duration: str | None,
    browser: bool,
    network: str | None,
    report: Path,
    url: str | None,
    config: Path | None,
    slo: Path | None,
    seed: int,
    audio: tuple[Path, ...],
) -> Options:
    """Raises BadInputError."""
    if (turns is None) == (duration is None):
        given = "neither" if turns is None else "both"
        raise BadInputError(f"--turns, --duration: {given} given; expected one of the two")
    if not 1 <= sessions <= MOST_SESSIONS:
        raise BadInputError(f"--sessions {sessions}: expected 1 to {MOST_SESSIONS} users")
    if turns is not None and not 1 <= turns <= _MOST_TURNS:
        raise BadInputError(f"--turns {turns}: expected 1 to {_MOST_TURNS:,} turns of each user")
    if network is not None and network not in PROFILES:
        raise BadInputError(f"--network {network}: expected one of {', '.join(PROFILES)}")
    if seed < 0:
        raise BadInputError(f"--seed {seed}: expected 0 or more")
    return Options(
        sessions=sessions,
        turns=turns,
        seconds=None if duration is None else seconds(duration),
        browser=browser,
        network=network,
        report=report,
        url=None if url is None else server_address.checked(url),
        config=config,
        slo=slo,
        seed=seed,
        audio=audio,
    )


def seconds(duration: str) -> float:
    """90, 90s, 10m, 1h → seconds. Raises BadInputError."""
    match = _DURATION.fullmatch(duration.strip())
    found = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < found <= _LONGEST:
        raise BadInputError(f"--duration {duration}: expected seconds, or 90s, 10m, 1h; at most a week")
    return found
