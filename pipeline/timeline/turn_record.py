"""What a turn's record is made of; `record` fills it in, docs/metrics.md defines every field.

Records travel as JSON. These classes are their shape: the names, for whoever makes or sends one, and the
types, from which its JSON Schema is generated. None is what cannot be known.
"""

from dataclasses import dataclass
from typing import Final, Literal

from pipeline.events import Stage, TurnInput
from pipeline.timeline.causes import Cause

SCHEMA_VERSION: Final = 1
"""Goes up when a field changes its meaning or goes away, not when one comes."""

CONTENT = ("user_text", "reply_text", "heard_text")
"""The fields that hold what people said. They leave the machine only where the operator says so."""


@dataclass(frozen=True, slots=True)
class StageSpan:
    """Milliseconds from the user's speech end; below 0 for work that began before it."""

    stage: Stage
    start_ms: float
    end_ms: float
    revision: int


@dataclass(frozen=True, slots=True)
class StageTimes:
    speech_end_ms: float | None
    """From `started_at` to the user's speech end, which the spans are reckoned from."""
    shares_ms: dict[Stage, float | None]
    spans: list[StageSpan]


@dataclass(frozen=True, slots=True)
class Gap:
    """A silence in the reply that was not meant; `at_ms` from the reply's first audible sample."""

    at_ms: float
    duration_ms: float
    cause: Cause


@dataclass(frozen=True, slots=True)
class Freeze:
    """A picture that stood for too long; `w3c`: long enough for a freeze by the W3C's rule."""

    at_ms: float
    duration_ms: float
    cause: Cause
    w3c: bool


@dataclass(frozen=True, slots=True)
class Skew:
    """Milliseconds; + means sound late."""

    p50: float
    p95: float
    max_abs: float


@dataclass(frozen=True, slots=True)
class TokenGaps:
    """Milliseconds between what `unit` says."""

    p50: float
    p99: float
    max: float
    unit: Literal["token", "chunk"]


@dataclass(frozen=True, slots=True)
class Waste:
    tokens: int
    speech_s: float


@dataclass(frozen=True, slots=True)
class TakenRoute:
    pattern: str | None
    dialect: str | None
    contract: str | None
    fallback_from: str | None
    kv_bytes: int | None
    kv_ms: float | None


@dataclass(frozen=True, slots=True)
class KvSource:
    """Tokens of the prompt, by where their keys and values came from."""

    computed: int
    prefix: int
    handoff: int
    reload: int


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Of the engine's pools, 0 to 1."""

    prefill: float | None
    decode: float | None


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn of a conversation, as in turns.json. What cannot be known is null, never 0."""

    schema_version: Literal[1]
    turn_id: str | None
    session_id: str | None
    started_at: str | None
    """ISO 8601, UTC. The only date; it is not used for durations."""
    input: TurnInput | None
    user_text: str | None
    reply_text: str | None
    heard_text: str | None
    committed_revision: int | None
    interrupted: bool
    failed: str | None
    """A code of pipeline/errors.py."""
    time_to_first_audio_ms: float | None
    time_to_first_sound_ms: float | None
    first_audio_witness_ms: float | None
    """The same as time_to_first_audio_ms, by the client's energy gate."""
    time_to_first_frame_ms: float | None
    total_ms: float | None
    stages: StageTimes | None
    speech_gaps: list[Gap] | None
    render_freezes: list[Freeze] | None
    av_skew_ms: Skew | None
    barge_in_stop_ms: float | None
    first_token_ms: float | None
    handoff_gap_ms: float | None
    token_gaps_ms: TokenGaps | None
    queue_ms: float | None
    retries: int | None
    cancels: int | None
    wasted: Waste | None
    route: TakenRoute | None
    kv_source: KvSource | None
    prompt_digest: str | None
    evidence_digest: str | None
    prompt_tokens: int | None
    output_tokens: int | None
    output_tokens_per_s: float | None
    utilisation: Utilisation | None
    speech_end_by: Literal["client", "server"] | None
    clock_bound_ms: float | None
    not_measured: dict[str, str] | None
    """Field → why it is null, where a client could have known."""
    stages_violated: list[str] | None
    """What about the stages cannot be, in words."""


@dataclass(frozen=True, slots=True)
class SpokenTurn(TurnRecord):
    """A record as a caller who speaks files keeps it, joined with what only that caller knows."""

    file: str
    """What was spoken."""
    premature: bool
    """The server took a pause inside the question for its end and answered that."""
    ledger_first_audio_ms: float | None
    """Time to first audio by the server's ledger, from which sample this caller said it played when;
    `time_to_first_audio_ms` is by the waveform that came. Two ways to one figure."""
