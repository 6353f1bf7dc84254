"""The demo page in a Chromium of its own, with a file for a microphone, in a call.

What it heard and saw, the page tells the server, whose `visavis.measured` messages are read as they come in.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Error, Page, Playwright, Route

from pipeline.clock import Clock
from services.lab.network.relay import Relay
from services.lab.soak.findings import Record
from services.lab.synthetic_user import CallError, Told

_FLAGS = (
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-device-for-media-stream",
    # Quiet: nothing but the page and its server.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

_CONNECTED_WITHIN = 30.0

_TELL = """
  const tell = (text) => window.visavisTold(text);
  const make = RTCPeerConnection.prototype.createDataChannel;
  RTCPeerConnection.prototype.createDataChannel = function (...options) {
    const channel = make.apply(this, options);
    channel.addEventListener("message", ({ data }) => {
      if (data.includes('"visavis.turn"') || data.includes('"visavis.measured"')) tell(data);
    });
    return channel;
  };
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    const stream = await open(wanted);
    tell("");
    return stream;
  };
"""
"""A script for the page: tells of turns as messages, and, by an empty text, that the microphone began."""


class DemoPage:
    """A page whose call is up. Made by `open_page`."""

    def __init__(self, clock: Clock) -> None:
        self.turns: list[Told] = []
        """Records of turns as they were told; whoever has read them may clear it."""
        self.measured: dict[str, Record] = {}
        """The server's timeline of a turn, by the turn's id; likewise."""
        self.began: float | None = None
        """When the microphone's file began, on the clock."""
        self._clock = clock
        self._crashed = False
        self._news = asyncio.Event()

    async def until(self, condition: Callable[[], bool], deadline: float) -> None:
        """Wait for what was told to meet a condition, or for a deadline. Raises CallError."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, deadline - self._clock.now())):
                while not condition():
                    if self._crashed:
                        raise CallError("the page crashed")
                    await self._news.wait()

    async def prepare(self, page: Page) -> None:
        page.on("crash", lambda _: self._crash())
        await page.expose_function("visavisTold", self._receive)
        await page.add_init_script(_TELL)

    def _receive(self, text: str) -> None:
        now = self._clock.now()
        if not text:
            self.began = self.began or now
        else:
            data = json.loads(text)["data"]
            if data["type"] == "visavis.turn":
                self.turns.append(Told(now, data["type"], data["record"]))
            else:
                self.measured[data["record"]["turn_id"]] = data["record"]
        self._wake()

    def _crash(self) -> None:
        self._crashed = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


@asynccontextmanager
async def open_page(
    playwright: Playwright, executable: Path, url: str, clock: Clock, microphone: str, relay: Relay | None
) -> AsyncIterator[DemoPage]:
    """The page in a call, through `relay` if there is one.

    `microphone` is a file, as Chromium's --use-file-for-fake-audio-capture has it. Raises CallError and
    Playwright's Error.
    """
    flags = [*_FLAGS, f"--use-file-for-fake-audio-capture={microphone}"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium's sandbox refuses to work for root
    browser = await playwright.chromium.launch(
        executable_path=executable,
        args=flags,
        ignore_default_args=["--mute-audio"],
        # Signals are ours to act on: what was told last is still to be read.
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
    )
    try:
        context = await browser.new_context(permissions=["microphone"])
        page, told = await context.new_page(), DemoPage(clock)
        await told.prepare(page)
        if relay is not None:
            await page.route("**/api/offer", lambda route: through(route, relay))
        await page.goto(url)
        await page.get_by_role("button", name="Start talking").click()
        await page.locator("#frame[data-picture=live]").wait_for(timeout=_CONNECTED_WITHIN * 1000)
        yield told
    finally:
        await _close(browser)


async def _close(browser: Browser) -> None:
    # Ctrl-C at a terminal reaches the browser too; then there is nothing left to close.
    with contextlib.suppress(Error):
        await browser.close()


async def through(route: Route, relay: Relay) -> None:
    """An offer and its answer on their way through a relay; candidates that are told later stay here."""
    if route.request.method != "POST":
        await route.fulfill(json={"status": "success"})
        return
    offer: dict[str, Any] = route.request.post_data_json or {}
    response = await route.fetch(post_data={**offer, "sdp": relay.offer(offer["sdp"])})
    if not response.ok:
        await route.fulfill(response=response)
        return
    answer = await response.json()
    await route.fulfill(response=response, json={**answer, "sdp": await relay.answer(answer["sdp"])})
