"""Who has the floor, on the page: muting, the button to talk, interrupting, and what is said meanwhile."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.fake_server import FakeServer, FakeSession
from tests.browser.floor import hold_to_talk
from tests.browser.watch import until

pytestmark = pytest.mark.browser

Open = Callable[..., Awaitable[Page]]

KEEP_MICROPHONE = """
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    const stream = await open(wanted);
    [window.microphone] = stream.getAudioTracks();
    return stream;
  };
"""

OPEN = "microphone.enabled"


async def call(page: Page, server: FakeServer) -> FakeSession:
    await page.get_by_role("button", name="Start talking").click()
    session = await server.session()
    await expect(page.locator("#state-label")).to_have_text("Ready")
    return session


async def told(session: FakeSession, name: str) -> Any:
    """What the client's next message of that name carries."""
    while True:
        message = await session.expect("client-message")
        if message["t"] == name:
            return message["d"]


# ── muting ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_call_can_begin_muted(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url, script=KEEP_MICROPHONE)
    mute = page.get_by_role("button", name="Mute")
    await mute.click()
    await expect(mute).to_have_attribute("aria-pressed", "true")
    await expect(page.locator("#state-hint")).to_have_text("You begin muted.")
    session = await call(page, server)
    assert (await session.expect("signalling"))["enabled"] is False
    assert not await page.evaluate(OPEN)
    await expect(page.locator("#state-hint")).to_have_text("You are muted.")
    await expect(page.locator("#announcer")).to_have_text("Connected. You can type.")
    await mute.click()
    assert (await session.expect("signalling"))["enabled"] is True
    assert await page.evaluate(OPEN)
    await expect(page.locator("#state-hint")).to_have_text("Just speak, or type below.")


async def test_a_call_that_began_muted_survives_its_connection_muted(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url, script=KEEP_MICROPHONE)
    await page.get_by_role("button", name="Mute").click()
    session = await call(page, server)
    await session.close()
    second = await server.session()
    assert (await second.expect("signalling"))["enabled"] is False
    assert not await page.evaluate(OPEN)


