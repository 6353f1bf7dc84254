"""Networks as data: what each does to the packets of one direction."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loss:
    """Gilbert's and Elliott's model (Elliott 1963): a way that is now good, now bad. Probabilities.

    The mean loss is (turns_good * good + turns_bad * bad) / (turns_good + turns_bad).
    """

    good: float = 0.0
    """That a packet is lost while the way is good."""
    bad: float = 1.0
    """That one is lost while it is bad."""
    turns_bad: float = 0.0
    """That a good way turns bad with this packet."""
    turns_good: float = 1.0
    """That a bad one turns good; bursts last 1 / turns_good packets in the mean."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One direction of a network. Packets keep their order: what is late makes those behind it late."""

    delay: float = 0.0
    """Seconds from one end to the other."""
    jitter: float = 0.0
    """Mean of what comes on top of it, seconds, exponentially distributed."""
    loss: Loss = Loss()
    rate: float | None = None
    """Bits a second; None: no limit."""
    queue: float = 0.2
    """Seconds for which a packet may wait for the rate; one that would wait longer is lost."""


PROFILES: Mapping[str, Profile] = {
    "clean": Profile(),
    "lossy": Profile(loss=Loss(good=0.02)),
    "bursty": Profile(delay=0.01, loss=Loss(turns_bad=0.0025, turns_good=0.125)),
    "jittery": Profile(delay=0.02, jitter=0.012),
    "slow": Profile(delay=0.06, jitter=0.002, rate=800_000, queue=0.3),
}
"""By name: a relay and nothing else; a radio link at its edge (2 % lost, one by one); one that loses in
bursts (2 %, eight in a row); a busy Wi-Fi; a distant server behind a line too narrow for the picture's full
rate."""
