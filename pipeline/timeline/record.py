"""A turn's trace → its record, the unit of `turns.json` (docs/metrics.md defines every field).

What cannot be known is null, never 0. The server fills in what it sees; a client that measures joins
its own times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from pipeline.clock import Clock
from pipeline.events import Span, Stage, TurnTrace, Usage
from pipeline.timeline.turn_record import SCHEMA_VERSION, TakenRoute, TurnRecord

_FIELDS = tuple(each.name for each in fields(TurnRecord))
_ROUTE = tuple(each.name for each in fields(TakenRoute))


def empty_record() -> dict[str, Any]:
    """Every field, unknown."""
    return {**dict.fromkeys(_FIELDS), "schema_version": SCHEMA_VERSION, "interrupted": False}


class TurnRecords:
    """Makes the records of one session; wall-clock dates are taken once, at its start."""

    def __init__(self, clock: Clock, route: Mapping[str, Any]) -> None:
        self._started = clock.now()
        self._date = datetime.now(UTC)
        self._route = {**dict.fromkeys(_ROUTE), **route}

    def __call__(self, trace: TurnTrace) -> dict[str, Any]:
        """The record of a turn that is over."""
        usage, prompt = trace.usage, trace.prompt
        sections = {section.name: section.digest for section in prompt.sections} if prompt else {}
        return {
            **empty_record(),
            "turn_id": trace.turn_id,
            "session_id": trace.session_id,
            "started_at": self._wall(trace.started_at),
            "input": trace.input.value,
            "user_text": trace.user_text,
            "reply_text": trace.reply_text,
            "heard_text": trace.heard_text,
            "committed_revision": trace.committed_revision,
            "interrupted": trace.interrupted,
            "failed": trace.failed,
            "total_ms": _ms(trace.started_at, trace.ended_at),
            "stages": stage_shares(trace),
            "first_token_ms": _first_token(trace),
            "token_gaps_ms": _gaps(trace.token_times),
            "queue_ms": None if usage is None else _ms(0.0, usage.queue_seconds),
            "cancels": trace.cancels,
            "wasted": {"tokens": trace.wasted_tokens, "speech_s": round(trace.wasted_speech, 2)},
            "route": {**self._route, **_way(usage)},
            "kv_source": _kv_source(trace),
            "prompt_digest": prompt.digest if prompt else None,
            "evidence_digest": sections.get("evidence"),
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "output_tokens": usage.output_tokens if usage else None,
            "output_tokens_per_s": _rate(trace),
        }

    def _wall(self, at: float) -> str:
        date = self._date + timedelta(seconds=at - self._started)
        return date.isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class EndPoints:
    """What the server alone does not see of a turn, on its clock; None where nobody told."""

    speech_end: float | None = None
    """The user's, by the client that made the speech."""
    sent: float | None = None
    """The packet left that holds the first audible sample of the reply's own words."""
    heard: float | None = None
    """That sample was played."""


def stage_shares(trace: TurnTrace, points: EndPoints = EndPoints()) -> dict[str, Any]:
    """Raw spans and each stage's share of the wait, ms from the user's speech end.

    A share is max(0, the stage's end − the latest end of all earlier stages), clipped to [speech end, first
    audible sample], in the order of `Stage`, of the committed revision only.
    """
    begin = trace.speech_end if points.speech_end is None else points.speech_end
    shares: dict[str, float | None] = dict.fromkeys(stage.value for stage in Stage)
    if begin is None:
        return {"speech_end_ms": None, "shares_ms": shares, "spans": []}
    spans = _spans(trace, begin, points)
    end = trace.first_audio_at if points.heard is None else points.heard
    latest = begin
    for stage in Stage:
        ends = [span.end for span in spans if span.stage is stage]
        if not ends or end is None:
            continue
        reached = min(max(ends), end)
        shares[stage.value] = round(max(0.0, reached - latest) * 1000, 1)
        latest = max(latest, reached)
    return {
        "speech_end_ms": _ms(trace.started_at, begin),
        "shares_ms": shares,
        "spans": [_span(span, begin) for span in spans],
    }


