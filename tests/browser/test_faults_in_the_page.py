"""What a real Chromium missed and did not show is found, with its size and cause, and nothing else is."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Playwright, expect

from pipeline.clock import MonotonicClock
from services.lab.network.profiles import Profile
from services.lab.network.relay import Direction, Relay
from services.lab.soak.demo_page import through
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.tab import BACKGROUND, open_tab
from tests.scripted_server import scripted_server
from tests.steadiness import on_a_steady_machine

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.proof]

Launch = Callable[..., Awaitable[Browser]]

_log = logging.getLogger(__name__)

CLEAN_TURNS = 10

RTP, OPUS = 2, 111
"""A packet's version, and Chromium's number for the codec."""

START = "[...document.querySelectorAll('button')].find((each) => each.textContent.includes('Start talking'))"

LOADED = "new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', done))"

SAY = """
  document.querySelector("#message").value = "How are you?";
  document.querySelector("#message").dispatchEvent(new Event("input", { bubbles: true }));
  document.querySelector("#composer").requestSubmit();
"""

CAPTIONS = "document.querySelector('#captions').textContent"

LONGEST_S = 120.0
"""Of a call; one that hangs is a failed test."""

TELL = """
  const make = RTCPeerConnection.prototype.createDataChannel;
  RTCPeerConnection.prototype.createDataChannel = function (...options) {
    const channel = make.apply(this, options);
    channel.addEventListener("message", ({ data }) => window.told(data));
    return channel;
  };
"""


class PageCall:
    """The page in a call with the scripted server, through a relay. Made by `in_call`."""

    def __init__(self, page: Page, relay: Relay) -> None:
        self.page = page
        self.relay = relay
        self._told: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self._lost = 0
        self._count_losses()

    async def open(self, url: str) -> None:
        await self.page.expose_function("told", self._receive)
        await self.page.add_init_script(TELL)
        await self.page.route("**/api/offer", lambda route: through(route, self.relay))
        await self.page.goto(url)
        await self.page.get_by_role("button", name="Start talking").click()
        await expect(self.page.locator("#frame")).to_have_attribute("data-picture", "live", timeout=20_000)

    async def say(self) -> None:
        message = self.page.get_by_label("Message to Vis")
        await message.fill("How are you?")
        await message.press("Enter")

    async def until_heard(self, word: str) -> None:
        """Until a word of the reply sets in."""
        while (await self._next("bot-tts-text"))["text"] != word:
            pass

    async def record(self) -> Mapping[str, Any]:
        """Of this turn, when it is over and the page's reports on it are in."""
        return (await self._next("visavis.measured"))["record"]

    async def turn(self) -> Mapping[str, Any]:
        await self.say()
        return await self.record()

    async def _next(self, kind: str) -> dict[str, Any]:
        while True:
            told, data = await self._told.get()
            if told == kind:
                return data

    def sound_lost(self) -> float:
        """Of sound, what the relay lost since this was last asked, ms."""
        lost, self._lost = self._lost, 0
        return lost * 20.0

    def _count_losses(self) -> None:
        lane = self.relay._lanes[Direction.DOWN]
        send = lane.send

        def counted(packet: bytes, hand_over: Callable[[bytes], None]) -> None:
            before = lane.link.lost
            send(packet, hand_over)
            if packet[0] >> 6 == RTP and packet[1] & 0x7F == OPUS:
                self._lost += lane.link.lost - before

        lane.send = counted  # type: ignore[method-assign]

    def _receive(self, text: str) -> None:
        message = json.loads(text)
        data = message.get("data") or {}
        self._told.put_nowait((data.get("type", message["type"]), data))


@asynccontextmanager
async def in_call(launch: Launch) -> AsyncIterator[PageCall]:
    """A call in which one turn has gone well."""
    browser = await launch()
    context = await browser.new_context(permissions=["microphone"])
    async with (
        asyncio.timeout(LONGEST_S),
        scripted_server() as server,
        Relay(Profile(), MonotonicClock()) as relay,
    ):
        call = PageCall(await context.new_page(), relay)
        await call.open(server.url)
        await call.turn()
        yield call
        await context.close()


