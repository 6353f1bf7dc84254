"""When the microphone is heard: muting, and the button that is held to talk."""

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.fake_server import FakeServer, FakeSession
from tests.browser.floor import KEEP_MICROPHONE, call, hold_to_talk, microphone_open, told

pytestmark = pytest.mark.browser

Open = Callable[..., Awaitable[Page]]


# ── muting ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_call_can_begin_muted(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url, script=KEEP_MICROPHONE)
    mute = page.get_by_role("button", name="Mute")
    await mute.click()
    await expect(mute).to_have_attribute("aria-pressed", "true")
    await expect(page.locator("#state-hint")).to_have_text("You begin muted.")
    session = await call(page, server)
    assert (await session.expect("signalling"))["enabled"] is False
    assert not await microphone_open(page)
    await expect(page.locator("#state-hint")).to_have_text("You are muted.")
    await expect(page.locator("#announcer")).to_have_text("Connected. You can type.")
    await mute.click()
    assert (await session.expect("signalling"))["enabled"] is True
    assert await microphone_open(page)
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
    assert not await microphone_open(page)


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
    assert await microphone_open(page)


# ── the button to talk ─────────────────────────────────────────────────────────────────────────


async def talk_call(open_page: Open, server: FakeServer) -> tuple[Page, FakeSession]:
    """A call with push-to-talk."""
    page = await open_page(server.url, script=KEEP_MICROPHONE)
    await hold_to_talk(page)
    await expect(page.get_by_role("button", name="Hold to talk")).to_be_hidden()
    session = await call(page, server)
    assert not await microphone_open(page)
    await expect(page.locator("#state-hint")).to_have_text("Hold the button to talk, or type below.")
    return page, session


async def expect_talking(page: Page, session: FakeSession) -> None:
    assert await told(session, "visavis.push_to_talk") == {"pressed": True}
    assert await microphone_open(page)
    button = page.get_by_role("button", name="Hold to talk")
    await expect(button).to_have_attribute("aria-pressed", "true")
    await expect(page.locator("#state-hint")).to_have_text("Let go when you have finished.")


async def expect_silent(page: Page, session: FakeSession) -> None:
    assert await told(session, "visavis.push_to_talk") == {"pressed": False}
    assert not await microphone_open(page)
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
    assert not await microphone_open(page)


async def test_push_to_talk_can_be_switched_off_in_a_call(open_page: Open, server: FakeServer) -> None:
    page, _ = await talk_call(open_page, server)
    await page.get_by_role("button", name="Settings").click()
    await page.get_by_label("Hold a button to talk").uncheck()
    await page.get_by_role("button", name="Done").click()
    await expect(page.get_by_role("button", name="Hold to talk")).to_be_hidden()
    assert await microphone_open(page)
