"""A user of a soak with a browser: the demo page, whose microphone plays one question after the other."""

import math
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Error, Playwright

from pipeline.timeline.record import empty_record
from services.lab.soak import lines, spoken_script
from services.lab.soak.demo_page import DemoPage, open_page
from services.lab.soak.findings import Plan, Record
from services.lab.soak.spoken_script import Asked
from services.lab.soak.synthetic import failed
from services.lab.studio.speech import Spoken
from services.lab.synthetic_user import CallError

_LONGEST_REPLY = 45.0
"""Seconds after the last question of a file."""

_CUT_OFF_WITHIN = 2.0
"""Seconds after the end of the next question within which a reply that it interrupts is over."""

_MEASURED_WITHIN = 3.0
"""Seconds after a reply within which the server has made up its timeline."""

_AGAIN_AFTER = 3.0
"""Seconds until a page that could not be used is opened again."""


@dataclass(frozen=True, slots=True)
class Chromium:
    """What it takes to open pages. `folder` takes the files of their microphones."""

    playwright: Playwright
    executable: Path
    folder: Path


class ChromiumUser:
    """User number `number`, who says `said` in an order of its own."""

    def __init__(self, number: int, plan: Plan, said: Sequence[Spoken], chromium: Chromium) -> None:
        self._number = number
        self._plan = plan
        self._chromium = chromium
        self._rng = plan.rng(number)
        turns, seconds = plan.options.turns, plan.options.seconds or 0.0
        count = math.ceil(seconds / spoken_script.LISTENING) if turns is None else turns
        self._file = chromium.folder / f"user-{number}.wav"
        self._script = spoken_script.write(self._file, lines.shuffled(said, self._rng), count, self._rng)
        self._last = count - 1 if turns is not None and count <= len(self._script.questions) else None
        """Number of the question after which the file falls silent; None when it goes round."""
        self._call = AsyncExitStack()
        self._page: DemoPage | None = None
        self._asked = 0

    async def run(self) -> None:
        """Take every turn; one that could not be taken is a failed one, never a missing one."""
        clock = self._plan.clock
        try:
            for _ in self._plan.rounds():
                asked = self._script.asked(self._asked)
                try:
                    await self._take(await self._opened(), self._asked)
                    self._asked += 1
                except (CallError, Error) as error:
                    reason = CallError(str(error).split("\n", 1)[0])
                    self._keep(failed(asked.spoken, reason), asked, clock.now(), str(reason))
                    await self._close()
                    await clock.sleep_until(clock.now() + _AGAIN_AFTER)
        finally:
            await self._close()

    async def _opened(self) -> DemoPage:
        if self._page is None:
            relay = await self._call.enter_async_context(self._plan.relay(self._rng))
            microphone = str(self._file) if self._last is None else f"{self._file}%noloop"
            chromium, plan = self._chromium, self._plan
            self._page = await self._call.enter_async_context(
                open_page(chromium.playwright, chromium.executable, plan.url, plan.clock, microphone, relay)
            )
        return self._page

    async def _close(self) -> None:
        """Its file begins anew with the next page."""
        self._page, self._asked = None, 0
        await self._call.aclose()

    async def _take(self, page: DemoPage, number: int) -> None:
        """Question `number` of the file and all turns that the server makes of it."""
        if page.began is None:
            raise CallError("the page did not open its microphone")
        asked, following = self._script.asked(number), self._script.asked(number + 1)
        end, next_onset = page.began + asked.end, page.began + following.onset
        deadline = page.began + following.end + _CUT_OFF_WITHIN
        if number == self._last:
            next_onset, deadline = math.inf, end + _LONGEST_REPLY

        def answered() -> bool:
            last = page.turns[-1] if page.turns else None
            if last is None or last.at < end:
                return False
            # A longer reply is interrupted by the next question; this one's own words go on in a new turn.
            return not last.data["interrupted"] or last.at > next_onset

        await page.until(answered, deadline)
        turns = [told.data for told in page.turns]
        has_answer = answered()
        page.turns.clear()
        if turns:
            newest = turns[-1]["turn_id"]
            await page.until(lambda: newest in page.measured, self._plan.clock.now() + _MEASURED_WITHIN)
        for turn in turns:
            record = {**turn, **page.measured.pop(turn["turn_id"], {})}
            self._keep(_joined(record, asked, whole=has_answer and len(turns) == 1), asked, end)
        if not has_answer:
            self._keep(_joined({**empty_record(), "failed": "no_reply"}, asked, whole=True), asked, end)

    def _keep(self, record: Record, asked: Asked, at: float, error: str | None = None) -> None:
        marked = self._plan.marked(record, user=self._number, at=at, said=asked.spoken.text, error=error)
        self._plan.keep(marked)


def _joined(record: Record, asked: Asked, *, whole: bool) -> dict[str, Any]:
    """Marked as any client's; what does not answer the whole question has no time to it."""
    timed = {} if whole else {"time_to_first_audio_ms": None, "time_to_first_sound_ms": None}
    said = {"file": asked.spoken.file.path.name, "premature": not whole}
    return {
        **record,
        **timed,
        **said,
        "ledger_first_audio_ms": None if not whole else record["time_to_first_audio_ms"],
    }
