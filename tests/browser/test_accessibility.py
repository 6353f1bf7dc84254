"""Keyboard alone, and what axe-core finds in every state of the page."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.fake_server import FakeServer
from tests.browser.floor import hold_to_talk
from tests.browser.turn_records import STUMBLES, measured, provisional

pytestmark = pytest.mark.browser

Open = Callable[..., Awaitable[Page]]

RUN_AXE = """
  axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations.map(({ id, impact, nodes }) => ({
      id,
      impact,
      nodes: nodes.map(({ target, failureSummary }) => [target, failureSummary]),
    })),
  )
"""


@pytest.fixture(scope="session")
def axe(node_modules: Path) -> str:
    return (node_modules / "axe-core" / "axe.min.js").read_text()


async def violations(page: Page, axe: str) -> list[Any]:
    await page.evaluate(axe)
    found = await page.evaluate(RUN_AXE)
    return [violation for violation in found if violation["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
async def test_axe_finds_nothing_serious(
    open_page: Open, server: FakeServer, axe: str, scheme: str, width: int
) -> None:
    page = await open_page(
        server.url,
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
        reduced_motion="reduce",
    )
    assert await violations(page, axe) == []
    await page.get_by_role("button", name="Settings").click()
    assert await violations(page, axe) == []
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Start talking").click()
    session = await server.session()
    session.hear("Where are you?")
    session.say("Right here.")
    session.end_reply(interrupted=True, heard_text="Again.")
    session.send("error", {"error": "Something failed.", "fatal": False})
    session.state(agent="speaking", mood="speaking")
    session.hear("And where is", final=False)
    await expect(page.get_by_role("listitem")).to_have_count(3)
    await expect(page.get_by_role("button", name="Stop speaking")).to_be_visible()
    assert await violations(page, axe) == []
    await hold_to_talk(page)
    assert await violations(page, axe) == []
    await page.get_by_role("button", name="Hold to talk").dispatch_event("click")
    assert await violations(page, axe) == []
    await page.get_by_role("button", name="Mute").click()
    assert await violations(page, axe) == []
    session.send("error", {"error": "The end.", "fatal": True})
    await expect(page.get_by_role("alert")).to_be_visible()
    assert await violations(page, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
async def test_axe_finds_nothing_serious_in_the_panel(
    open_page: Open, server: FakeServer, axe: str, scheme: str, width: int
) -> None:
    page = await open_page(
        f"{server.url}?panel=1",
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
        reduced_motion="reduce",
    )
    panel = page.get_by_role("region", name="Measurements")
    await expect(panel).to_be_visible()
    assert await violations(page, axe) == []
    await page.get_by_role("button", name="Start talking").click()
    session = await server.session()
    session.end_reply(**provisional())
    await expect(panel.get_by_role("table")).to_be_visible()
    assert await violations(page, axe) == []
    session.measure(**measured(**STUMBLES, interrupted=True))
    await expect(panel.get_by_role("list").first).to_be_visible()
    await panel.get_by_text("What the stages are").click()
    assert await violations(page, axe) == []
    session.measure(**measured(failed="llm_failed", stages=None, time_to_first_audio_ms=None))
    await expect(panel.get_by_role("table")).to_have_count(0)
    assert await violations(page, axe) == []


@pytest.mark.parametrize(("width", "height"), [(320, 700), (360, 700), (740, 375), (768, 700), (1280, 700)])
async def test_nothing_sticks_out_sideways(
    open_page: Open, server: FakeServer, width: int, height: int
) -> None:
    page = await open_page(server.url, viewport={"width": width, "height": height})
    await hold_to_talk(page)
    await page.get_by_role("button", name="Start talking").click()
    session = await server.session()
    session.state(agent="speaking", mood="speaking")
    await expect(page.get_by_role("button", name="Hold to talk")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    frame = await page.locator("#frame").bounding_box()
    mute = await page.locator("#mute").bounding_box()
    assert frame is not None
    assert mute is not None
    assert mute["y"] > frame["y"] + frame["height"] or mute["x"] > frame["x"] + frame["width"]


async def test_everything_is_reached_and_shown_by_tab(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await page.get_by_role("button", name="Start talking").click()
    await server.session()
    await expect(page.locator("#state-label")).to_have_text("Ready")
    await page.get_by_label("Message to Vis").fill("x")
    await page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    reached = []
    for _ in range(8):
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate("document.activeElement.id || document.activeElement.ariaLabel"))
        assert await page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    controls = ["mute", "call", "captions-toggle", "settings-open"]
    assert reached == ["panel-toggle", *controls, "log", "message", "Send"]


async def test_a_whole_call_by_keyboard(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Measurements")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Mute")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Start talking")).to_be_focused()
    await page.keyboard.press("Enter")
    session = await server.session()
    await expect(page.locator("#announcer")).to_have_text("Connected. You can speak, or type.")
    await page.keyboard.press("m")
    await expect(page.locator("#announcer")).to_have_text("Microphone muted")
    await page.get_by_role("button", name="Settings").press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await expect(page.get_by_role("button", name="Settings")).to_be_focused()
    await page.get_by_role("button", name="Hang up").press("Space")
    await session.closed.wait()
    await expect(page.locator("#announcer")).to_have_text("Call ended")


async def test_whoever_wants_less_motion_gets_none(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url, reduced_motion="reduce")
    await page.get_by_role("button", name="Start talking").click()
    session = await server.session()
    session.state(mood="thinking")
    await expect(page.locator("#frame")).to_have_attribute("data-mood", "thinking")
    assert await page.evaluate("document.getAnimations().length") == 0


async def test_a_reply_is_read_out_once_it_is_whole(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await page.get_by_role("button", name="Start talking").click()
    session = await server.session()
    session.hear("So", final=False)
    partial = page.get_by_text("So", exact=True)
    await expect(partial).to_be_visible()
    assert await partial.evaluate("(partial) => partial.closest('[aria-live], [role=log]')") is None
    session.hear("")
    session.say("Not yet")
    entry = page.get_by_role("listitem")
    await expect(entry).to_have_attribute("aria-busy", "true")
    session.end_reply()
    await expect(entry).not_to_have_attribute("aria-busy", "true")
