"""A/V skew: how much later a moment of the reply is heard than it is seen (docs/metrics.md)."""

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.timeline.ledger import Emitted


def skews(
    voice: Sequence[Emitted],
    rate: int,
    face: Sequence[Emitted],
    heard_at: Callable[[int], float | None],
    seen_at: Callable[[int], float | None],
) -> list[float]:
    """Seconds for each picture of a reply that was presented: playout time of the audio position that it was
    drawn for, less its presentation; + means sound late. Frames of one reply, in order."""
    if not voice:
        return []
    starts = np.array([frame.start for frame in voice])
    found = []
    for picture in face:
        seen = seen_at(picture.pts)
        # A position that was played twice, before a hold and after it, belongs to the later frame only if
        # that was made before the picture.
        candidates = np.flatnonzero(starts <= picture.start + 1e-9)
        sound = next((voice[k] for k in candidates[::-1] if voice[k].made_at <= picture.made_at + 1e-3), None)
        if seen is None or sound is None or picture.start > sound.end + 1e-3:
            continue
        heard = heard_at(sound.pts + round((picture.start - sound.start) * rate))
        if heard is not None:
            found.append(heard - seen)
    return found


def summary(found: Sequence[float]) -> dict[str, float] | None:
    """As in a turn's record, ms; None without any."""
    if not found:
        return None
    ms = np.array(found) * 1000
    return {
        "p50": round(float(np.percentile(ms, 50)), 1),
        "p95": round(float(np.percentile(ms, 95)), 1),
        "max_abs": round(float(np.abs(ms).max()), 1),
    }
