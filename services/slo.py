"""What a conversation has to keep to (configs/slo.yaml), and whether it did."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pipeline.errors import ConfigError

Record = Mapping[str, Any]
"""A turn, as in turns.json."""

_SHIPPED = "ad8ce20019180292d265a13a2fdd2329d681ea461fa36d28c85f7c3cb0e2e9ca"
"""Digest of configs/slo.yaml as released, so that a file changed in its place is noticed too."""


@dataclass(frozen=True, slots=True)
class Slo:
    """The limits. Milliseconds and counts; all of them inclusive."""

    time_to_first_audio_p90_ms: float
    largest_speech_gap_ms: float
    freezes: int
    """By the W3C's rule, in all turns together."""
    skew_low_ms: float
    skew_high_ms: float
    """Between which the median and the 95th percentile of every turn must lie."""
    failed_turns: int
    digest: str
    """SHA-256 of the file, hex."""
    shipped: bool
    """The file is the one that Visavis ships with; reports flag another."""


class Bound(StrEnum):
    AT_MOST = "at most"
    AT_LEAST = "at least"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One limit, and what was measured against it. Field by field JSON."""

    name: str
    """The limit's key in slo.yaml."""
    bound: Bound
    limit: float
    value: float | None
    """None when no record knows it."""
    holds: bool | None
    """None when nothing measured it, which is no pass."""


def load(path: Path | None = None) -> Slo:
    """The limits in a file; None for configs/slo.yaml of the package.

    Raises ConfigError naming field, value and what was expected.
    """
    name = "configs/slo.yaml (packaged)" if path is None else str(path)
    try:
        data = (resources.files("configs") / "slo.yaml" if path is None else path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{name}: cannot be read ({error.strerror}); expected a YAML file of limits"
        ) from None
    try:
        tree = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{name}: not valid YAML: {error}") from None
    digest = hashlib.sha256(data).hexdigest()
    return Slo(**_limits(name, tree), digest=digest, shipped=digest == _SHIPPED)


def judge(slo: Slo, records: Sequence[Record]) -> list[Verdict]:
    """Every limit against all turns together, in the order of slo.yaml."""
    return [_verdict(slo, name, bound, measure(records)) for name, (bound, measure) in _MEASURES.items()]


def breaks(slo: Slo, record: Record) -> list[str]:
    """The limits that one turn breaks all by itself, by name."""
    return [verdict.name for verdict in judge(slo, [record]) if verdict.holds is False]


def _verdict(slo: Slo, name: str, bound: Bound, value: float | None) -> Verdict:
    limit = getattr(slo, name)
    if value is None:
        return Verdict(name, bound, limit, None, None)
    holds = value <= limit if bound is Bound.AT_MOST else value >= limit
    return Verdict(name, bound, limit, value, holds)


def _first_audio_p90(records: Sequence[Record]) -> float | None:
    known = _known(records, "time_to_first_audio_ms")
    return round(float(np.percentile(known, 90)), 1) if known else None


def _largest_gap(records: Sequence[Record]) -> float | None:
    known = _known(records, "speech_gaps")
    return max((gap["duration_ms"] for gaps in known for gap in gaps), default=0.0) if known else None


def _freezes(records: Sequence[Record]) -> float | None:
    known = _known(records, "render_freezes")
    return sum(freeze["w3c"] for freezes in known for freeze in freezes) if known else None


def _lowest_skew(records: Sequence[Record]) -> float | None:
    return min((skew["p50"] for skew in _known(records, "av_skew_ms")), default=None)


def _highest_skew(records: Sequence[Record]) -> float | None:
    return max((skew["p95"] for skew in _known(records, "av_skew_ms")), default=None)


def _failed(records: Sequence[Record]) -> float | None:
    return sum(record["failed"] is not None for record in records) if records else None


_MEASURES: Mapping[str, tuple[Bound, Callable[[Sequence[Record]], float | None]]] = {
    "time_to_first_audio_p90_ms": (Bound.AT_MOST, _first_audio_p90),
    "largest_speech_gap_ms": (Bound.AT_MOST, _largest_gap),
    "freezes": (Bound.AT_MOST, _freezes),
    # The median never exceeds the 95th percentile, so each bound has one of the two to watch.
    "skew_low_ms": (Bound.AT_LEAST, _lowest_skew),
    "skew_high_ms": (Bound.AT_MOST, _highest_skew),
    "failed_turns": (Bound.AT_MOST, _failed),
}


def _known(records: Sequence[Record], field: str) -> list[Any]:
    return [value for record in records if (value := record.get(field)) is not None]


def _limits(name: str, tree: object) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise ConfigError(f"{name}: is {type(tree).__name__}; expected the keys {', '.join(_MEASURES)}")
    for key in tree:
        if key not in _MEASURES:
            raise ConfigError(f"{name}: {key} is no limit; expected one of {', '.join(_MEASURES)}")
    limits = {
        field.name: _number(name, field.name, tree.get(field.name), whole=field.type is int)
        for field in fields(Slo)
        if field.name in _MEASURES
    }
    if limits["skew_low_ms"] > limits["skew_high_ms"]:
        raise ConfigError(
            f"{name}: skew_low_ms is {limits['skew_low_ms']}; "
            f"expected at most skew_high_ms, {limits['skew_high_ms']}"
        )
    return limits


def _number(name: str, key: str, value: object, *, whole: bool) -> float:
    signed = key.startswith("skew")
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and (signed or value >= 0)
        and not (whole and isinstance(value, float))
    ):
        return value
    shown = "missing" if value is None else repr(value)
    expected = ("a whole number" if whole else "a number") + ("" if signed else ", at least 0")
    raise ConfigError(f"{name}: {key} is {shown}; expected {expected}")
