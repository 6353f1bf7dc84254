"""Whether real browsers can be run here."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import VisavisError

if TYPE_CHECKING:  # it is not installed with the product
    from playwright.async_api import Playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class BrowserMissingError(VisavisError):
    """There is no Chromium here, or nothing to drive it."""

    code = "browser_missing"


@asynccontextmanager
async def driver() -> "AsyncIterator[tuple[Playwright, Path]]":
    """Playwright and a Chromium for it. Raises BrowserMissingError."""
    try:
        from playwright.async_api import async_playwright
    except ModuleNotFoundError as error:
        raise BrowserMissingError(
            "--browser: the Python package playwright is not installed; run `pip install playwright`"
        ) from error
    async with async_playwright() as playwright:
        yield playwright, _chromium(playwright)


def _chromium(playwright: "Playwright") -> Path:
    """This machine's own, or the one that Playwright downloaded."""
    own = next((path for name in _NAMES if (path := shutil.which(name))), None)
    found = Path(own or playwright.chromium.executable_path)
    if not found.exists():
        raise BrowserMissingError(
            "--browser: there is no Chromium here; install your system's package (chromium), "
            "or run `playwright install chromium`"
        )
    return found
