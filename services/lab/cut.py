"""Was the caller cut off: did the server take a pause, or anything else before the end, for the end?"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from services.lab.arrivals import Heard
from services.lab.exchange import Exchange
from services.lab.heard_sound import HeardSound
from services.lab.intervals import wilson
from services.lab.studio.words import matched, words

BINS = ((300, 450), (450, 600), (600, 750), (750, 900))
"""Milliseconds of pause, the last one up to and with its end."""

_HALF = 0.5
"""Share of a part's words below which the part is missing: recognisers mishear some of any sentence."""

_ENOUGH = 2
"""Words that a part must have for that: of one, being misheard and being lost look the same."""


def reasons(exchange: Exchange, heard: Sequence[Heard]) -> list[str]:
    """Why an utterance counts as cut, empty when it does not."""
    utterance = exchange.utterance
    assert utterance.onset is not None
    assert utterance.end is not None
    found = []
    early = audible_from(heard, utterance.onset, utterance.end)
    if early is not None:
        found.append(f"a reply was audible {(utterance.end - early) * 1000:.0f} ms before the end")
    if len(exchange.records) > 1:
        found.append(f"{len(exchange.records)} turns")
    if exchange.answered and exchange.spoken.pause is not None:
        pause = exchange.spoken.pause
        text = exchange.records[-1]["user_text"] or ""
        late = None if exchange.began is None else exchange.began > utterance.onset + pause.at
        shorter = len(words(text)) < len(pause.before) + len(pause.after)
        # A word too short for an onset is kept for what follows, and then nothing is lost.
        if late and shorter:
            found.append("the turn began after the pause")
        lacks = missing(pause.before, pause.after, text)
        # A turn that began before the pause was heard from there on, and one with as many words as were said
        # to its end; what it lacks of that was misheard.
        lost = {Side.BEFORE: late is not False, Side.AFTER: shorter}
        found += [side for side in lacks if lost[side]]
    return found


def audible_from(heard: Sequence[Heard], start: float, end: float) -> float | None:
    """When the first sound between two moments arrived, if there was any."""
    sound = HeardSound(heard, start, end)
    arrivals = [sound.arrival(run.start) for run in sound.runs()]
    return arrivals[0] if arrivals and arrivals[0] < end else None


class Side(StrEnum):
    """Of the pause, what is not in the transcript."""

    BEFORE = "the words before the pause are missing"
    AFTER = "the words after the pause are missing"


def missing(before: Sequence[str], after: Sequence[str], user_text: str) -> list[Side]:
    """Which side of the pause the transcript lacks, when it has the other: one that has neither was
    misheard, which is another fault."""
    sides = words(" ".join(before)), words(" ".join(after))
    found = matched([*sides[0], *sides[1]], words(user_text))
    first, second = found[: len(sides[0])], found[len(sides[0]) :]
    shares = [sum(side) / max(1, len(side)) for side in (first, second)]
    if len(first) >= _ENOUGH and shares[0] < _HALF <= shares[1]:
        return [Side.BEFORE]
    if len(second) >= _ENOUGH and shares[1] < _HALF <= shares[0]:
        return [Side.AFTER]
    return []


def rates(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Cut rates of rows with a pause, with Wilson's 95 % interval, altogether, by kind and by length."""
    paused = [row for row in rows if row["pause_ms"] is not None]
    groups = {"all": paused}
    groups |= {kind: [row for row in paused if row["kind"] == kind] for kind in ("synthetic", "human")}
    groups["inside a clause"] = [row for row in paused if row["pause_inside"]]
    for low, high in BINS:
        last = high == BINS[-1][1]
        groups[f"{low}-{high} ms"] = [
            row for row in paused if low <= row["pause_ms"] < high or (last and row["pause_ms"] == high)
        ]
    return {name: _rate(group) for name, group in groups.items() if group}


def _rate(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    cut = sum(bool(row["cut"]) for row in rows)
    share = wilson(cut, len(rows))
    return {
        "cut": cut,
        "of": len(rows),
        **{
            f"{name}_percent": round(100 * number, 1)
            for name, number in (("rate", share.value), ("low", share.low), ("high", share.high))
        },
    }
