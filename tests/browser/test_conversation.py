"""Whole conversations in Chromium with the real server and the real models."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator
from playwright.async_api import Browser, Page, Route, expect

from pipeline.events import WIRE_RATE
from tests.browser.fake_server import WEB
from tests.browser.floor import hold_to_talk
from tests.browser.human import recording, start_recording
from tests.browser.watch import until
from tests.serving import Served, serving
from tests.speech import silence, spoken, write_wav
from tests.transcripts import edits, words

pytestmark = [pytest.mark.browser, pytest.mark.models, pytest.mark.engine, pytest.mark.slow]

Launch = Callable[..., Awaitable[Browser]]

QUESTIONS = ("What is the largest planet?", "How many days are in a week?")

GREETING_S = 9.0
"""From the microphone's first sample to the end of the greeting, with room for a busy machine."""

REPLY_S = 14.0
"""From the end of a question to the end of its reply, likewise."""

REPLY_TIMEOUT_MS = 60_000

BEFORE_S = 8.0
"""From the microphone's first sample until the button to talk is held, with room for a busy machine."""

KEEP_MESSAGES = """
  window.received = [];
  window.records = () => received.flatMap(({ data }) => data?.type === "visavis.turn" ? [data.record] : []);
  const make = RTCPeerConnection.prototype.createDataChannel;
  RTCPeerConnection.prototype.createDataChannel = function (...options) {
    const channel = make.apply(this, options);
    channel.addEventListener("message", ({ data }) => received.push(JSON.parse(data)));
    return channel;
  };
"""


LOSE_CONNECTIONS = """
  // A path that died in silence: nobody on the other side hears of the end either.
  const links = [];
  const Connection = RTCPeerConnection;
  window.RTCPeerConnection = class extends Connection {
    #lost = false;
    constructor(...options) { super(...options); links.push(this); }
    get connectionState() { return this.#lost ? "failed" : super.connectionState; }
    close() { if (!this.#lost) super.close(); }
    lose() { this.#lost = true; this.dispatchEvent(new Event("connectionstatechange")); }
  };
  const createDataChannel = Connection.prototype.createDataChannel;
  Connection.prototype.createDataChannel = function (...options) {
    const channel = createDataChannel.apply(this, options);
    channel.close = () => {};
    return channel;
  };
  window.loseConnection = () => links.at(-1).lose();
"""

CUES = """
  Array.from(document.querySelector('video').textTracks[0].cues, (cue) => cue.getCueAsHTML().textContent)
"""


@pytest.fixture(scope="module")
def served(chromium: Path) -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest_asyncio.fixture(loop_scope="session")
async def page(launch: Launch, tmp_path: Path) -> AsyncIterator[Page]:
    """A page whose microphone asks the QUESTIONS."""
    first, second = map(spoken, QUESTIONS)
    script = [silence(GREETING_S), first, silence(REPLY_S), second, silence(REPLY_S)]
    microphone = write_wav(tmp_path / "questions.wav", np.concatenate(script))
    browser = await launch(f"--use-file-for-fake-audio-capture={microphone}%noloop")
    context = await browser.new_context()
    await context.grant_permissions(["microphone"])
    await context.add_init_script(KEEP_MESSAGES)
    yield await context.new_page()
    await context.close()


async def assert_it_speaks(page: Page) -> None:
    """Sound came out, and the mouth moved while it did and only then."""
    seen = await recording(page)
    assert seen.audible.sum() > 50
    assert seen.mouth_open_share(while_audible=True) > 0.4
    assert seen.mouth_open_share(while_audible=False) < 0.15


async def assert_messages_fit_the_schema(page: Page) -> None:
    schema = json.loads((WEB / "messages.schema.json").read_text())
    validator = Draft202012Validator({**schema, "anyOf": [{"$ref": "#/$defs/serverMessage"}]})
    messages = await page.evaluate("window.received")
    assert len(messages) > 20
    for message in messages:
        validator.validate(message)


def assert_understood(said: str, read: str) -> None:
    """But for one word: the voice never says a thing twice in the same way."""
    assert edits(words(said), words(read)) <= 1, read


