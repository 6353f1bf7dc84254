"""What a person does to get the floor, or to give it up."""

from playwright.async_api import Page


async def hold_to_talk(page: Page) -> None:
    """Choose push-to-talk in the settings."""
    await page.get_by_role("button", name="Settings").click()
    await page.get_by_label("Hold a button to talk").check()
    await page.get_by_role("button", name="Done").click()