async def test_muting_in_mid_speech(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    await session.expect("signalling")
    session.state(user="speaking", mood="listening")
    session.hear("I was about", final=False)
    partial = page.locator(".partial")
    await expect(partial).to_contain_text("I was about")
    await page.keyboard.press("m")
    assert (await session.expect("signalling"))["enabled"] is False
    await expect(page.locator("#state-hint")).to_have_text("You are muted.")
    session.state()
    await expect(partial).to_be_hidden()
    await expect(page.locator("#state-label")).to_have_text("Ready")
    await expect(page.get_by_role("listitem")).to_have_count(0)


async def test_turning_on_a_microphone_unmutes_who_began_muted_by_text(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url, script=KEEP_MICROPHONE)
    await page.get_by_role("button", name="Mute").click()
    await page.get_by_label("Message to Vis").fill("Hello")
    await page.keyboard.press("Enter")
    session = await server.session()
    await page.get_by_role("button", name="Turn on microphone").click()
    while not (await session.expect("signalling"))["enabled"]:
        pass
    assert await page.evaluate(OPEN)


# ── the button to talk ─────────────────────────────────────────────────────────────────────────


async def talk_call(open_page: Open, server: FakeServer) -> tuple[Page, FakeSession]:
    """A call with push-to-talk."""
    page = await open_page(server.url, script=KEEP_MICROPHONE)
    await hold_to_talk(page)
    await expect(page.get_by_role("button", name="Hold to talk")).to_be_hidden()
    session = await call(page, server)
    assert not await page.evaluate(OPEN)
    await expect(page.locator("#state-hint")).to_have_text("Hold the button to talk, or type below.")
    return page, session


async def expect_talking(page: Page, session: FakeSession) -> None:
    assert await told(session, "visavis.push_to_talk") == {"pressed": True}
    assert await page.evaluate(OPEN)
    button = page.get_by_role("button", name="Hold to talk")
    await expect(button).to_have_attribute("aria-pressed", "true")
    await expect(page.locator("#state-hint")).to_have_text("Let go when you have finished.")


async def expect_silent(page: Page, session: FakeSession) -> None:
    assert await told(session, "visavis.push_to_talk") == {"pressed": False}
    assert not await page.evaluate(OPEN)
    button = page.get_by_role("button", name="Hold to talk")
    await expect(button).to_have_attribute("aria-pressed", "false")


async def test_the_button_is_held_by_pointer_and_let_go_anywhere(open_page: Open, server: FakeServer) -> None:
    page, session = await talk_call(open_page, server)
    button = page.get_by_role("button", name="Hold to talk")
    await button.hover()
    await page.mouse.down()
    await expect_talking(page, session)
    await page.mouse.move(2, 2)
    await expect(button).to_have_attribute("aria-pressed", "true")
    await page.mouse.up()
    await expect_silent(page, session)


@pytest.mark.parametrize("key", ["Space", "Enter"])
async def test_the_button_is_held_by_key(open_page: Open, server: FakeServer, key: str) -> None:
    page, session = await talk_call(open_page, server)
    await page.get_by_role("button", name="Hold to talk").focus()
    await page.keyboard.down(key)
    await page.keyboard.down(key)  # repeats while it is held
    await expect_talking(page, session)
    await page.keyboard.up(key)
    await expect_silent(page, session)
    await page.keyboard.down(key)
    await expect_talking(page, session)


LET_GO = {
    "touch taken away": "document.querySelector('#talk').dispatchEvent(new PointerEvent('pointercancel'))",
    "focus lost": "document.querySelector('#talk').blur()",
    "window left": "window.dispatchEvent(new Event('blur'))",
    "page hidden": "document.dispatchEvent(new Event('visibilitychange'))",
}


@pytest.mark.parametrize("way", LET_GO)
async def test_the_button_is_let_go(open_page: Open, server: FakeServer, way: str) -> None:
    page, session = await talk_call(open_page, server)
    await page.get_by_role("button", name="Hold to talk").focus()
    await page.keyboard.down("Space")
    await expect_talking(page, session)
    await page.evaluate(LET_GO[way])
    await expect_silent(page, session)


async def test_the_button_is_held_by_touch(open_page: Open, server: FakeServer) -> None:
    page = await open_page(
        server.url,
        script=KEEP_MICROPHONE,
        has_touch=True,
        is_mobile=True,
        viewport={"width": 375, "height": 740},
    )
    await hold_to_talk(page)
    session = await call(page, server)
    box = await page.get_by_role("button", name="Hold to talk").bounding_box()
    assert box is not None
    touch = await page.context.new_cdp_session(page)
    point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    await touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    await expect_talking(page, session)
    await touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": 9, "y": 9}]})
    await touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    await expect_silent(page, session)


async def test_who_can_only_click_switches_the_button(open_page: Open, server: FakeServer) -> None:
    page, session = await talk_call(open_page, server)
    button = page.get_by_role("button", name="Hold to talk")
    await button.evaluate("(button) => button.click()")
    await expect_talking(page, session)
    await button.evaluate("(button) => button.click()")
    await expect_silent(page, session)


async def test_muting_lets_go_of_the_button(open_page: Open, server: FakeServer) -> None:
    page, session = await talk_call(open_page, server)
    button = page.get_by_role("button", name="Hold to talk")
    await button.focus()
    await page.keyboard.down("Space")
    await expect_talking(page, session)
    await page.keyboard.press("m")
    await expect_silent(page, session)
    await expect(button).to_be_disabled()
    await expect(page.locator("#state-hint")).to_have_text("You are muted.")


async def test_a_call_that_ends_lets_go_of_the_button(open_page: Open, server: FakeServer) -> None:
    page, session = await talk_call(open_page, server)
    button = page.get_by_role("button", name="Hold to talk")
    await button.hover()
    await page.mouse.down()
    await expect_talking(page, session)
    session.send("error", {"error": "The end.", "fatal": True})
    await expect(button).to_be_hidden()
    await page.mouse.up()
    await page.get_by_role("button", name="Call again").click()
    await server.session()
    await expect(button).to_have_attribute("aria-pressed", "false")
    assert not await page.evaluate(OPEN)


async def test_push_to_talk_can_be_switched_off_in_a_call(open_page: Open, server: FakeServer) -> None:
    page, _ = await talk_call(open_page, server)
    await page.get_by_role("button", name="Settings").click()
    await page.get_by_label("Hold a button to talk").uncheck()
    await page.get_by_role("button", name="Done").click()
    await expect(page.get_by_role("button", name="Hold to talk")).to_be_hidden()
    assert await page.evaluate(OPEN)


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
