"""The demo page in Chromium against a server that does as it is told."""

import itertools
import json
from collections.abc import Awaitable, Callable

import pytest
from jsonschema import Draft202012Validator
from playwright.async_api import Page, expect

from tests.browser.fake_server import SIDE, WEB, FakeServer
from tests.browser.floor import call, hold_to_talk
from tests.browser.watch import until

pytestmark = pytest.mark.browser

Open = Callable[..., Awaitable[Page]]

SCHEMA = json.loads((WEB / "messages.schema.json").read_text())


async def test_a_call_shows_picture_states_captions_and_transcript(
    open_page: Open, server: FakeServer
) -> None:
    page = await open_page(server.url)
    await expect(page.locator("#state-label")).to_have_text("Not connected")
    session = await call(page, server)
    await expect(page.locator("#frame")).to_have_attribute("data-picture", "live")
    for mood, label in [("listening", "Listening"), ("thinking", "Thinking"), ("speaking", "Speaking")]:
        session.state(mood=mood)
        await expect(page.locator("#state-label")).to_have_text(label)
        await expect(page.locator("#frame")).to_have_attribute("data-mood", mood)
    session.hear("Where are", final=False)
    session.hear("Where are you?")
    session.say("Right here,")
    await expect(page.locator("#captions")).to_have_text("Right here,")
    session.say("with you.")
    await expect(page.locator("#captions")).to_have_text("Right here, with you.")
    cue = "document.querySelector('video').textTracks[0].cues[0]"
    assert await page.evaluate(f"{cue}.text") == "Right here, with you."
    session.end_reply()
    log = page.get_by_role("log").get_by_role("listitem")
    await expect(log).to_have_text(["YouWhere are you?", "VisRight here, with you."])
    await expect(page.locator("#captions")).to_have_attribute("data-empty", "true")
    session.say("Once upon a")
    session.end_reply(interrupted=True, heard_text="Once upon")
    await expect(log.nth(2)).to_have_text("VisOnce uponinterrupted")


