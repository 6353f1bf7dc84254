"""A turn's record, as the server sends it once it is known what the client heard and saw."""

import json
from pathlib import Path
from typing import Any

RECORD = json.loads((Path(__file__).parent / "unit" / "turn_record.json").read_text())
"""By voice, heard 600 ms after an estimated speech end; a reply of 4 s without gap or freeze."""

STUMBLES: dict[str, Any] = {
    "speech_gaps": [{"at_ms": 1000, "duration_ms": 352.4, "cause": "tts"}],
    "render_freezes": [
        {"at_ms": 200, "duration_ms": 130, "cause": "loop", "w3c": False},
        {"at_ms": 3000, "duration_ms": 500, "cause": "render", "w3c": True},
    ],
}

_BY_CLIENT = (
    *("time_to_first_audio_ms", "time_to_first_frame_ms", "speech_gaps", "render_freezes", "av_skew_ms"),
    *("speech_end_by", "clock_bound_ms", "not_measured"),
)


def measured(**told: Any) -> dict[str, Any]:
    """The whole record of a turn; `told`: what is different about it."""
    return {**RECORD, **told}


def provisional(**told: Any) -> dict[str, Any]:
    """What the server alone knows of it when it is over."""
    spans = [span for span in RECORD["stages"]["spans"] if span["stage"] != "playout"]
    shares = {**RECORD["stages"]["shares_ms"], "playout": None}
    stages = {**RECORD["stages"], "shares_ms": shares, "spans": spans}
    return measured(**{**dict.fromkeys(_BY_CLIENT), "stages": stages, **told})
