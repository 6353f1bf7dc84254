"""report.html: one file, well-formed, readable by everybody, that asks for nothing else."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from services.lab.soak import page
from tests.services.lab.soak.canned import FREEZE, GAP, STALL, built, failed, findings, record

VOID = {"meta", "br", "link", "img", "hr", "input"}

BAD = [
    record(900.0, at=12.0, speech_gaps=[GAP], render_freezes=[FREEZE, STALL]),
    record(1000.0, at=13.0),
    record(2500.0, at=14.0, said='What about <b>tags</b> & "quotes"?'),
    record(None, at=16.0, premature=True),
    failed(at=18.0),
    record(650.0, at=20.0, client="chromium"),
]

REPORTS = {
    "good": built(findings(*(record(600.0 + 10 * k, at=5.0 * k) for k in range(9)))),
    "bad": built(findings(*BAD), network="lossy"),
    "nothing": built(findings(samples=[], began=None, ended=None, stopped_by="SIGINT")),
    "only failures": built(findings(failed(), failed())),
    "nothing seen": built(
        findings(record(stages=None, speech_gaps=None, render_freezes=None, av_skew_ms=None), samples=[])
    ),
    "one value": built(findings(record(700.0, at=0.0), ended=0.0)),
}


class Elements(HTMLParser):
    """All elements, each with its parents; complains of one that is not closed, or that was not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs), tuple(self._open)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, *tags: str) -> list[tuple[str, dict[str, str | None], tuple[str, ...]]]:
        return [each for each in self.found if each[0] in tags]


@pytest.fixture(params=REPORTS)
def html(request: pytest.FixtureRequest) -> str:
    return page.render(REPORTS[request.param])


def test_it_is_well_formed_and_asks_for_nothing(html: str) -> None:
    elements = Elements(html)
    assert elements.all("script", "link", "img", "iframe", "object", "video") == []
    attributes = {name for _, found, _ in elements.found for name in found}
    assert not attributes & {"src", "href", "xlink:href", "srcset", "action"}
    assert not {name for name in attributes if name.startswith("on")}
    assert "://" not in html
    assert "url(" not in html
    assert "@import" not in html


def test_pictures_and_tables_can_be_read_by_a_machine(html: str) -> None:
    elements = Elements(html)
    assert elements.found[0] == ("html", {"lang": "en"}, ())
    for _, attributes, _ in elements.all("svg"):
        assert attributes["role"] == "img"
        assert attributes["aria-label"]
    tables = len(elements.all("table"))
    assert len(elements.all("caption")) == tables
    for _, attributes, _ in elements.all("th"):
        assert attributes["scope"] in ("col", "row")
    assert re.search(r"<th[^>]*></th>", html) is None
    assert not re.search(r"\b(nan|inf|None)\b", html)
    headings = [int(tag[1]) for tag, _, _ in elements.all("h1", "h2", "h3")]
    assert headings[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(headings))


def test_it_has_both_colour_schemes(html: str) -> None:
    assert "color-scheme: light dark" in html
    assert "prefers-color-scheme: dark" in html
    used = set(re.findall(r"var\((--[a-z]+)\)", html))
    light, dark = html.split("@media", 1)
    assert used <= set(re.findall(r"(--[a-z]+):", light))
    colours = set(re.findall(r"(--[a-z]+):", dark.split("body", 1)[0]))
    assert used <= colours


def titles(html: str) -> list[str]:
    return re.findall(r"<h3>(.*?)</h3>", html)


def test_every_plot_is_there() -> None:
    html = page.render(REPORTS["bad"])
    shown = titles(html)
    for title in (
        "Time to first audio",
        "The median turn: “Why is the sky blue?”, 1000 ms",
        "Speech gaps and freezes",
        "Skew of sound and picture",
        "Memory of the server",
        "Loop lag, worst of two seconds",
    ):
        assert title in shown
    assert any(title.startswith("The worst turn: “What about &lt;b&gt;") for title in shown)
    assert html.count("<svg") == 13, "five for each client, less one that had no gap, and the server's four"


def test_what_went_wrong_is_told() -> None:
    text = Elements(page.render(REPORTS["bad"])).text
    for told in (
        "Not every limit holds.",
        "failed: call_failed (no server answers)",
        "gap 80 ms, tts",
        "freeze 350 ms, render",
        'What about <b>tags</b> & "quotes"?',
        "lossy",
        "broken",
    ):
        assert told in text


def test_a_good_run_says_so() -> None:
    text = Elements(page.render(REPORTS["good"])).text
    assert "Every limit holds." in text
    assert "broken" not in text
    assert "No turn failed" in text


def test_an_early_end_is_told() -> None:
    text = Elements(page.render(REPORTS["nothing"])).text
    assert "ended early, by SIGINT" in text
    assert "not measured" in text


def test_limits_that_were_changed_are_flagged() -> None:
    found = {**REPORTS["good"], "slo": {**REPORTS["good"]["slo"], "shipped": False}}
    assert "<strong>not the file</strong> that Visavis ships" in page.render(found)
    assert "<strong>" not in page.render(REPORTS["good"])


@pytest.mark.parametrize(("took", "label"), [(60.0, "seconds"), (1200.0, "minutes")])
def test_time_is_told_in_units_of_its_length(took: float, label: str) -> None:
    html = page.render(built(findings(record(speech_gaps=[GAP]), ended=took)))
    assert html.count(f">{label}</text>") == 6, "stumbles, skew, and the server's four"