async def test_two_turns_on_the_page(page: Page, served: Served) -> None:
    await page.goto(served.url)
    await page.get_by_role("button", name="Start talking").click()
    await expect(page.locator("#frame")).to_have_attribute("data-picture", "live", timeout=20_000)
    await start_recording(page, "#avatar")
    said = page.locator("[data-from=user]:not([aria-busy])")
    replies = page.locator("[data-from=bot]:not([aria-busy])")
    for turn, question in enumerate(QUESTIONS):
        await expect(said).to_have_count(turn + 1, timeout=REPLY_TIMEOUT_MS)
        assert_understood(question, await said.nth(turn).locator("p").inner_text())
        await expect(page.locator("#state-label")).to_have_text("Speaking", timeout=REPLY_TIMEOUT_MS)
        await expect(page.locator("#captions")).to_be_visible()
        # The greeting is a reply, too.
        await expect(replies).to_have_count(turn + 2, timeout=REPLY_TIMEOUT_MS)
    texts = await replies.locator("p").all_inner_texts()
    cues = await page.evaluate(CUES)
    assert " ".join(cues) == " ".join(texts)
    assert all(len(words(text)) >= 2 for text in texts)
    await assert_it_speaks(page)
    await assert_messages_fit_the_schema(page)


async def test_the_button_to_talk_and_the_one_to_stop(launch: Launch, served: Served, tmp_path: Path) -> None:
    question = spoken(QUESTIONS[1])
    quiet = silence(BEFORE_S)
    microphone = write_wav(tmp_path / "question.wav", np.concatenate([quiet, question, silence(60)]))
    browser = await launch(f"--use-file-for-fake-audio-capture={microphone}%noloop")
    page = await (await browser.new_context(permissions=["microphone"])).new_page()
    await page.add_init_script(KEEP_MESSAGES)
    await page.goto(served.url)
    await hold_to_talk(page)
    await page.get_by_role("button", name="Start talking").click()
    await page.get_by_role("button", name="Hold to talk").hover()
    await page.mouse.down()
    # The picture's clock starts after the microphone's.
    await until(
        page, f"document.querySelector('#avatar').currentTime > {(len(quiet) + len(question)) / WIRE_RATE}"
    )
    await page.mouse.up()
    said = page.locator("[data-from=user]:not([aria-busy]) p")
    await expect(said).to_have_count(1, timeout=REPLY_TIMEOUT_MS)
    assert_understood(QUESTIONS[1], await said.inner_text())
    await until(page, "records().length === 1", timeout=60)

    await page.get_by_label("Message to Vis").fill("Tell me a long story about a whale.")
    await page.keyboard.press("Enter")
    stop = page.get_by_role("button", name="Stop speaking")
    await expect(stop).to_be_visible(timeout=REPLY_TIMEOUT_MS)
    await until(page, "document.querySelectorAll('#captions span').length > 3")
    await page.keyboard.press("Escape")
    await expect(stop).to_be_hidden()
    await until(page, "records().length === 2")
    record = await page.evaluate("records()[1]")
    assert record["interrupted"]
    assert record["reply_text"].startswith(record["heard_text"])
    told = page.locator("[data-from=bot]").last
    await expect(told.locator("p")).to_have_text(record["heard_text"])
    await expect(told.locator(".mark")).to_have_text("interrupted")
    await assert_messages_fit_the_schema(page)


