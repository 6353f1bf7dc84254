"""What a person at the screen would notice of a reply: that it sounds, and that the mouth moves with it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from playwright.async_api import Page

_RECORDER = (Path(__file__).parent / "recorder.js").read_text()

AUDIBLE = 0.003
"""RMS, −50 dBFS."""

OPEN = 0.004
"""Share of the mouth's region that is dark; a closed mouth shows nothing dark."""


@dataclass(frozen=True)
class Recording:
    """One value per frame that the browser showed, all of shape (frames,)."""

    audible: npt.NDArray[np.bool_]
    mouth_open: npt.NDArray[np.bool_]

    def mouth_open_share(self, *, while_audible: bool) -> float:
        return float(self.mouth_open[self.audible == while_audible].mean())


async def start_recording(page: Page, selector: str) -> None:
    """Record the video element at `selector` from its next frame on."""
    await page.evaluate(f"({_RECORDER})({selector!r})")


async def recording(page: Page) -> Recording:
    samples = await page.evaluate("window.recorded")
    return Recording(
        audible=np.array([sample["loudness"] > AUDIBLE for sample in samples]),
        mouth_open=np.array([sample["dark"] > OPEN for sample in samples]),
    )