async def test_the_reply_is_played_and_the_microphone_is_sent(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    video = "document.querySelector('#avatar')"
    assert await page.evaluate(f"!{video}.muted && {video}.srcObject.getAudioTracks().length === 1")
    await until(page, f"{video}.currentTime > 0.2 && {video}.videoWidth === {SIDE}")
    receiver = next(t.receiver for t in session.pc.getTransceivers() if t.kind == "audio")
    frame = await receiver.track.recv()
    assert frame.sample_rate == 48_000
    # Chromium's fake microphone beeps once a second.
    await until(page, "Number(document.querySelector('#level').ariaValueNow) > 0")


async def test_what_the_client_sends_fits_the_schema(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    await page.get_by_role("button", name="Mute").click()
    await page.get_by_label("Message to Vis").fill("Hello")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Hang up").click()
    await session.closed.wait()
    messages = [session.messages.get_nowait() for _ in range(session.messages.qsize())]
    validator = Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": "#/$defs/clientMessage"}]})
    for message in messages:
        validator.validate(message)
    kinds = [m["message"]["type"] if m["type"] == "signalling" else m["type"] for m in messages]
    assert kinds == ["client-ready", "trackStatus", "trackStatus", "send-text", "disconnect-bot"]


async def test_what_the_client_reports_fits_the_schema(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    validator = Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": "#/$defs/clientMessage"}]})
    tied, heard, seen = False, False, False
    while not (tied and heard and seen):
        report = await session.reports.get()
        validator.validate(report)
        told = report["data"]["d"]
        tied = tied or told.get("before") is not None
        heard = heard or bool(told.get("sound"))
        seen = seen or bool(told.get("pictures"))


async def test_it_pings_every_second(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    times = [await session.pings.get() for _ in range(3)]
    assert all(later - earlier >= 900 for earlier, later in itertools.pairwise(times))


async def test_mute_by_button_and_key(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    mute = page.get_by_role("button", name="Mute")
    session = await call(page, server)
    assert (await session.expect("signalling"))["enabled"] is True
    await mute.click()
    await expect(mute).to_have_attribute("aria-pressed", "true")
    await expect(page.locator("#state-hint")).to_have_text("You are muted.")
    assert await session.expect("signalling") == {
        "type": "trackStatus",
        "receiver_index": 0,
        "enabled": False,
    }
    await page.keyboard.press("m")
    await expect(mute).to_have_attribute("aria-pressed", "false")
    assert (await session.expect("signalling"))["enabled"] is True
    await page.get_by_label("Message to Vis").press("m")
    await expect(mute).to_have_attribute("aria-pressed", "false")
    await expect(page.get_by_label("Message to Vis")).to_have_value("m")


async def test_the_mute_key_can_be_switched_off(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await call(page, server)
    await page.get_by_role("button", name="Settings").click()
    await page.get_by_label("mutes the microphone").uncheck()
    await page.get_by_role("button", name="Done").click()
    await page.get_by_role("log").press("m")
    await expect(page.get_by_role("button", name="Mute")).to_have_attribute("aria-pressed", "false")


async def test_a_typed_message_connects_without_a_microphone(open_page: Open, server: FakeServer) -> None:
    script = "navigator.mediaDevices.getUserMedia = () => { throw new Error('asked for the microphone'); };"
    page = await open_page(server.url, microphone=False, script=script)
    await page.get_by_label("Message to Vis").fill("Hello there")
    await page.keyboard.press("Enter")
    session = await server.session()
    assert (await session.expect("send-text"))["content"] == "Hello there"
    await expect(page.get_by_role("listitem")).to_have_text(["YouHello there"])
    session.hear("Hello there")
    session.say("Hello.")
    await expect(page.get_by_role("listitem")).to_have_text(["YouHello there", "VisHello."])
    await expect(page.locator("#state-hint")).to_have_text("Type below. The microphone is off.")
    await expect(page.locator("#frame")).to_have_attribute("data-picture", "live")


async def test_a_microphone_can_be_turned_on_in_a_call_by_text(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    await page.get_by_label("Message to Vis").fill("Hello")
    await page.keyboard.press("Enter")
    session = await server.session()
    await page.get_by_role("button", name="Turn on microphone").click()
    await expect(page.get_by_role("button", name="Mute")).to_have_attribute("aria-pressed", "false")
    while not (await session.expect("signalling"))["enabled"]:
        pass
    receiver = next(t.receiver for t in session.pc.getTransceivers() if t.kind == "audio")
    assert (await receiver.track.recv()).sample_rate == 48_000


async def test_text_from_anyone_stays_text(open_page: Open, server: FakeServer) -> None:
    attack = "<img/src=x/onerror=document.title='owned'>"
    server.config["name"] = attack
    page = await open_page(server.url)
    session = await call(page, server)
    await page.locator("#message").fill(attack)
    await page.keyboard.press("Enter")
    session.hear(attack)
    session.say(attack)
    session.send("error", {"error": attack, "fatal": False})
    await expect(page.get_by_role("listitem")).to_have_count(3)
    await expect(page.locator("#captions")).to_have_text(attack)
    await expect(page.locator("#log img, #captions img, main [src='x']")).to_have_count(0)
    assert await page.title() == f"{attack} · Visavis"


async def test_rubbish_on_the_channel_is_let_pass(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    for text in ["{", "null", "pong", '{"label":"rtvi-ai","type":"bot-tts-text","data":7}', "x" * 60_000]:
        session.send_raw(text)
    session.send("of-a-later-version", {"text": "?"})
    session.send("bot-tts-text", {"text": 5})
    session.say("Fine.")
    await expect(page.get_by_role("listitem")).to_have_text(["VisFine."])


async def test_the_composer_keeps_to_the_limit_and_sends_by_enter_alone(
    open_page: Open, server: FakeServer
) -> None:
    server.config["max_text_chars"] = 10
    page = await open_page(server.url)
    session = await call(page, server)
    message = page.get_by_label("Message to Vis")
    send = page.get_by_role("button", name="Send")
    await expect(send).to_be_disabled()
    await message.fill("   ")
    await expect(send).to_be_disabled()
    await message.press_sequentially("123456789012")
    assert len(await message.input_value()) == 10
    await expect(page.locator(".counter")).to_have_text("0 characters left")
    await message.fill("one")
    await message.press("Shift+Enter")
    await message.press_sequentially("two")
    await message.press("Enter")
    assert (await session.expect("send-text"))["content"] == "one\ntwo"
    await expect(message).to_have_value("")


async def test_leaving_the_page_hangs_up(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    await page.goto("about:blank")
    await session.expect("disconnect-bot")
    await session.closed.wait()


async def test_captions_can_be_hidden(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    await page.get_by_role("button", name="Captions").click()
    session.say("Unseen.")
    await expect(page.get_by_role("listitem")).to_have_text(["VisUnseen."])
    await expect(page.locator("#captions")).to_be_hidden()


@pytest.mark.parametrize("push_to_talk", [False, True])
@pytest.mark.parametrize(("width", "height"), [(375, 667), (360, 740), (768, 1024), (740, 375)])
async def test_a_phone_or_a_tablet_shows_the_whole_call_on_one_screen(
    open_page: Open, server: FakeServer, width: int, height: int, push_to_talk: bool
) -> None:
    page = await open_page(server.url, viewport={"width": width, "height": height})
    if push_to_talk:
        await hold_to_talk(page)
    session = await call(page, server)
    for turn in range(8):
        session.hear(f"Where are you for the {turn}th time?")
        session.say("Right here, with you.")
        session.end_reply()
    await expect(page.get_by_role("log").get_by_role("listitem")).to_have_count(16)
    for shown in (page.locator("#frame"), page.get_by_label("Message to Vis")):
        await expect(shown).to_be_in_viewport(ratio=1)
    assert await page.evaluate("document.documentElement.scrollHeight") <= height
    assert await page.locator("#log").evaluate("(log) => log.clientHeight") >= (96 if height > width else 64)


async def test_another_microphone_can_be_chosen(open_page: Open, server: FakeServer) -> None:
    page = await open_page(server.url)
    session = await call(page, server)
    await page.get_by_role("button", name="Settings").click()
    microphone = page.get_by_role("combobox", name="Microphone")
    options = await microphone.locator("option").all_text_contents()
    assert len(options) > 1
    await microphone.select_option(options[1])
    chosen = "document.querySelector('#microphone').value"
    assert await page.evaluate(chosen)
    await session.expect("signalling")
    assert (await session.expect("signalling"))["enabled"] is True


async def test_sound_that_needs_a_tap_gets_one(open_page: Open, server: FakeServer) -> None:
    script = """
      const play = HTMLMediaElement.prototype.play;
      let gesture = false;
      addEventListener("click", (event) => { gesture ||= event.target.closest("#hear") !== null; }, true);
      HTMLMediaElement.prototype.play = function () {
        if (!gesture && !this.muted) return Promise.reject(new DOMException("", "NotAllowedError"));
        return play.call(this);
      };
    """
    page = await open_page(server.url, script=script)
    await call(page, server)
    hear = page.get_by_role("button", name="Tap to hear")
    await expect(page.locator("#frame")).to_have_attribute("data-picture", "live")
    await hear.click()
    await expect(hear).to_be_hidden()
    assert await page.evaluate("!document.querySelector('#avatar').muted")