async def test_two_turns_with_pipecats_stock_client(page: Page, served: Served, stock_client: Path) -> None:
    offers: list[str] = []
    page.on("request", lambda r: offers.append(r.post_data_json["sdp"]) if r.method == "POST" else None)
    await connect_stock_client(page, served, stock_client)
    assert offers[0].count("m=video") == 2
    await until(page, "document.querySelector('#bot').videoWidth === 512")
    await start_recording(page, "#bot")
    for turn, question in enumerate(QUESTIONS):
        await until(page, f"heard.user.length > {turn}", timeout=60)
        assert_understood(question, await page.evaluate(f"heard.user[{turn}]"))
        await until(page, turns_over(turn + 1), timeout=60)
    await assert_it_speaks(page)

    await page.evaluate("client.enableMic(false)")
    await page.evaluate("client.sendText('Say hello.')")
    await until(page, turns_over(3), timeout=60)
    await page.evaluate("transport.attemptReconnection(false)")
    await page.evaluate("client.sendText('Say goodbye.')")
    await until(page, turns_over(4), timeout=60)

    heard = await page.evaluate("heard")
    assert heard["errors"] == []
    records = [message["record"] for message in heard["server"] if message["type"] == "visavis.turn"]
    assert [record["input"] for record in records] == ["voice", "voice", "text", "text"]
    assert len({record["session_id"] for record in records}) == 1
    assert words(" ".join(heard["words"])) == words(
        " ".join(output["text"] for output in heard["outputs"] if output["spoken_status"] == "completed")
    )
    await page.evaluate("client.disconnect()")
    assert (await page.evaluate("heard.states"))[-1] == "disconnected"
    await assert_messages_fit_the_schema(page)


async def test_the_stock_client_makes_a_lost_connection_again(
    page: Page, served: Served, stock_client: Path
) -> None:
    await connect_stock_client(page, served, stock_client)
    await page.evaluate("client.sendText('Say hello.')")
    await until(page, turns_over(1), timeout=60)
    # What it does when ICE fails: a new peer connection, offered with restart_pc.
    await page.evaluate("transport.attemptReconnection(true)")
    await until(page, "transport.dc?.readyState === 'open'")
    await page.evaluate("client.sendText('Say goodbye.')")
    await until(page, turns_over(2), timeout=60)
    assert await page.evaluate("heard.states.at(-1)") == "ready"


async def connect_stock_client(page: Page, served: Served, stock_client: Path) -> None:
    async def fulfill(route: Route) -> None:
        await route.fulfill(path=stock_client / Path(route.request.url).name)

    await page.route("**/stock/*", fulfill)
    await page.goto(f"{served.url}/stock/talk.html")
    ready = await page.evaluate("client.connect()")
    assert ready["version"].startswith("2.")


def turns_over(count: int) -> str:
    return f"heard.server.filter(({{ type }}) => type === 'visavis.turn').length >= {count}"


async def test_a_lost_connection_keeps_its_seat_and_its_conversation(launch: Launch, chromium: Path) -> None:
    page = await (await launch()).new_page()
    await page.add_init_script(KEEP_MESSAGES + LOSE_CONNECTIONS)
    with serving({"server.max_sessions": 1}) as served:
        await page.goto(served.url)
        await page.get_by_label("Message to Vis").fill(QUESTIONS[0])
        await page.keyboard.press("Enter")
        await until(page, "records().length >= 1", timeout=60)
        await page.evaluate("loseConnection()")
        await expect(page.get_by_role("listitem").filter(has_text="Reconnected")).to_have_text("Reconnected.")
        await expect(page.locator("#state-label")).not_to_have_text("Reconnecting")
        await page.get_by_label("Message to Vis").fill(QUESTIONS[1])
        await page.keyboard.press("Enter")
        await until(page, "records().length >= 2", timeout=60)
        records = await page.evaluate("records()")
    assert len({record["session_id"] for record in records}) == 1


async def test_a_typed_question_and_a_killed_server(launch: Launch) -> None:
    page = await (await launch()).new_page()
    with serving() as served:
        await page.goto(served.url)
        await page.get_by_label("Message to Vis").fill(QUESTIONS[1])
        await page.keyboard.press("Enter")
        await expect(page.locator("[data-from=user]:not([aria-busy]) p")).to_have_text(QUESTIONS[1])
        await expect(page.locator("[data-from=bot]:not([aria-busy])").first).to_be_visible(
            timeout=REPLY_TIMEOUT_MS
        )
        served.process.kill()
        await expect(page.locator("#state-label")).to_have_text("Reconnecting", timeout=30_000)
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator("#state-label")).to_have_text("Not connected")
