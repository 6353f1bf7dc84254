"""Whatever stands in the way of a conversation gets its own plain message and a way on."""

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.fake_server import FakeServer

pytestmark = pytest.mark.browser

Open = Callable[..., Awaitable[Page]]


def failing_microphone(error: str) -> str:
    return f"""
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "{error}"));
    """


async def start(page: Page) -> None:
    await page.get_by_role("button", name="Start talking").click()


async def expect_notice(page: Page, title: str) -> None:
    await expect(page.get_by_role("alert").get_by_role("heading")).to_have_text(title)


async def expect_ready(page: Page) -> None:
    await expect(page.locator("#state-label")).to_have_text("Ready")
    await expect(page.get_by_role("alert")).to_be_hidden()


async def test_microphone_refused(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url, microphone=False)
    await start(page)
    await expect_notice(page, "The microphone is blocked")
    await page.context.grant_permissions(["microphone"])
    await page.get_by_role("button", name="Try again").click()
    await expect_ready(page)
    await expect(page.locator("#state-hint")).to_have_text("Just speak, or type below.")


async def test_microphone_refused_and_typing_instead(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url, microphone=False)
    await start(page)
    await page.get_by_role("button", name="Continue by typing").click()
    await expect_ready(page)
    await expect(page.get_by_label("Message to Vis")).to_be_focused()
    await page.keyboard.type("Hello")
    await page.keyboard.press("Enter")
    session = await server.session()
    assert (await session.expect("send-text"))["content"] == "Hello"


@pytest.mark.parametrize(
    ("error", "title"),
    [
        ("NotFoundError", "No microphone found"),
        ("NotReadableError", "The microphone is in use"),
    ],
)
async def test_microphone_missing_or_busy(
    open_page: Open, server: FakeServer, error: str, title: str
) -> None:
    page = await open_page(server.url, script=failing_microphone(error))
    await start(page)
    await expect_notice(page, title)
    assert server.offers == 0
    await page.get_by_role("button", name="Continue by typing").click()
    await expect_ready(page)


async def test_microphone_unplugged_during_a_call(open_page: Open, server: FakeServer) -> None:
    script = """
      const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
      navigator.mediaDevices.getUserMedia = async (wanted) => {
        const stream = await open(wanted);
        window.unplug = () => stream.getAudioTracks()[0].dispatchEvent(new Event("ended"));
        return stream;
      };
    """
    page = await open_page(server.url, script=script)
    await start(page)
    await expect_ready(page)
    await page.evaluate("unplug()")
    await expect_notice(page, "The microphone went away")
    await page.get_by_role("button", name="Try again").click()
    await expect_ready(page)
    await expect(page.get_by_role("button", name="Mute")).to_be_enabled()
    assert server.offers == 1


async def test_insecure_context(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url.replace("localhost", "insecure.test"), microphone=False)
    await start(page)
    await expect_notice(page, "The microphone needs a secure page")
    await page.get_by_role("button", name="Continue by typing").click()
    await expect_ready(page)


@pytest.mark.parametrize(
    ("status", "code", "title"),
    [
        (503, "server_full", "Every seat is taken"),
        (503, "llm_unavailable", "Vis cannot think right now"),
        (400, "bad_offer", "The call could not start"),
    ],
)
async def test_server_refuses(
    open_page: Open, server: FakeServer, status: int, code: str, title: str
) -> None:
    server.refusal = (status, code)
    page = await open_page(server.url)
    await start(page)
    await expect_notice(page, title)
    server.refusal = None
    await page.get_by_role("button", name="Try again").click()
    await expect_ready(page)


async def test_a_message_that_could_not_be_sent_is_given_back(open_page: Open, server: FakeServer) -> None:
    server.refusal = (503, "server_full")
    page = await open_page(server.url)
    await page.get_by_label("Message to Vis").fill("Hello")
    await page.keyboard.press("Enter")
    await expect_notice(page, "Every seat is taken")
    await expect(page.get_by_label("Message to Vis")).to_have_value("Hello")
    await expect(page.get_by_role("listitem")).to_have_count(0)


async def test_server_unreachable_when_the_page_opens(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await page.route("**/api/config", lambda route: route.abort())
    await page.reload()
    await expect_notice(page, "The server does not answer")
    await page.unroute("**/api/config")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("alert")).to_be_hidden()
    await start(page)
    await expect_ready(page)


async def test_server_unreachable_when_a_call_starts(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await page.route("**/api/offer", lambda route: route.abort())
    await start(page)
    await expect_notice(page, "The server does not answer")


async def test_no_webrtc(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url, script="delete window.RTCPeerConnection;")
    await expect_notice(page, "This browser cannot hold a call")


@pytest.mark.parametrize(
    ("remembers", "told"),
    [(True, "Reconnected."), (False, "Reconnected. A new conversation begins.")],
)
async def test_a_lost_connection_is_made_again(
    open_page: Open, server: FakeServer, remembers: bool, told: str
) -> None:
    server.remembers = remembers
    page = await open_page(server.url)
    await start(page)
    first = await server.session()
    first.say("I was about to")
    await expect(page.get_by_role("listitem")).to_have_count(1)
    await first.close()
    second = await server.session()
    await expect_ready(page)
    await expect(page.get_by_role("listitem").nth(1)).to_have_text(told)
    second.say("Hello again.")
    await expect(page.get_by_role("listitem").nth(2)).to_have_text("VisHello again.")


async def test_reconnecting_gives_up_and_offers_a_button(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await page.clock.install()
    await start(page)
    session = await server.session()
    await expect_ready(page)
    await page.route("**/api/offer", lambda route: route.abort())
    await session.close()
    hint = page.locator("#state-hint")
    for attempt in range(1, 6):
        await expect(hint).to_have_text(f"The connection was lost. Attempt {attempt} of 5.")
        await page.clock.fast_forward(8_000)
    await expect_notice(page, "The connection was lost")
    await page.unroute("**/api/offer")
    await page.get_by_role("button", name="Reconnect").click()
    await expect_ready(page)


async def test_reconnecting_can_be_cancelled(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await start(page)
    session = await server.session()
    await expect_ready(page)
    await page.route("**/api/offer", lambda route: route.abort())
    await session.close()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator("#state-label")).to_have_text("Not connected")
    await expect(page.get_by_role("alert")).to_be_hidden()


async def test_a_fatal_error_ends_the_call_in_the_words_of_the_server(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url)
    await start(page)
    session = await server.session()
    await expect_ready(page)
    session.send("error", {"error": "Nobody spoke for a while.", "code": "idle", "fatal": True})
    await expect_notice(page, "The call has ended")
    await expect(page.get_by_role("alert")).to_contain_text("Nobody spoke for a while.")
    await expect(page.get_by_role("listitem")).to_have_count(0)
    assert server.offers == 1
    await page.get_by_role("button", name="Call again").click()
    await expect_ready(page)


async def test_an_error_that_is_not_fatal_is_noted(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await start(page)
    session = await server.session()
    session.send("error", {"error": "no route to 10.0.0.7", "code": "llm_failed", "fatal": False})
    session.send("error", {"error": "nothing to say", "code": "reply_empty", "fatal": False})
    session.send("error", {"error": "That message is too long.", "code": "text_too_long", "fatal": False})
    await expect(page.get_by_role("listitem")).to_have_text(["That message is too long."])
    await expect_ready(page)
