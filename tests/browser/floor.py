"""What a person does to get the floor, or to give it up, and what the server hears of it."""

from typing import Any

from playwright.async_api import Page, expect

from tests.browser.fake_server import FakeServer, FakeSession

KEEP_MICROPHONE = """
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    const stream = await open(wanted);
    [window.microphone] = stream.getAudioTracks();
    return stream;
  };
"""
"""A script for a page, whose microphone `microphone_open` then knows."""


async def call(page: Page, server: FakeServer) -> FakeSession:
    """Start a call by voice."""
    await page.get_by_role("button", name="Start talking").click()
    session = await server.session()
    await expect(page.locator("#state-label")).to_have_text("Ready")
    return session


async def hold_to_talk(page: Page) -> None:
    """Choose push-to-talk in the settings."""
    await page.get_by_role("button", name="Settings").click()
    await page.get_by_label("Hold a button to talk").check()
    await page.get_by_role("button", name="Done").click()


async def microphone_open(page: Page) -> bool:
    """Whether the microphone sends anything but silence."""
    return bool(await page.evaluate("microphone.enabled"))


async def told(session: FakeSession, name: str) -> Any:
    """What the client's next message of that name carries."""
    while True:
        message = await session.expect("client-message")
        if message["t"] == name:
            return message["d"]
