"""`visavis talk`: hold a conversation without a browser, and keep all of it."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pipeline.clock import Clock, MonotonicClock
from pipeline.errors import BadInputError
from pipeline.webrtc.tuning.loopback import offer_loopback
from services.lab import measures, recording, server_address, speech_file
from services.lab.microphone import Utterance
from services.lab.own_server import own_server
from services.lab.speech_file import SpeechFile
from services.lab.synthetic_user import CallError, SyntheticUser, Told, calling

REPLY_TIMEOUT = 60.0
"""Seconds after the end of a question within which the turn must be over."""

QUIET_TIMEOUT = 60.0
"""Seconds within which the agent must have come to the end of what it says."""

_TAIL = 0.5
"""Seconds recorded after the last reply."""


async def run(
    config_file: Path | None, audio: Sequence[Path], url: str | None, out: Path, video: bool
) -> int:
    """Speak each file as one turn; write reply.wav, captions.vtt, turns.json, with `video` reply.mp4.

    Returns 0 when every question was answered, 1 when one was not. Raises BadInputError before
    anything is started, CallError, ServerStartError.
    """
    if url is not None:
        url = server_address.checked(url)
    console = Console(stderr=True, highlight=False)
    files = [speech_file.load(path) for path in audio]
    try:
        await asyncio.to_thread(_make_room, out)
    except OSError as error:
        raise BadInputError(f"--out {out}: cannot be written to ({error.strerror})") from error
    offer_loopback()
    clock = MonotonicClock()
    async with contextlib.AsyncExitStack() as scope:
        if url is None:
            with console.status("Starting a server (the first time on a machine takes longer) …"):
                url = await scope.enter_async_context(own_server(config_file))
        user = await scope.enter_async_context(calling(url, clock, keep_pictures=video))
        start = clock.now()
        records: list[dict[str, Any]] = []
        try:
            await _until_quiet(user)
            start = clock.now()
            await _converse(user, files, clock, console, records)
            await clock.sleep_until(clock.now() + _TAIL)
            await measures.until_measured(user, records)
        finally:
            # Also when the call broke off: what there is is worth keeping.
            end = clock.now()
            await asyncio.to_thread(_save, user, records, start, end, out)
    if video:
        with console.status("Encoding the video …"):
            pcm = recording.sound(user.sound.heard, start, end)
            await asyncio.to_thread(recording.write_mp4, out / "reply.mp4", pcm, user.pictures, start)
    _summarise(console, records, out)
    return 1 if any(record["failed"] is not None for record in records) else 0


def _make_room(out: Path) -> None:
    """Find out before the conversation, not after it, that its results cannot be kept."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("turns.json", "reply.wav", "captions.vtt"):
        (out / name).open("ab").close()


def _save(
    user: SyntheticUser, records: Sequence[Mapping[str, Any]], start: float, end: float, out: Path
) -> None:
    recording.write_wav(out / "reply.wav", recording.sound(user.sound.heard, start, end))
    recording.write_vtt(out / "captions.vtt", recording.captions(user.told, start))
    records = measures.with_server_timeline(records, user.told)
    (out / "turns.json").write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", "utf-8")


async def _converse(
    user: SyntheticUser,
    files: Sequence[SpeechFile],
    clock: Clock,
    console: Console,
    records: list[dict[str, Any]],
) -> None:
    for number, file in enumerate(files, 1):
        console.print(f"[{number}/{len(files)}] {file.path.name}: speaking", markup=False)
        told_before = len(user.told)
        utterance = user.say(file)
        answered = False
        try:
            await user.finish(utterance)
            assert utterance.end is not None
            answered = await _until_answered(user, told_before, utterance.end)
            await _until_quiet(user)
        finally:
            added = _records(user, told_before, file, utterance, clock.now(), answered=answered)
            records += added
        reasons = iter([told.data["error"] for told in user.told[told_before:] if told.type == "error"])
        for record in added:
            reason = next(reasons, "") if record["failed"] else ""
            console.print(_line(record, reason), markup=False)


def _records(
    user: SyntheticUser, since: int, file: SpeechFile, utterance: Utterance, now: float, *, answered: bool
) -> list[dict[str, Any]]:
    """One for each turn that the server made of a question, and one more when none of them answers it."""
    name = file.path.name
    turns = [told.data["record"] for told in user.told[since:] if told.type == "visavis.turn"]
    records = [measures.joined(turn, name, utterance, user.sound.heard, own=False) for turn in turns]
    if answered:
        records[-1] = measures.joined(turns[-1], name, utterance, user.sound.heard, own=True)
    else:
        records.append(measures.unanswered(name, utterance, now))
    return records


async def _until_answered(user: SyntheticUser, since: int, speech_end: float) -> bool:
    """Wait for the end of the turn that answers what was just said."""

    def over(told: Told) -> bool:
        return told.type == "visavis.turn" and told.at > speech_end and not told.data["record"]["interrupted"]

    try:
        async with asyncio.timeout(REPLY_TIMEOUT):
            await user.until(over, since=since)
    except TimeoutError:
        return False
    return True


async def _until_quiet(user: SyntheticUser) -> None:
    """Wait until the agent has nothing to say and is not about to. Raises CallError."""

    def idle(told: Told) -> bool:
        return told.type == "visavis.state" and told.data["agent"] == "idle"

    states = [index for index, told in enumerate(user.told) if told.type == "visavis.state"]
    if not states:
        # A greeting begins with the call, if there is one.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await user.until(lambda told: told.type == "visavis.state")
        states = [index for index, told in enumerate(user.told) if told.type == "visavis.state"]
    if not states:
        return
    try:
        async with asyncio.timeout(QUIET_TIMEOUT):
            await user.until(idle, since=states[-1])
    except TimeoutError as error:
        raise CallError(f"the agent was still not done after {QUIET_TIMEOUT:g} s") from error


def _line(record: Mapping[str, Any], reason: str) -> str:
    """What was heard and answered; `reason`: why the turn failed, as the server told its caller."""
    heard = record["user_text"] or "(nothing)"
    ttfa = record["time_to_first_audio_ms"]
    wait = f"{ttfa:.0f} ms" if ttfa is not None else record["failed"] or "interrupted"
    answer = " ".join(filter(None, (record["reply_text"], reason)))
    return f"      you: {heard}\n      {wait:>9}: {answer}"


def _summarise(console: Console, records: Sequence[Mapping[str, Any]], out: Path) -> None:
    waits = sorted(r["time_to_first_audio_ms"] for r in records if r["time_to_first_audio_ms"] is not None)
    if waits:
        median, p90 = waits[len(waits) // 2], waits[min(len(waits) - 1, int(len(waits) * 0.9))]
        console.print(
            f"time to first audio: median {median:.0f} ms, p90 {p90:.0f} ms, n {len(waits)} "
            f"(a playout model of {measures.PLAYOUT_MS:.0f} ms included)"
        )
    premature = sum(bool(record["premature"]) for record in records)
    failed = sum(record["failed"] is not None for record in records)
    console.print(f"turns: {len(records)}, failed {failed}, premature {premature}")
    if failed:
        console.print("`visavis doctor` says what is wrong here.")
    click.echo(str(out / "turns.json"))
