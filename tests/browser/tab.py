"""Tabs of a browser that Playwright does not know: it has those that it knows believe they are in front."""

import asyncio
import itertools
import json
from contextlib import suppress
from typing import Any

from playwright.async_api import Browser, CDPSession

BACKGROUND = (
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
)
"""Flags of Playwright's that a browser must not have whose tabs are to be in the background."""


class Tab:
    """A tab of the browser's own profile. Made by `open_tab`."""

    def __init__(self, devtools: CDPSession, target: str, session: str) -> None:
        self._devtools = devtools
        self._target = target
        self._session = session
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        devtools.on("Target.receivedMessageFromTarget", self._receive)

    async def show(self) -> None:
        """Bring it to the front of its window."""
        await self._devtools.send("Target.activateTarget", {"targetId": self._target})

    async def run(self, script: str) -> Any:
        """The value of an expression, or of what it promises; it runs as if somebody had clicked."""
        wanted = {"expression": script, "awaitPromise": True, "returnByValue": True, "userGesture": True}
        answer = await self._send("Runtime.evaluate", wanted)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, condition: str, timeout: float = 20.0) -> None:
        """Return once an expression is true; it is looked at whenever the page changes."""
        look = f"""
          new Promise((done) => {{
            const look = () => ({condition}) && (watch.disconnect(), done());
            const watch = new MutationObserver(look);
            const all = {{ subtree: true, childList: true, characterData: true, attributes: true }};
            watch.observe(document, all);
            look();
          }})
        """
        async with asyncio.timeout(timeout):
            await self.run(look)

    async def _send(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        text = json.dumps({"id": number, "method": method, "params": parameters})
        await self._devtools.send("Target.sendMessageToTarget", {"sessionId": self._session, "message": text})
        return await answer

    def _receive(self, event: dict[str, Any]) -> None:
        message = json.loads(event["message"])
        if event["sessionId"] == self._session:
            with suppress(KeyError):  # an event
                self._answers.pop(message["id"]).set_result(message.get("result", {}))


async def open_tab(browser: Browser, url: str) -> Tab:
    """In front of all others; it may use the microphone."""
    devtools = await browser.new_browser_cdp_session()
    await devtools.send("Browser.grantPermissions", {"permissions": ["audioCapture"]})
    target = (await devtools.send("Target.createTarget", {"url": url}))["targetId"]
    attached = await devtools.send("Target.attachToTarget", {"targetId": target, "flatten": False})
    return Tab(devtools, target, attached["sessionId"])
