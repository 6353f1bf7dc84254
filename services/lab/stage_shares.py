"""What each stage of the way takes of the wait, over many turns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.events import Stage
from services.lab.intervals import spread


def stage_shares(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Spreads of each stage's share; what no record has is left out. `rest` is what the server cannot
    see: the way to it and back, its estimate of the speech end, and the playout model."""
    found: dict[str, list[float]] = {}
    for record in records:
        wait, stages = record["time_to_first_audio_ms"], record["stages"]
        if wait is None or stages is None:
            continue
        shares = {stage.value: stages["shares_ms"].get(stage.value) for stage in Stage}
        known = {name: share for name, share in shares.items() if share is not None}
        for name, share in {**known, "rest": wait - float(np.sum(list(known.values())))}.items():
            found.setdefault(name, []).append(share)
    return {name: spread(values) for name, values in found.items()}
