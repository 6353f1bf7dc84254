"""Who has the floor, on the page: interrupting, being interrupted, and what is said meanwhile."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.fake_server import FakeServer
from tests.browser.floor import call, hold_to_talk, told
from tests.browser.watch import until

pytestmark = pytest.mark.browser

Open = Callable[..., Awaitable[Page]]


# ── interrupting ───────────────────────────────────────────────────────────────────────────────


async def test_a_reply_is_stopped_by_button_and_key(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    stop = page.get_by_role("button", name="Stop speaking")
    await expect(stop).to_be_hidden()
    await page.keyboard.press("Escape")
    for agent in ("speaking", "held"):
        session.state(agent=agent, mood="speaking")
        await expect(stop).to_be_visible()
    await stop.click()
    assert await told(session, "visavis.interrupt") == {}
    await page.get_by_label("Message to Vis").press("Escape")
    assert await told(session, "visavis.interrupt") == {}
    await page.get_by_role("button", name="Settings").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    session.state(agent="preparing", mood="thinking")
    await expect(stop).to_be_hidden()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Hang up").click()
    await session.closed.wait()
    rest = [session.messages.get_nowait() for _ in range(session.messages.qsize())]
    assert "visavis.interrupt" not in [message["data"].get("t") for message in rest]


async def test_what_is_played_is_reported_while_the_avatar_speaks(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    await until(page, "document.querySelector('#avatar').currentTime > 0.2")
    session.send("bot-started-speaking")
    stamps = [(await told(session, "visavis.playout"))["rtp_timestamp"] for _ in range(4)]
    # The voice is sent at 48,000 stamps a second, and reported five times in each.
    steps = [(later - earlier) % 2**32 for earlier, later in itertools.pairwise(stamps)]
    assert all(0 < step < 48_000 for step in steps)
    session.state(user="speaking", agent="held", mood="listening")
    session.send("bot-stopped-speaking")
    assert await told(session, "visavis.playout")
    await page.get_by_role("button", name="Hang up").click()
    await session.closed.wait()


async def test_captions_wait_while_a_reply_is_held(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    session.state(agent="speaking", mood="speaking")
    session.say("Once upon")
    captions = page.locator("#captions")
    await expect(captions).to_have_text("Once upon")
    session.state(user="speaking", agent="held", mood="listening")
    await expect(captions).to_have_attribute("data-paused", "true")
    session.state(agent="speaking", mood="speaking")
    session.say("a time.")
    await expect(captions).to_have_text("Once upon a time.")
    await expect(captions).to_have_attribute("data-paused", "false")


# ── what is said meanwhile ─────────────────────────────────────────────────────────────────────


async def test_a_partial_grows_beside_the_log_and_becomes_a_line_of_it(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    partial = page.locator(".partial")
    lines = page.get_by_role("log").get_by_role("listitem")
    for text in ("where", "where are", "where are you"):
        session.hear(text, final=False)
        await expect(partial.locator("p")).to_have_text(text)
    await expect(lines).to_have_count(0)
    session.hear("Where are you?")
    await expect(lines).to_have_text(["YouWhere are you?"])
    await expect(partial).to_be_hidden()
    session.hear("and", final=False)
    await expect(partial.locator("p")).to_have_text("and")


async def test_a_turn_that_was_not_over_goes_on_in_the_same_line(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    partial = page.locator(".partial p")
    lines = page.get_by_role("log").get_by_role("listitem")
    session.hear("What is")
    session.state(agent="preparing", mood="thinking")
    await expect(lines).to_have_text(["YouWhat is"])
    session.send("server-message", {"type": "visavis.reopened"})
    await expect(lines).to_have_count(0)
    await expect(partial).to_have_text("What is")
    session.send("server-message", {"type": "visavis.reopened"})
    session.hear("What is the", final=False)
    await expect(partial).to_have_text("What is the")
    session.hear("What is the largest planet?")
    await expect(lines).to_have_text(["YouWhat is the largest planet?"])
    await expect(partial).to_be_hidden()
    session.say("Jupiter.")
    await expect(lines).to_have_count(2)
    session.send("server-message", {"type": "visavis.reopened"})
    session.hear("and", final=False)
    await expect(partial).to_have_text("and")
    await expect(lines).to_have_count(2)


async def test_text_typed_while_speaking_is_a_line_of_its_own(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    session.state(user="speaking", mood="listening")
    session.hear("tell me", final=False)
    message = page.get_by_label("Message to Vis")
    for text in ("First", "Second  one"):
        await message.fill(text)
        await message.press("Enter")
        await session.expect("send-text")
    lines = page.get_by_role("log").get_by_role("listitem")
    await expect(lines).to_have_text(["YouFirst", "YouSecond one"])
    await expect(page.locator(".partial p")).to_have_text("tell me")
    session.hear("Second one")
    await expect(lines.nth(1)).not_to_have_attribute("aria-busy", "true")
    await expect(lines.nth(0)).to_have_attribute("aria-busy", "true")
    await expect(page.locator(".partial")).to_be_hidden()
    session.hear("Tell me a story.")
    await expect(lines).to_have_text(["YouFirst", "YouSecond one", "YouTell me a story."])


async def test_the_end_of_the_conversation_stays_in_sight_unless_one_reads_on_above(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url, viewport={"width": 375, "height": 667})
    session = await call(page, server)
    for _ in range(8):
        session.say("Right here, with you.")
        session.end_reply()
    lines = page.get_by_role("log").get_by_role("listitem")
    await expect(lines).to_have_count(8)
    await expect(lines.last).to_be_in_viewport(ratio=1)
    await hold_to_talk(page)  # its button takes some of the log's room
    await expect(lines.last).to_be_in_viewport(ratio=1)
    session.hear("so where", final=False)
    await expect(page.locator(".partial p")).to_be_in_viewport(ratio=1)
    log = page.locator("#log")
    await log.evaluate("(log) => new Promise((read) => { log.onscrollend = read; log.scrollTop = 0; })")
    session.hear("so where are you", final=False)
    await expect(page.locator(".partial p")).to_have_text("so where are you")
    assert await log.evaluate("(log) => log.scrollTop") == 0


async def test_hanging_up_in_mid_speech_leaves_nothing_provisional(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    session.hear("I was", final=False)
    await expect(page.locator(".partial")).to_be_visible()
    await page.get_by_role("button", name="Hang up").click()
    await asyncio.wait_for(session.closed.wait(), 10)
    await expect(page.locator(".partial")).to_be_hidden()
