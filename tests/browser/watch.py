"""Waiting for what a page shows. Playwright's wait_for_function would need eval, which the page forbids."""

import asyncio

from playwright.async_api import Page

TIMEOUT_S = 15.0


async def until(page: Page, condition: str, timeout: float = TIMEOUT_S) -> None:
    """Return once a JavaScript expression is true; it is looked at with every frame."""
    look = f"""
      new Promise((done) => {{
        const look = () => ({condition}) ? done() : requestAnimationFrame(look);
        look();
      }})
    """
    async with asyncio.timeout(timeout):
        await page.evaluate(look)
