"""`bargein`: callers who speak over a reply, and callers who only cough or hum.

Replies are asked for by text, to save time, and each is disturbed once, at a moment drawn at random.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.clock import Clock
from pipeline.events import Pcm
from services.lab import exchange
from services.lab.bench import interruption, listener, noises, quality, tables
from services.lab.bench.sitting import Benchmark, Row, Server, Sitting, Summary
from services.lab.intervals import spread
from services.lab.recording import write_wav
from services.lab.studio.speech import Spoken, corpus
from services.lab.studio.words import errors, words
from services.lab.synthetic_user import SyntheticUser, Told, calling

REPLY_BEGINS = 20.0
"""Seconds within which a typed question's reply must sound."""

LATEST = 6.0
"""Seconds of reply within which it is disturbed."""

NEAR = 1
"""Words by which `heard_text` may differ from what an ear hears."""

LONG_REPLIES = {
    "agent.instructions": "You are a storyteller. You answer at length, in many sentences.",
    "agent.examples": [],
    "llm.sampling.max_output_tokens": 160,
}


@dataclass(frozen=True, slots=True)
class Trial:
    """What is said or made over a reply, and how many seconds into it."""

    kind: str
    """question, cough or mm-hm."""
    spoken: Spoken
    delay: float


def benchmark(questions: int, coughs: int, hums: int) -> Benchmark:
    """So many real and false interruptions, shuffled, in one call."""

    async def measure(sitting: Sitting) -> None:
        async with sitting.studio() as studio:
            spoken = await studio.questions(questions)
        trials = _shuffled(spoken, coughs, hums, sitting.rng())
        kept: list[tuple[Row, Pcm]] = []
        try:
            async with sitting.server() as server:
                await _call(sitting, server, trials, kept)
        finally:
            _listen(kept, sitting.options.out)

    return Benchmark("bargein", measure, summarise, LONG_REPLIES)


def _shuffled(spoken: Sequence[Spoken], coughs: int, hums: int, rng: np.random.Generator) -> list[Trial]:
    sounds = [("question", each) for each in spoken]
    sounds += [("cough", Spoken(noises.cough(k), "(cough)", "synthetic", "cough")) for k in range(coughs)]
    sounds += [("mm-hm", Spoken(noises.mm_hm(k), "(mm-hm)", "synthetic", "mm-hm")) for k in range(hums)]
    order = rng.permutation(len(sounds))
    return [Trial(kind, each, float(rng.uniform(0, LATEST))) for kind, each in (sounds[k] for k in order)]


async def _call(
    sitting: Sitting, server: Server, trials: Sequence[Trial], kept: list[tuple[Row, Pcm]]
) -> None:
    stories = corpus("stories")
    async with calling(server.url, sitting.clock) as user:
        await exchange.until_settled(user, sitting.clock)
        for number, trial in enumerate(trials, 1):
            row = await _disturb(user, stories[number % len(stories)], trial, sitting.clock, kept)
            row |= quality.used(server, sitting.clock.now())
            sitting.rows.append(row)
            sitting.say(f"[{number}/{len(trials)}] {trial.kind} at {trial.delay:.1f} s: {_told(row)}")


async def _disturb(
    user: SyntheticUser, story: str, trial: Trial, clock: Clock, kept: list[tuple[Row, Pcm]]
) -> Row:
    user.sound.heard = []
    since = len(user.told)
    row: Row = {"trial": trial.kind, "said": trial.spoken.text, "delay_s": trial.delay, "story": story}
    user.type(story)
    try:
        async with asyncio.timeout(REPLY_BEGINS):
            begun = await user.until(lambda told: told.type == "bot-started-speaking", since=since)
    except TimeoutError:
        await exchange.until_settled(user, clock)
        return {**row, "outcome": "no reply"}
    await clock.sleep_until(begun.at + trial.delay)
    if _records(user, since):
        await exchange.until_settled(user, clock)
        return {**row, "outcome": "the reply was over"}
    utterance = user.say(trial.spoken.file)
    await user.finish(utterance)
    assert utterance.onset is not None
    assert utterance.end is not None
    if trial.kind == "question":
        await exchange.until_answered(user, utterance, since)
    await exchange.until_settled(user, clock)
    records = _records(user, since)
    if not records or records[0].at < utterance.onset:
        return {**row, "outcome": "the reply was over"}
    record = records[0].data["record"]
    row |= {"outcome": "disturbed", "record": record, "turns": len(records)}
    if trial.kind != "question":
        row["lost"] = interruption.lost(record, len(records))
        kept.append((row, interruption.excerpt(user.sound.heard, begun.at - 0.1, records[0].at)))
        return row
    found = interruption.stop(user.sound.heard, begun.at - 0.1, utterance.onset, utterance.end, records[0].at)
    if not record["interrupted"] and (found.last is None or found.last < utterance.end):
        return {**row, "outcome": "the reply was over"}  # it ended by itself, under the caller's words
    row |= {"stop_ms": found.ms, "interrupted": record["interrupted"]}
    if record["interrupted"] and found.last is not None:
        kept.append((row, interruption.excerpt(user.sound.heard, begun.at - 0.1, found.last)))
    return row