def stages_violated(trace: TurnTrace, points: EndPoints, tolerance: float) -> list[str] | None:
    """What cannot be, in words; None without end points to check against.

    Shares add up to the wait whatever they are made of. So it is the spans that must tell whether they and
    the client's end points are of the same turn. `tolerance`: what two clocks may be apart, seconds.
    """
    if points.speech_end is None or points.heard is None:
        return None
    ends: dict[Stage, float] = {}
    for span in _spans(trace, points.speech_end, points):
        ends[span.stage] = max(span.end, ends.get(span.stage, span.end))
    found = []
    if Stage.EGRESS in ends and ends[Stage.EGRESS] > points.heard + tolerance:
        found.append(f"sent {_ms(points.heard, ends[Stage.EGRESS])} ms after it was heard")
    for stage in (Stage.ENDPOINTING, Stage.TTS):
        if Stage.EGRESS in ends and stage in ends and ends[stage] > ends[Stage.EGRESS] + tolerance:
            found.append(f"{stage} ended {_ms(ends[Stage.EGRESS], ends[stage])} ms after it was sent")
    if Stage.ENDPOINTING in ends and ends[Stage.ENDPOINTING] < points.speech_end - tolerance:
        found.append(f"committed {_ms(ends[Stage.ENDPOINTING], points.speech_end)} ms before the speech end")
    return found


def _spans(trace: TurnTrace, begin: float, points: EndPoints) -> list[Span]:
    """Those of the committed revision, and those whose end points nobody knows alone."""
    spans = [span for span in trace.spans if span.revision == trace.committed_revision]
    revision = trace.committed_revision or 0
    sent = trace.first_audio_at if points.sent is None else points.sent
    if sent is not None:
        ready = max((span.end for span in spans), default=sent)
        spans.append(Span(Stage.EGRESS, min(ready, sent), sent, revision))
    if points.speech_end is not None and trace.speech_end is not None:
        spans.append(Span(Stage.UPLINK, begin, max(begin, trace.speech_end), revision))
    if sent is not None and points.heard is not None:
        spans.append(Span(Stage.PLAYOUT, sent, points.heard, revision))
    return spans


def _span(span: Span, begin: float) -> dict[str, Any]:
    return {
        "stage": span.stage.value,
        "start_ms": round((span.start - begin) * 1000, 1),
        "end_ms": round((span.end - begin) * 1000, 1),
        "revision": span.revision,
    }


def _first_token(trace: TurnTrace) -> float | None:
    """From the request to the first piece of text; a split engine's hand-off lies in between."""
    own = [span for span in trace.spans if span.revision == trace.committed_revision]
    prefill = [span for span in own if span.stage is Stage.PREFILL]
    if not prefill:
        return None
    handoff = [span.end for span in own if span.stage is Stage.HANDOFF]
    return _ms(prefill[-1].start, max([prefill[-1].end, *handoff]))


def _gaps(times: Sequence[float]) -> dict[str, Any] | None:
    gaps = sorted((later - earlier) * 1000 for earlier, later in pairwise(times))
    if not gaps:
        return None
    return {
        "p50": round(gaps[len(gaps) // 2], 1),
        "p99": round(gaps[min(len(gaps) - 1, int(len(gaps) * 0.99))], 1),
        "max": round(gaps[-1], 1),
        "unit": "chunk",
    }


def _kv_source(trace: TurnTrace) -> dict[str, int | None] | None:
    usage = trace.usage
    if usage is None or usage.prompt_tokens is None or usage.cached_tokens is None:
        return None
    handed = min(usage.handed_tokens or 0, usage.cached_tokens)
    return {
        "computed": usage.prompt_tokens - usage.cached_tokens,
        "prefix": usage.cached_tokens - handed,
        "handoff": handed,
        "reload": 0,
    }


def _way(usage: Usage | None) -> dict[str, Any]:
    """How this turn's work was divided between engines, and what of the prompt's state moved."""
    if usage is None or usage.pattern is None:
        return {}
    way: dict[str, Any] = {"pattern": usage.pattern, "fallback_from": usage.fallback_from}
    if usage.kv_bytes is not None and usage.kv_seconds is not None:
        way |= {"kv_bytes": usage.kv_bytes, "kv_ms": round(usage.kv_seconds * 1000, 1)}
    return way


def _rate(trace: TurnTrace) -> float | None:
    """Tokens a second from the first token to the last; None for fewer than two."""
    tokens = trace.usage.output_tokens if trace.usage else None
    if not tokens or tokens < 2 or len(trace.token_times) < 2:
        return None
    seconds = trace.token_times[-1] - trace.token_times[0]
    return round((tokens - 1) / seconds, 1) if seconds > 0 else None


def _ms(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round((end - start) * 1000, 1)
