"""The live panel: what is shown of a turn, when, and to whom."""

from collections.abc import Awaitable, Callable

import pytest
from jsonschema import Draft202012Validator
from playwright.async_api import Locator, Page, expect

from tests.browser.fake_server import FakeServer
from tests.browser.floor import call
from tests.browser.test_page import SCHEMA
from tests.browser.turn_records import STUMBLES, measured, provisional

pytestmark = pytest.mark.browser

Open = Callable[..., Awaitable[Page]]


def panel(page: Page) -> Locator:
    return page.get_by_role("region", name="Measurements")


async def open_panel(page: Page) -> Locator:
    await page.get_by_role("button", name="Measurements").click()
    await expect(panel(page)).to_be_visible()
    return panel(page)


async def test_the_records_told_here_fit_the_schema() -> None:
    validator = Draft202012Validator({"$ref": "#/$defs/turnRecord", "$defs": SCHEMA["$defs"]})
    for record in (measured(), measured(**STUMBLES), provisional()):
        validator.validate(record)


# ── on and off ─────────────────────────────────────────────────────────────────────────────────


async def test_it_is_off_until_it_is_opened_by_keyboard(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    toggle = page.get_by_role("button", name="Measurements")
    await expect(panel(page)).to_be_hidden()
    await expect(toggle).to_have_attribute("aria-expanded", "false")
    await page.keyboard.press("Tab")
    await expect(toggle).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(panel(page)).to_be_visible()
    await expect(toggle).to_have_attribute("aria-expanded", "true")
    await page.keyboard.press("Space")
    await expect(panel(page)).to_be_hidden()


async def test_an_address_can_open_it(open_page: Open, server: FakeServer) -> None:
    page = await open_page(f"{server.url}?panel=1")
    await expect(panel(page)).to_be_visible()
    await expect(panel(page)).to_contain_text("Each turn is laid out here")
    page = await open_page(f"{server.url}?panel=0")
    await expect(panel(page)).to_be_hidden()


async def test_what_happened_while_it_was_shut_is_known_when_it_opens(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    session.end_reply(**provisional())
    session.measure(**measured())
    session.say("Seen.")
    await expect(page.get_by_role("listitem")).to_have_text(["VisSeen."])
    shown = await open_panel(page)
    await expect(shown).to_contain_text("First audio, by voice: median 600 ms, p90 600 ms (n = 1)")


async def test_it_stays_open_from_call_to_call_and_begins_anew(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    shown = await open_panel(page)
    session = await call(page, server)
    session.end_reply(**measured())
    await expect(shown.get_by_role("heading", name="Turn 1")).to_be_visible()
    await page.get_by_role("button", name="Hang up").click()
    await session.closed.wait()
    await expect(shown.get_by_role("heading", name="Turn 1")).to_be_visible()
    await call(page, server)
    await expect(shown).to_contain_text("Each turn is laid out here")


# ── a turn ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_turn_is_shown_when_it_is_over_and_again_when_it_is_measured(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    shown = await open_panel(page)
    session.end_reply(**provisional())
    await expect(shown).to_contain_text("By voice · What you heard is being measured")
    await expect(shown.get_by_role("row", name="In all")).to_contain_text("500 ms")
    session.measure(**measured())
    await expect(shown).not_to_contain_text("being measured")
    await expect(shown.get_by_role("row", name="In all")).to_contain_text("600 ms")
    await expect(shown.get_by_role("heading", name="Turn 1")).to_be_visible()
    figures = shown.locator(".figures > div")
    await expect(figures).to_have_text(
        [
            "First audioabout 600 ms",
            "First moving pictureabout 640 ms",
            "Sound against picture12 ms lateat most 41 ms off",
            "Barge-in stop–you did not cut in",
            "First token90 ms",
            "Tokens a second61",
        ]
    )


async def test_the_wait_is_a_table_with_a_drawing_in_it(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    shown = await open_panel(page)
    session.measure(**measured())
    rows = shown.get_by_role("table").locator("tbody tr")
    await expect(rows).to_have_count(10)
    await expect(rows.nth(0)).to_have_text("Uplink––")
    await expect(rows.nth(1)).to_have_text("Endpointing0 to 200 ms200 ms")
    await expect(rows.nth(2)).to_have_text("Recognition32 to 132 ms0 ms")
    await expect(rows.nth(9)).to_have_text("Playout500 to 600 ms100 ms")
    axis = await rows.nth(1).locator(".bars").bounding_box()
    bars = [await bar.bounding_box() for bar in await shown.locator(".added").all()]
    assert axis is not None
    ends = [axis["x"]]
    for bar in bars:
        assert bar is not None
        assert abs(bar["x"] - ends[-1]) < 1.5
        ends.append(bar["x"] + bar["width"])
    assert len(bars) == 7
    assert abs(ends[-1] - axis["x"] - axis["width"]) < 1.5
    assert abs(ends[1] - axis["x"] - axis["width"] / 3) < 1.5


async def test_gaps_and_freezes_are_marked_and_told(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    shown = await open_panel(page)
    session.measure(**measured(**STUMBLES))
    await expect(shown.locator(".stumbles li")).to_have_text(
        [
            "Stall of 130 ms at 0.2 s: the server was busy",
            "Speech gap of 352 ms at 1 s: the voice was late",
            "Freeze of 500 ms at 3 s: the face was drawn late",
        ]
    )
    await expect(shown).to_contain_text("Sound: once, 352 ms in all · Picture: 2 times, 630 ms in all.")
    await expect(shown.locator(".stumble[data-lane=sound]")).to_have_text(["2"])
    await expect(shown.locator(".stumble[data-lane=picture]")).to_have_text(["1", "3"])
    track = await shown.locator(".lane-track").first.bounding_box()
    gap = await shown.locator(".stumble[data-lane=sound]").bounding_box()
    assert track is not None
    assert gap is not None
    assert abs((gap["x"] - track["x"]) / track["width"] - 0.25) < 0.01
    session.measure(**measured(turn_id="t1"))
    await expect(shown).to_contain_text("Sound: no gap · Picture: no freeze, no stall.")
    await expect(shown.locator(".stumble")).to_have_count(0)


async def test_what_is_not_known_says_why(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    shown = await open_panel(page)
    reason = "this client has no means to tell which sound it presents when"
    fields = ("time_to_first_audio_ms", "av_skew_ms")
    session.measure(**measured(**dict.fromkeys(fields), not_measured=dict.fromkeys(fields, reason)))
    await expect(shown.locator(".figures > div").nth(0)).to_have_text(f"First audio–{reason}")
    await expect(shown.get_by_role("caption")).to_contain_text(reason)
    await expect(shown).not_to_contain_text("median")
    await expect(shown).to_contain_text("Failed: 0 of 1 turn")


@pytest.mark.parametrize(
    ("told", "note"),
    [
        ({"interrupted": True, "barge_in_stop_ms": 180}, "By voice · Interrupted"),
        ({"input": "text"}, "By text"),
        ({"failed": "llm_failed"}, "By voice · Failed: the language model did not answer"),
        (dict.fromkeys(measured()), ""),
        ({"stages": None, "time_to_first_audio_ms": None}, "By voice"),
    ],
    ids=["interrupted", "by text", "failed", "unknown", "without stages"],
)
async def test_turns_of_every_kind(
    open_page: Open, server: FakeServer, told: dict[str, object], note: str
) -> None:
    page = await open_page(f"{server.url}?panel=1")
    session = await call(page, server)
    session.measure(**measured(**told))
    await expect(panel(page).get_by_role("heading", name="Turn 1")).to_be_visible()
    await expect(panel(page).locator(".panel-note")).to_have_text(note)
    for nonsense in ("undefined", "null", "NaN", "[object"):
        await expect(panel(page)).not_to_contain_text(nonsense)


async def test_rubbish_is_let_pass(open_page: Open, server: FakeServer) -> None:
    page = await open_page(f"{server.url}?panel=1")
    session = await call(page, server)
    for record in (None, 7, [], {}, {"stages": 7, "speech_gaps": [None, 7], "failed": "<img src=x>"}):
        session.send("server-message", {"type": "visavis.measured", "record": record})
    session.say("Still here.")
    await expect(page.get_by_role("log").get_by_role("listitem")).to_have_text(["VisStill here."])
    await expect(panel(page).locator(".panel-note")).to_have_text("Failed: <img src=x>")


# ── the call ───────────────────────────────────────────────────────────────────────────────────


async def test_the_call_in_figures(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    shown = await open_panel(page)
    for turn, wait in enumerate((500, 600, 900)):
        session.measure(**measured(turn_id=f"t{turn}", time_to_first_audio_ms=wait))
    session.measure(**measured(turn_id="t3", input="text", time_to_first_audio_ms=250))
    session.measure(**measured(turn_id="t4", failed="tts_failed", time_to_first_audio_ms=None))
    await expect(shown.locator(".call-figures li")).to_have_text(
        [
            "First audio, by voice: median 600 ms, p90 840 ms (n = 3)",
            "First audio, by text: median 250 ms, p90 250 ms (n = 1)",
            "Failed: 1 of 5 turns",
        ]
    )


async def test_an_earlier_turn_that_is_measured_late_counts_but_is_not_shown(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    shown = await open_panel(page)
    session.end_reply(**provisional(turn_id="t1"))
    session.end_reply(**provisional(turn_id="t2", input="text"))
    session.measure(**measured(turn_id="t1"))
    await expect(shown).to_contain_text("First audio, by voice: median 600 ms")
    await expect(shown.get_by_role("heading", name="Turn 2")).to_be_visible()
    await expect(shown.locator(".panel-note")).to_have_text("By text · What you heard is being measured")


async def test_a_turn_that_the_call_ends_in_says_so(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    shown = await open_panel(page)
    session.end_reply(**provisional())
    await expect(shown).to_contain_text("being measured")
    await page.get_by_role("button", name="Hang up").click()
    await expect(shown).to_contain_text("the call ended before it was measured")


# ── where it stands ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("width", "height"), [(320, 640), (360, 740), (740, 375), (768, 1024), (1280, 800)])
async def test_it_fits_any_width(open_page: Open, server: FakeServer, width: int, height: int) -> None:
    page = await open_page(f"{server.url}?panel=1", viewport={"width": width, "height": height})
    session = await call(page, server)
    session.measure(**measured(**STUMBLES))
    shown = panel(page)
    await expect(shown.get_by_role("table")).to_be_visible()
    await shown.get_by_text("What the stages are").click()
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert await shown.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")
    for part in await shown.locator("th, td, .tick, .figures strong, li").all():
        assert await part.evaluate("(part) => part.scrollWidth <= part.clientWidth + 1 || !part.clientWidth")
    bars = await shown.locator(".bars").first.bounding_box()
    assert bars is not None
    assert bars["width"] >= 80
    covered = await shown.evaluate(
        """(panel) => {
          const { top, bottom } = panel.getBoundingClientRect();
          const call = document.querySelector(".composer").getBoundingClientRect();
          return call.bottom > top && call.top < bottom;
        }"""
    )
    assert not covered


async def test_opening_it_on_a_phone_shows_it(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url, viewport={"width": 360, "height": 740})
    session = await call(page, server)
    session.measure(**measured())
    await open_panel(page)
    await expect(panel(page).get_by_role("heading", name="Measurements")).to_be_in_viewport()


async def test_beside_a_call_on_a_desk_it_scrolls_by_itself(open_page: Open, server: FakeServer) -> None:
    page = await open_page(f"{server.url}?panel=1", viewport={"width": 1280, "height": 800})
    session = await call(page, server)
    session.measure(**measured(**STUMBLES))
    await expect(panel(page).get_by_role("table")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollHeight") <= 800
    for shown in (page.locator("#frame"), page.get_by_label("Message to Vis")):
        await expect(shown).to_be_in_viewport(ratio=1)
    await panel(page).focus()
    await page.keyboard.press("End")
    await expect(panel(page).get_by_text("are tied to within")).to_be_in_viewport()
