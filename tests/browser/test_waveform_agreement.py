"""Time to first audio in Chromium, as the server's record has it, against a recording of the same call.

The recording holds what was said and what was heard, in step, and knows nothing of clocks, RTP or reports.
Between the two lies what the sound card takes in both directions, which no page can see. It is the same for
whatever the page plays, and so measured with tones, which the page plays in answer to tones.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.async_api import BrowserContext, Page, Playwright, Route, expect

from pipeline.events import WIRE_RATE, Pcm
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.watch import until
from tests.browser.waveform.edges import Sound, sounds
from tests.browser.waveform.sound_card import SoundCard, missing, sides, sound_card
from tests.serving import serving
from tests.speech import silence, spoken, write_wav

pytestmark = [pytest.mark.browser, pytest.mark.models, pytest.mark.engine, pytest.mark.slow]

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

HERE = Path(__file__).parent / "waveform"
EARS = (HERE / "ears.js").read_text()

TONES = 8
PAUSE = 1.0
"""Seconds of silence between what is said."""

TURN_TIMEOUT_S = 60.0

MEDIAN_MS, P95_MS = 15.0, 30.0
"""How far the record may be from the recording."""

Line = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """ms of one turn: by the record, by the page's energy gate, and by the recording."""

    recorded: float
    witnessed: float | None
    heard: float


@pytest.fixture
def line(request: pytest.FixtureRequest) -> Line:
    """Prints, whether the test passes or not: these are figures to be quoted."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    return lambda text: reporter.write_line(text) if reporter is not None else None


@pytest.fixture
def installed() -> None:
    absent = missing()
    if absent and os.geteuid() != 0 and "CI" not in os.environ:
        pytest.skip(f"{absent[0]} is not installed (apt-get install pulseaudio pulseaudio-utils)")
    assert not absent, "make tools installs it"


async def test_time_to_first_audio_is_that_of_the_waveform(
    installed: None, playwright_driver: Playwright, tmp_path: Path, line: Line
) -> None:
    recording = tmp_path / "both.raw"
    settings = {"llm.sampling.max_output_tokens": 24, "agent.greeting": ""}
    async with sound_card(tmp_path) as card:
        with serving(settings) as served:
            async with browsing(playwright_driver, card) as context, card.recording(recording):
                page, told = await in_a_call(context, served.url)
                waits = await answered_tones(page, card, tmp_path)
                turns = [await asked(card, tmp_path, text, told) for text in QUESTIONS]
                waits += await answered_tones(page, card, tmp_path)
    said, played = (sounds(side, PAUSE) for side in sides(recording))
    assert len(said) == 2 * TONES + len(QUESTIONS)
    tones, questions = [*said[:TONES], *said[-TONES:]], said[TONES:-TONES]
    loops = [wait - (_after(played, tone) - tone.end) * 1000 for wait, tone in zip(waits, tones, strict=True)]
    constant = float(np.median(loops))
    compared = list(_compared(turns, questions, played))
    line("")
    line(f"sound card, there and back: {spread([-loop for loop in loops])}; first half, second half:")
    line(
        f"  {np.median(loops[:TONES]):.1f}, {np.median(loops[TONES:]):.1f} ms; not compared: "
        f"{len(QUESTIONS) - len(compared)} of {len(QUESTIONS)}"
    )
    errors = [turn.recorded - turn.heard - constant for turn in compared]
    gate = [turn.witnessed - turn.heard - constant for turn in compared if turn.witnessed is not None]
    line(f"time to first audio: {spread([turn.heard for turn in compared])}")
    line(f"record less waveform: {spread(errors)}")
    line(f"energy gate less waveform: {spread(gate)}")
    assert len(compared) >= 10
    assert abs(np.median(errors)) <= MEDIAN_MS
    assert np.percentile(np.abs(errors), 95) <= P95_MS


@asynccontextmanager
async def browsing(driver: Playwright, card: SoundCard) -> AsyncIterator[BrowserContext]:
    """Chromium with that sound card's devices, and no others."""
    real = [flag for flag in FLAGS if flag != "--use-fake-device-for-media-stream"]
    browser = await driver.chromium.launch(
        executable_path=CHROMIUM,
        args=[*real, "--use-fake-ui-for-media-stream"],
        env={**os.environ, **card.environment},
        ignore_default_args=["--mute-audio"],
    )
    try:
        yield await browser.new_context(permissions=["microphone"])
    finally:
        await browser.close()


