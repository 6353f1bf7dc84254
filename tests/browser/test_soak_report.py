"""report.html of a soak in a browser: it loads nothing, fits a phone, and axe-core finds nothing serious."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Page

from services.lab.soak import page as report_page
from tests.browser.test_accessibility import violations
from tests.services.lab.soak.test_page import REPORTS

pytestmark = pytest.mark.browser

Open = Callable[..., Awaitable[Page]]


@pytest.fixture(scope="session")
def axe(node_modules: Path) -> str:
    return (node_modules / "axe-core" / "axe.min.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["bad", "nothing"])
async def test_the_report(
    open_page: Open, axe: str, tmp_path: Path, name: str, width: int, scheme: str
) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_page.render(REPORTS[name]), "utf-8")
    page = await open_page(
        file.as_uri(), microphone=False, color_scheme=scheme, viewport={"width": width, "height": 800}
    )
    loaded = await page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    assert loaded == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await violations(page, axe) == []
