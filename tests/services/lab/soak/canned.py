"""A soak as it might have gone, without having it."""

from pathlib import Path
from typing import Any

from pipeline.timeline.record import empty_record
from services import slo
from services.lab.soak import report
from services.lab.soak.findings import Findings, Sample
from services.lab.soak.options import Options
from services.lab.soak.report import Circumstances

GAP = {"at_ms": 500.0, "duration_ms": 80.0, "cause": "tts"}
FREEZE = {"at_ms": 900.0, "duration_ms": 350.0, "cause": "render", "w3c": True}
STALL = {"at_ms": 100.0, "duration_ms": 130.0, "cause": "network", "w3c": False}


def options(**changed: Any) -> Options:
    given: dict[str, Any] = {
        "sessions": 2,
        "turns": 3,
        "seconds": None,
        "browser": False,
        "network": None,
        "report": Path("out"),
        "url": None,
        "config": None,
        "slo": None,
        "seed": 1,
        "audio": (),
    }
    return Options(**given | changed)


def record(ttfa: float | None = 700.0, at: float = 10.0, **changed: Any) -> dict[str, Any]:
    """A turn that went well."""
    good = {
        "turn_id": f"t{at}",
        "time_to_first_audio_ms": ttfa,
        "time_to_first_frame_ms": ttfa,
        "reply_text": "Because of the light.",
        "stages": {
            "speech_end_ms": 1500.0,
            "shares_ms": {"endpointing": 250.0, "asr": 0.0, "prefill": 100.0, "tts": 200.0, "handoff": None},
            "spans": [
                {"stage": "asr", "start_ms": -80.0, "end_ms": 40.0, "revision": 1},
                {"stage": "endpointing", "start_ms": 0.0, "end_ms": 250.0, "revision": 1},
                {"stage": "prefill", "start_ms": 200.0, "end_ms": 350.0, "revision": 1},
                {"stage": "tts", "start_ms": 350.0, "end_ms": 550.0, "revision": 1},
            ],
        },
        "speech_gaps": [],
        "render_freezes": [],
        "av_skew_ms": {"p50": 5.0, "p95": 20.0, "max_abs": 25.0},
        "clock_bound_ms": 0.4,
        "premature": False,
        "file": "question-000.wav",
        "client": "aiortc",
        "user": 0,
        "at_s": at,
        "said": "Why is the sky blue?",
        "error": None,
        "microphone_late_ms": 3.0,
    }
    return {**empty_record(), **good, **changed}


def failed(at: float = 20.0, **changed: Any) -> dict[str, Any]:
    unknown = {**empty_record(), "failed": "call_failed", "error": "no server answers", "premature": False}
    return {**record(at=at), **unknown, **changed}


def sample(at: float, **changed: Any) -> Sample:
    seen: dict[str, Any] = {
        "at_s": at,
        "rss_mb": 900.0 + at / 100,
        "threads": 30,
        "descriptors": 60,
        "server_cores": 0.8,
        "client_cores": 0.2,
        "loop_lag_ms": 4.0,
        "client_loop_lag_ms": 2.0,
    }
    return Sample(**seen | changed)


def findings(*records: dict[str, Any], **changed: Any) -> Findings:
    samples = [sample(float(at)) for at in range(0, 60, 2)]
    return Findings(**{"records": list(records), "samples": samples, "began": 0.0, "ended": 60.0} | changed)


def built(found: Findings, limits: Path | None = None, **changed: Any) -> dict[str, Any]:
    circumstances = Circumstances("2026-01-02T03:04:05.678+00:00", (0.1, 0.1, 0.1), (1.5, 0.4, 0.2))
    return report.build(options(**changed), slo.load(limits), found, circumstances)