def _records(user: SyntheticUser, since: int) -> list[Told]:
    return [told for told in user.told[since:] if told.type == "visavis.turn"]


def _listen(kept: Sequence[tuple[Row, Pcm]], out: Path) -> None:
    """Add to each row what an ear makes of the reply, up to its cut; keep recordings that differ there."""
    heard = listener.transcripts([pcm for _, pcm in kept]) if kept else []
    for number, ((row, pcm), transcript) in enumerate(zip(kept, heard, strict=True)):
        record, row["ear"] = row["record"], transcript
        if row["trial"] != "question":
            row["misheard"] = errors(words(record["reply_text"] or ""), words(transcript))
            continue
        by = interruption.mismatch(record["reply_text"] or "", record["heard_text"] or "", transcript)
        row["words_apart"] = by
        if abs(by) > NEAR:
            write_wav(out / f"mismatch-{number:02d}.wav", pcm)


def _told(row: Row) -> str:
    if row["outcome"] != "disturbed":
        return str(row["outcome"])
    if row["trial"] != "question":
        return "; ".join(row["lost"]) or "resumed, nothing lost"
    if not row["interrupted"]:
        return "NOT interrupted"
    return "not talking at the onset" if row["stop_ms"] is None else f"silent after {row['stop_ms']:.0f} ms"


def summarise(sitting: Sitting) -> Summary:
    """Times to silence, resumptions, and how far what was heard is known."""
    disturbed = [row for row in sitting.rows if row["outcome"] == "disturbed"]
    real = [row for row in disturbed if row["trial"] == "question"]
    stops = [row["stop_ms"] for row in real if row["stop_ms"] is not None]
    apart = [row for row in real if "words_apart" in row]
    wrong = [row for row in apart if abs(row["words_apart"]) > NEAR]
    false = {kind: [row for row in disturbed if row["trial"] == kind] for kind in ("cough", "mm-hm")}
    kept_on = {
        kind: {
            "trials": len(rows),
            "lost": sum(bool(row["lost"]) for row in rows),
            "misheard_percent": _misheard(rows),
        }
        for kind, rows in false.items()
    }
    results: dict[str, Any] = {
        "barge_in_stop_ms": spread(stops),
        "interruptions": len(real),
        "not_interrupted": sum(not row["interrupted"] for row in real),
        "not_talking_at_onset": sum(row["stop_ms"] is None for row in real),
        "undisturbed": len(sitting.rows) - len(disturbed),
        "heard_text": {"compared": len(apart), "differ_by_more_than_a_word": len(wrong)},
        "false": kept_on,
    }
    shown = [
        tables.spreads("barge-in: user's onset to the reply's last audible sample", {"stop": spread(stops)}),
        tables.plain(
            "false interruptions",
            ("sound", "trials", "not resumed whole", "words misheard by the ear, %"),
            [(kind, *found.values()) for kind, found in kept_on.items()],
        ),
    ]
    remarks = [
        f"{row['trial']} at {row['delay_s']:.1f} s: {'; '.join(row['lost'])}"
        for rows in false.values()
        for row in rows
        if row["lost"]
    ]
    remarks += [
        f"heard_text ends {row['words_apart']:+d} words from the ear: {row['record']['heard_text']!r}, "
        f"ear {row['ear']!r}"
        for row in wrong
    ]
    remarks.append(
        f"interruptions {len(real)}, of them not talking at the onset {results['not_talking_at_onset']}, "
        f"not interrupted {results['not_interrupted']}; heard_text compared {len(apart)}, "
        f"apart by more than {NEAR} word {len(wrong)}; replies that were over before {results['undisturbed']}"
    )
    return Summary(results, {"barge_in_stop_ms": stops}, shown, remarks)


def _misheard(rows: Sequence[Row]) -> float | None:
    """Of the words of resumed replies, in percent; of whole replies it is the ear's own error rate."""
    said = sum(len(words(row["record"]["reply_text"] or "")) for row in rows if "misheard" in row)
    wrong = sum(row["misheard"] for row in rows if "misheard" in row)
    return round(100 * wrong / said, 1) if said else None