async def in_a_call(context: BrowserContext, url: str) -> tuple[Page, asyncio.Queue[dict[str, Any]]]:
    """The page, and the records of turns as it gets them."""
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    page = await context.new_page()
    await page.expose_function("measured", lambda text: told.put_nowait(json.loads(text)["data"]["record"]))
    await page.add_init_script(EARS)

    async def fulfill(route: Route) -> None:
        await route.fulfill(path=HERE / Path(route.request.url).name)

    await page.route("**/waveform/*", fulfill)
    await page.goto(url)
    await page.evaluate("ears.listen()")
    await page.get_by_role("button", name="Start talking").click()
    await expect(page.locator("#frame")).to_have_attribute("data-picture", "live", timeout=20_000)
    return page, told


async def answered_tones(page: Page, card: SoundCard, folder: Path) -> list[float]:
    """ms from the end of each tone to the one that the page played for it, by the page."""
    await page.evaluate("ears.waits = []; ears.answering = true")
    await page.get_by_role("button", name="Mute").click()
    rng = np.random.default_rng(1)
    time = np.arange(round(0.2 * WIRE_RATE)) / WIRE_RATE
    tone: Pcm = (8000 * np.sin(2 * np.pi * 1000 * time)).astype(np.int16)
    pieces = [piece for _ in range(TONES) for piece in (tone, silence(rng.uniform(1.2, 1.5)))]
    await card.say(write_wav(folder / "tones.wav", np.concatenate([silence(PAUSE), *pieces])))
    await until(page, f"ears.waits.length === {TONES}")
    await page.get_by_role("button", name="Mute").click()
    waits: list[float] = await page.evaluate("ears.answering = false; ears.waits.map((wait) => wait * 1000)")
    return waits


async def asked(
    card: SoundCard, folder: Path, text: str, told: asyncio.Queue[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Ask, and hear the reply out. The records of the turns that the server made of it."""
    await card.say(write_wav(folder / "question.wav", np.concatenate([silence(PAUSE), spoken(text)])))
    async with asyncio.timeout(TURN_TIMEOUT_S):
        records = [await told.get()]
    while not told.empty():
        records.append(told.get_nowait())
    return records


def _compared(turns: list[list[dict[str, Any]]], questions: list[Sound], played: list[Sound]) -> list[Turn]:
    """What can be: a question that was answered once, after its end."""
    found = []
    for records, question in zip(turns, questions, strict=True):
        record = records[0]
        if len(records) != 1 or record["speech_end_by"] != "client" or record["failed"] is not None:
            continue
        if record["time_to_first_audio_ms"] is None or any(_within(question, sound) for sound in played):
            continue
        heard = (_after(played, question) - question.end) * 1000
        found.append(Turn(record["time_to_first_audio_ms"], record.get("first_audio_witness_ms"), heard))
    return found


def _within(question: Sound, sound: Sound) -> bool:
    return sound.start < question.end and sound.end > question.start


def _after(played: list[Sound], said: Sound) -> float:
    return next(sound.start for sound in played if sound.start > said.end)


def spread(values: list[float]) -> str:
    if not values:
        return "none"
    p5, median, p95 = np.percentile(values, [5, 50, 95])
    return f"median {median:.1f}, p5 {p5:.1f}, p95 {p95:.1f} ms, n {len(values)}"
