"""A turn's record that has to fit into a message: what is longest in it is given up until it does."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.timeline.turn_record import CONTENT

_MESSAGE = 16_000
"""Bytes of a record in a data-channel message, which has 16 KB with its envelope."""

_LONGEST_TEXT = 500
_MOST_DISTURBANCES = 20

Record = Mapping[str, Any]


def shortened(
    record: Record, fits: Callable[[Record, Sequence[str]], bool]
) -> tuple[dict[str, Any], list[str]]:
    """The record, cut until it `fits`, and the fields that were cut for it, which `fits` is told as well."""
    turn = dict(record)
    given_up: list[str] = []
    while not fits(turn, given_up):
        field, cut = _CUTS[len(given_up)]
        turn[field] = None if turn.get(field) is None else cut(turn[field])
        given_up.append(field)
    return turn, given_up


def fitting(record: Record) -> dict[str, Any]:
    """The record as a client is told it."""

    def fits(turn: Record, given_up: Sequence[str]) -> bool:
        text = json.dumps(turn, ensure_ascii=False, separators=(",", ":"))
        return len(text.encode(errors="replace")) <= _MESSAGE

    return shortened(record, fits)[0]


def _longest(disturbances: Sequence[Record]) -> list[Record]:
    longest = sorted(disturbances, key=lambda each: -each["duration_ms"])[:_MOST_DISTURBANCES]
    return sorted(longest, key=lambda each: each["at_ms"])


def _beginning(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


_CUTS: Sequence[tuple[str, Callable[[Any], Any]]] = (
    ("stages", lambda stages: {**stages, "spans": []}),
    ("render_freezes", _longest),
    ("speech_gaps", _longest),
    *((field, _beginning) for field in CONTENT),
)
"""What can be long in a record, in the order in which it is given up."""