@on_a_steady_machine
async def test_a_clean_call_has_no_gap(launch: Launch) -> None:
    async with in_call(launch) as call:
        records = [await call.turn() for _ in range(CLEAN_TURNS)]
    skews = [record["av_skew_ms"]["p50"] for record in records]
    freezes = [freeze for record in records for freeze in record["render_freezes"]]
    _log.info("skew of each turn, ms: %s; freezes: %s", skews, freezes)
    assert [record["speech_gaps"] for record in records] == [[]] * CLEAN_TURNS
    assert not any(freeze["w3c"] for freeze in freezes)


@on_a_steady_machine
async def test_packets_that_are_lost(launch: Launch) -> None:
    async with in_call(launch) as call:
        records, lost = [], []
        for _ in range(3):
            await call.say()
            await call.until_heard("asking")
            call.relay.block(0.2, Direction.DOWN)
            records.append(await call.record())
            lost.append(call.sound_lost())
    _log.info("gaps: %s", [record["speech_gaps"] for record in records])
    _log.info("freezes: %s", [record["render_freezes"] for record in records])
    _log.info("sound lost, ms: %s", lost)
    for record, missing in zip(records, lost, strict=True):
        (gap,) = record["speech_gaps"]
        assert 180 <= missing <= 220
        assert gap["duration_ms"] == pytest.approx(missing, abs=20)
        assert gap["at_ms"] == pytest.approx(1600, abs=300), "a page tells four times a second what it missed"
        worst = max(record["render_freezes"], key=lambda freeze: freeze["duration_ms"])
        assert 200 <= worst["duration_ms"] <= 360
        assert (gap["cause"], worst["cause"]) == ("network", "network")


@on_a_steady_machine
async def test_packets_that_are_late(launch: Launch) -> None:
    async with in_call(launch) as call:
        await call.say()
        await call.until_heard("asking")
        call.relay.delay(0.4, 0.1, Direction.DOWN)
        record = await call.record()
    _log.info("gaps: %s; freezes: %s", record["speech_gaps"], record["render_freezes"])
    (gap,) = record["speech_gaps"]
    assert 200 <= gap["duration_ms"] <= 420, "what its buffer did not hold"
    assert gap["cause"] == "network"


@on_a_steady_machine
async def test_a_page_in_the_background_is_not_painted(playwright_driver: Playwright) -> None:
    browser = await playwright_driver.chromium.launch(
        executable_path=CHROMIUM, args=list(FLAGS), ignore_default_args=["--mute-audio", *BACKGROUND]
    )
    async with asyncio.timeout(LONGEST_S), scripted_server() as server:
        tab = await open_tab(browser, server.url)
        await tab.until(START)
        await tab.run(LOADED)
        await tab.run(f"{START}.click()")
        await tab.until("document.querySelector('#frame')?.dataset.picture === 'live'")
        await tab.run(SAY)
        await server.turn()
        await tab.run(SAY)
        await tab.until(f"{CAPTIONS}.includes('very')")
        other = await open_tab(browser, "about:blank")
        await other.show()
        assert await tab.run("document.hidden")
        began = time.monotonic()
        await tab.until(f"{CAPTIONS}.includes('What')")
        await tab.show()
        hidden = 1000 * (time.monotonic() - began)
        record = await server.turn()
        await browser.close()
    _log.info("hidden for %.0f ms; freezes: %s", hidden, record["render_freezes"])
    worst = max(record["render_freezes"], key=lambda freeze: freeze["duration_ms"])
    assert worst["cause"] == "paint"
    assert worst["duration_ms"] == pytest.approx(hidden, abs=150)
    assert {freeze["cause"] for freeze in record["render_freezes"] if freeze["w3c"]} == {"paint"}
    assert record["speech_gaps"] == [], "sound goes on"
