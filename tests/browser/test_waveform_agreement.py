"""Time to first audio in Chromium, as the server's record has it, against a recording of the same call.

The recording holds what was said and what was heard, in step, and knows nothing of RTP or reports. It also
says, in the client's place, when the user's speech ended. Between what a browser knows and the recording lies
the sound card, which no page can see. What it takes is the same for all that a page plays, and so measured
with tones, of which the page says when it means them to be heard.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.async_api import Page, Playwright, expect

from pipeline.clock import MonotonicClock
from pipeline.events import WIRE_RATE, Pcm
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.waveform.edges import Sound, sounds
from tests.browser.waveform.sound_card import Recording, SoundCard, missing, sound_card
from tests.serving import serving
from tests.speech import silence, spoken, write_wav

_log = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.models,
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.proof,
]

QUESTIONS = (
    "What is the largest planet?",
    "How many days are in a week?",
    "Where do penguins live?",
    "Who invented the telephone?",
    "Do fish ever sleep?",
    "Why are flamingos pink?",
    "How far away is the moon?",
    "What does a lawyer do all day?",
    "What makes bread rise in the oven?",
    "What is the capital of Portugal?",
    "Do you like rainy weather?",
    "Why do people yawn when they are tired?",
)

SCRIPT = (Path(__file__).parent / "waveform" / "tones.js").read_text()

TONES = 3
"""Each time."""

BETWEEN = 2
"""Questions from one time to the next."""

PAUSE = 1.0
"""Seconds of silence between what is said."""

STRUCK = 300
"""Of a tone that sets in at once and the silence before it."""

TURN_TIMEOUT_S = 60.0

MEDIAN_MS, P95_MS = 15.0, 30.0
"""How far the record may be from the recording."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question whose speech ended at `end`, seconds of the recording, and what the server made of it."""

    end: float
    records: Sequence[dict[str, Any]]


@pytest.fixture
def installed() -> None:
    absent = missing()
    if absent and os.geteuid() != 0 and "CI" not in os.environ:
        pytest.skip(f"{absent[0]} is not installed (apt-get install pulseaudio pulseaudio-utils)")
    assert not absent, "make tools installs it"


async def test_time_to_first_audio_is_that_of_the_waveform(
    chromium: Path, installed: None, playwright_driver: Playwright, tmp_path: Path
) -> None:
    settings = {"llm.sampling.max_output_tokens": 24, "agent.greeting": ""}
    async with sound_card(tmp_path) as card:
        with serving(settings) as served:
            async with browsing(playwright_driver, card) as page, card.recording() as recording:
                caller = Caller(page, card, recording, tmp_path)
                await caller.call(served.url)
                meant, turns = [await caller.tones()], []
                for first in range(0, len(QUESTIONS), BETWEEN):
                    turns += [await caller.ask(text) for text in QUESTIONS[first : first + BETWEEN]]
                    meant.append(await caller.tones())
    _, played = recording.sides
    heard = sounds(played, PAUSE)
    taken = np.median([[1000 * (at - _struck(played, heard, at)) for at in times] for times in meant], axis=1)
    constant = float(np.median(taken))
    _log.info("tones, meant less heard, ms: %.1f; each time: %s", constant, taken.round(1))
    waits, records, witnesses = [], [], []
    for turn in turns:
        begun = next((sound.start for sound in heard if sound.end > turn.end), None)
        if begun is None or begun < turn.end or not _whole(turn):
            continue
        waits.append(1000 * (begun - turn.end))
        records.append(turn.records[0]["time_to_first_audio_ms"] - waits[-1] - constant)
        if turn.records[0]["first_audio_witness_ms"] is not None:
            witnesses.append(turn.records[0]["first_audio_witness_ms"] - waits[-1] - constant)
    _log.info("time to first audio, ms: %s", spread(waits))
    _log.info("record less waveform, ms: %s", spread(records))
    _log.info("energy gate less waveform, ms: %s", spread(witnesses))
    assert len(records) >= 10
    assert abs(np.median(records)) <= MEDIAN_MS
    assert np.percentile(np.abs(records), 95) <= P95_MS


