"""`peer`: another open voice bot and ours, called by the same independent caller with the same files.

The folder holds `peer_pipecat.py` and `ear.py`; the bot needs an environment of its own, and the caller
runs on our interpreter, whose aiortc it uses. One server runs at a time; sides alternate.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import BadInputError, VisavisError
from services.lab import recording
from services.lab.bench import tables
from services.lab.bench.sitting import Benchmark, Sitting, Summary
from services.lab.intervals import ratio, spread
from services.lab.machine import ServerProcesses
from services.lab.studio.speech import Spoken

_NO_ANSWER = 1
"""Exit code of a caller that wrote its report, but of no turn that counts."""

OURS, PEER = "ours", "peer"


class PeerError(VisavisError):
    """The peer or the independent caller failed."""

    code = "peer_failed"


def benchmark(python: Path, folder: Path, turns: int, rounds: int, arguments: tuple[str, ...]) -> Benchmark:
    """`rounds` times `turns` questions to each side; `arguments` go to the peer."""
    bot, caller = folder / "peer_pipecat.py", folder / "ear.py"
    for path, option in ((python, "--peer-python"), (bot, "--peer-folder"), (caller, "--peer-folder")):
        if not path.is_file():
            raise BadInputError(f"{option}: {path} does not exist")

    async def measure(sitting: Sitting) -> None:
        async with sitting.studio() as studio:
            spoken = await studio.questions(turns)
            for number in range(rounds):
                order = sitting.rng().permutation(len(spoken))
                files = _written([spoken[k] for k in order], studio.folder)
                for side in (PEER, OURS) if number % 2 == 0 else (OURS, PEER):
                    sitting.say(f"── round {number + 1}: {side}")
                    report = sitting.options.out / f"ear-{number + 1}-{side}.json"
                    if side == PEER:
                        async with _bot(python, bot, arguments) as url:
                            await _call(caller, url, files, report)
                    else:
                        async with sitting.server(side) as server:
                            await _call(caller, server.url, files, report)
                    _take(sitting, side, number, report)

    return Benchmark("peer", measure, summarise)


def _written(spoken: list[Spoken], folder: Path) -> list[Path]:
    paths = []
    for number, each in enumerate(spoken):
        paths.append(folder / f"ask-{number:03d}.wav")
        recording.write_wav(paths[-1], each.file.pcm)
    return paths


@asynccontextmanager
async def _bot(python: Path, script: Path, arguments: tuple[str, ...]) -> AsyncIterator[str]:
    """The peer, on a free port; yields its address once it takes calls."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        str(python), str(script), "--port", str(port), *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        while not (line := (await process.stdout.readline()).decode()).startswith("READY"):
            if not line:
                raise PeerError(f"the peer did not start (exit code {await process.wait()})")
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _call(caller: Path, url: str, files: list[Path], report: Path) -> None:
    pid = ServerProcesses(url).pid
    watched = [] if pid is None else ["--pids", str(pid)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(caller), "--url", url, "--turns", str(len(files)), "--json", str(report),
        *watched, *map(str, files), stdout=sys.stderr, start_new_session=True,
    )  # fmt: skip
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        process.terminate()  # it reports what there is
        await process.wait()
        raise
    if code not in (0, _NO_ANSWER):
        raise PeerError(f"the independent caller failed (exit code {code})")


def _take(sitting: Sitting, side: str, number: int, report: Path) -> None:
    for turn in json.loads(report.read_text("utf-8"))["turns"]:
        waited = turn.get("mouth_to_ear")
        sitting.rows.append(
            {
                "side": side,
                "round": number + 1,
                "file": turn["file"],
                "understood": turn.get("asr_text"),
                "premature": bool(turn.get("premature")),
                "answered": bool(turn.get("answered")),
                "mouth_to_ear_ms": None if waited is None else waited * 1000,
            }
        )


def summarise(sitting: Sitting) -> Summary:
    """Both sides' waits, by RTP arrival without a playout model, and the ratios ours to the peer's."""
    waits = {
        side: [
            row["mouth_to_ear_ms"]
            for row in sitting.rows
            if row["side"] == side and not row["premature"] and row["mouth_to_ear_ms"] is not None
        ]
        for side in (OURS, PEER)
    }
    ratios: dict[str, Any] = {}
    if waits[OURS] and waits[PEER]:
        ratios = {
            "median": ratio(waits[OURS], waits[PEER]).rounded(3),
            "p90": ratio(waits[OURS], waits[PEER], 90).rounded(3),
        }
    spreads = {side: spread(each) for side, each in waits.items()}
    counts = {
        side: {
            "premature": sum(row["premature"] for row in sitting.rows if row["side"] == side),
            "unanswered": sum(not row["answered"] for row in sitting.rows if row["side"] == side),
        }
        for side in waits
    }
    shown = [
        tables.spreads("mouth to ear, RTP arrival, no playout model", spreads),
        tables.plain(
            "ours : peer", ("of", "ratio", "95 % low", "high"), [(k, *v.values()) for k, v in ratios.items()]
        ),
    ]
    results = {"mouth_to_ear_ms": spreads, "ratios": ratios, "counts": counts}
    return Summary(results, {f"mouth_to_ear_ms, {side}": each for side, each in waits.items()}, shown)
