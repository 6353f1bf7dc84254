"""Chromium for the tests: the system's own, driven by Playwright, one per test session.

Everything here runs on one event loop, because Playwright's objects are bound to theirs.
"""

import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, async_playwright

from tests.browser.fake_server import FakeServer, fake_server

CHROMIUM = Path("/usr/bin/chromium")
STOCK = Path(__file__).parent / "stock"

FLAGS = (
    "--no-sandbox",
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-device-for-media-stream",
    # Quiet: nothing but the page and its server.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
    # An address that, unlike localhost, makes plain http an insecure context.
    "--host-resolver-rules=MAP insecure.test 127.0.0.1",
)

ACTION_TIMEOUT_MS = 15_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def chromium() -> Path:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed (apt-get install chromium)")
    return CHROMIUM


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """What tests/browser/stock/package.json pins, installed."""
    modules = STOCK / "node_modules"
    if not modules.exists():
        pytest.skip(f"{modules} is missing (npm ci in {STOCK}; make test does it)")
    return modules


@pytest.fixture(scope="session")
def stock_client(node_modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page around Pipecat's stock client, bundled."""
    folder = tmp_path_factory.mktemp("stock")
    shutil.copy(STOCK / "talk.html", folder)
    esbuild = node_modules / ".bin" / "esbuild"
    bundle = [esbuild, STOCK / "talk.js", "--bundle", "--format=esm", f"--outfile={folder / 'talk.js'}"]
    subprocess.run(bundle, check=True, capture_output=True)
    return folder


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def playwright_driver(chromium: Path) -> AsyncIterator[Playwright]:
    async with async_playwright() as driver:
        yield driver


Launch = Callable[..., Awaitable[Browser]]


@pytest_asyncio.fixture(loop_scope="session")
async def launch(playwright_driver: Playwright) -> AsyncIterator[Launch]:
    """Starts a Chromium of the test's own, with more flags; closed after it."""
    async with AsyncExitStack() as started:

        async def start(*flags: str) -> Browser:
            browser = await playwright_driver.chromium.launch(
                executable_path=CHROMIUM, args=[*FLAGS, *flags], ignore_default_args=["--mute-audio"]
            )
            started.push_async_callback(browser.close)
            return browser

        yield start


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(playwright_driver: Playwright) -> AsyncIterator[Browser]:
    browser = await playwright_driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
    yield browser
    await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[FakeServer]:
    async with fake_server() as server:
        yield server


Open = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: Browser) -> AsyncIterator[Open]:
    """Opens a page in a fresh context and fails the test when the page threw anything."""
    thrown: list[str] = []
    contexts: list[BrowserContext] = []

    async def open_(url: str, *, microphone: bool = True, script: str = "", **options: Any) -> Page:
        context = await browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(ACTION_TIMEOUT_MS)
        if microphone:
            await context.grant_permissions(["microphone"])
        if script:
            await context.add_init_script(script)
        page = await context.new_page()
        page.on("pageerror", lambda error: thrown.append(str(error)))
        page.on("console", lambda message: thrown.extend(_violations(message)))
        await page.goto(url)
        return page

    yield open_
    for context in contexts:
        await context.close()
    assert thrown == []


def _violations(message: ConsoleMessage) -> Iterator[str]:
    if "Content Security Policy" in message.text:
        yield message.text


@pytest.fixture(scope="session")
def node() -> str:
    """A Node that has the browser's globals (CustomEvent, crypto): 20 or newer."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed (apt-get install nodejs)")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < 20:
        pytest.skip(f"node is {version}; the page's unit tests need 20 or newer")
    return found