@asynccontextmanager
async def browsing(driver: Playwright, card: SoundCard) -> AsyncIterator[Page]:
    """Chromium with that sound card's devices, and no others."""
    real = [flag for flag in FLAGS if flag != "--use-fake-device-for-media-stream"]
    browser = await driver.chromium.launch(
        executable_path=CHROMIUM,
        args=[*real, "--use-fake-ui-for-media-stream"],
        env={**os.environ, **card.environment},
        ignore_default_args=["--mute-audio"],
    )
    try:
        context = await browser.new_context(permissions=["microphone"])
        yield await context.new_page()
    finally:
        await browser.close()


class Caller:
    """Somebody who talks into the page, and whose every word and every sound heard is recorded."""

    def __init__(self, page: Page, card: SoundCard, recording: Recording, folder: Path) -> None:
        self._page = page
        self._card = card
        self._recording = recording
        self._folder = folder
        self._measured: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._ahead = 0.0
        """The page's clock less the machine's."""

    async def call(self, url: str) -> None:
        await self._page.expose_function("measured", self._receive)
        await self._page.add_init_script(SCRIPT)
        await self._page.goto(url)
        await self._page.get_by_role("button", name="Start talking").click()
        await expect(self._page.locator("#frame")).to_have_attribute("data-picture", "live", timeout=20_000)
        self._ahead = await self._compared()

    @property
    def _tie(self) -> float:
        """The page's clock less the recording's, but for the sound card."""
        return self._recording.began + self._ahead

    async def tones(self) -> list[float]:
        """When the page means tones to be heard that it plays, seconds of the recording."""
        waits = np.random.default_rng(1).uniform(PAUSE + 0.3, PAUSE + 0.5, TONES).tolist()
        meant: list[float] = await self._page.evaluate("(waits) => playTones(waits)", waits)
        tie = self._tie
        return [at - tie for at in meant]

    async def ask(self, text: str) -> Turn:
        """Ask, say when the question ended, and hear the reply out."""
        file = write_wav(self._folder / "question.wav", np.concatenate([silence(PAUSE), spoken(text)]))
        await self._card.say(file)
        said, _ = self._recording.sides
        end = sounds(said, PAUSE)[-1].end
        await self._page.evaluate("(at) => speechEnded(at)", end + self._tie)
        async with asyncio.timeout(TURN_TIMEOUT_S):
            records = [await self._measured.get()]
        while not self._measured.empty():
            records.append(self._measured.get_nowait())
        return Turn(end, records)

    def _receive(self, text: str) -> None:
        self._measured.put_nowait(json.loads(text)["data"]["record"])

    async def _compared(self) -> float:
        """The page's clock less the machine's, by the quickest of many answers."""
        clock = MonotonicClock()
        answers = []
        for _ in range(40):
            asked = clock.now()
            shown = await self._page.evaluate("pageNow()")
            answered = clock.now()
            answers.append((answered - asked, shown - (asked + answered) / 2))
        return min(answers)[1]


def _whole(turn: Turn) -> bool:
    """Answered once, as a whole, and nothing is unknown that is to be compared."""
    record = turn.records[0]
    known = record["time_to_first_audio_ms"] is not None and record["speech_end_by"] == "client"
    return len(turn.records) == 1 and known and record["failed"] is None


def _struck(pcm: Pcm, heard: Sequence[Sound], meant: float) -> float:
    """When a tone's first sample was played: a frame only says in which 10 ms that was."""
    tone = min(heard, key=lambda sound: abs(sound.start - meant))
    start = round(tone.start * WIRE_RATE)
    loud = np.flatnonzero(np.abs(pcm[start : start + WIRE_RATE // 10].astype(np.int32)) > STRUCK)
    return (start + int(loud[0])) / WIRE_RATE


def spread(values: Sequence[float]) -> str:
    if not values:
        return "none"
    p5, median, p95 = np.percentile(values, [5, 50, 95])
    return f"median {median:.1f}, p5 {p5:.1f}, p95 {p95:.1f}, n {len(values)}"
