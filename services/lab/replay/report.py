"""A replay beside its call, for people to read."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich.console import Console
from rich.table import Table

from services.lab.replay.answers import Missing
from services.lab.replay.course import Course, Moment, Turn, first_difference

_COLUMNS = (
    "turn",
    "",
    "the user said",
    "turn ends s",
    "reply s",
    "over s",
    "revision",
    "outcome",
    "shares ms",
)


def show(
    console: Console, recorded: Course, replayed: Course, missing: Sequence[Missing], began: float
) -> bool:
    """Whether the replay decided as the call did."""
    console.print(_table(recorded, replayed))
    told: set[str] = set()
    for each in missing:
        question = each.question
        line = f"{question.asked.value.replace('_', ' ')}, asked about {question.about}"
        if line not in told:
            console.print(f"not on the tape, at {each.at - began:.2f} s: {line}")
        told.add(line)
    difference = first_difference(recorded, replayed)
    if difference is None:
        turns, moments = len(recorded.turns), len(recorded.moments)
        console.print(f"The replay decided as the call did: {turns} turns, {moments} decisions.")
        return True
    ours, theirs = difference
    at = min(moment.at for moment in difference if moment is not None)
    console.print(f"The replay differs from {at:.2f} s on:")
    console.print(f"  recorded: {_words(ours)}")
    console.print(f"  replayed: {_words(theirs)}")
    return False


def changes(before: Mapping[str, Any], after: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The settings that differ, with both values."""
    for key, value in after.items():
        name, old = above + key, before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            yield from changes(old, value, f"{name}.")
        elif value != old:
            yield f"{name} {old} → {value}"


def _words(moment: Moment | None) -> str:
    return "nothing more" if moment is None else f"{moment.what}, at {moment.at:.2f} s"


def _table(recorded: Course, replayed: Course) -> Table:
    table = Table(*_COLUMNS)
    for number, pair in enumerate(zip_longest(recorded.turns, replayed.turns), 1):
        for name, turn in zip(("recorded", "replayed"), pair, strict=True):
            table.add_row(str(number), name, *(_cells(turn) if turn else ["no such turn"]))
    return table


def _cells(turn: Turn) -> Sequence[str]:
    record = turn.record
    outcome = record["failed"] or ("interrupted" if record["interrupted"] else "heard")
    shares = record["stages"]["shares_ms"]
    return [
        record["user_text"],
        *("" if at is None else f"{at:.2f}" for at in (turn.committed, turn.replied, turn.over)),
        f"{record['committed_revision']}",
        f"{outcome}, {record['cancels']} dropped" if record["cancels"] else outcome,
        ", ".join(f"{stage} {share:.0f}" for stage, share in shares.items() if share),
    ]
