from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.tts.characters import has_speech
from pipeline.tts.clauses import ClauseCutter
from pipeline.tts.normalise import SpeakableText


def speakable(text: str) -> str:
    """A whole reply's; empty when there is nothing to say."""
    stream = SpeakableText()
    spoken = stream.feed(text) + stream.finish()
    return spoken if has_speech(spoken) else ""


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("**Bold**, *it*, __under__, _it_, ~~gone~~, ***all***.", "Bold, it, under, it, gone, all."),
        ("# Title\n\nText", "Title.\n\nText"),
        ("Title\n=====\nText", "Title.\n\nText"),
        ("List:\n- one\n* two\n+ three!\n• four", "List:\none.\ntwo.\nthree!\nfour"),
        ("1. first\n2. second", "1. first.\n2. second"),
        ("- [ ] to do\n- [x] done", "to do.\ndone"),
        ("> quoted\n> text", "quoted\ntext"),
        ("a\n\n---\n\nb", "a.\n\nb"),
        ("--- no rule", "--- no rule"),
        ("See [the docs, here](https://a.b/c_(d) 'title') now.", "See the docs, here now."),
        ("[![logo](logo.png)](https://a.b) and ![a cat](cat.png)", "logo and a cat"),
        ("[text][ref] and [1] and [^note].", "text and and."),
        ("| Name | Age |\n|------|:---:|\n| Ann | 30 |\n\nEnd", "Name, Age.\n\nAnn, 30.\n\nEnd"),
        ("Use `print()` or `read me.txt`, never `x = [1]`.", "Use print or read me.txt, never."),
        ("Run:\n```python\nprint('secret')\n\nmore\n```\nDone.", "Run:\n\nDone."),
        ("Run: ```sh\nsecret\n```\nDone.", "Run:\nDone."),
        ("~~~\nsecret\n```\nsecret\n~~~\nDone.", "Done."),
        ("Run:\n```\nsecret to the end", "Run:"),
        ("Go to https://www.example.com:80/a/b?x=1#y. Or http://user@b.org!", "Go to example.com. Or b.org!"),
        ("Try example.com/path, <https://a.org/b> or www.c.net.", "Try example.com, a.org or c.net."),
        ("Mail <joe@example.org> or ann@example.org.", "Mail joe@example.org or ann@example.org."),
        ("a<br>b <b class='x y'>bold</b> &amp; H<sub>2</sub>O<!-- no -->", "a b bold & H2O"),
        ("Nice 🎉! 👍🏽 Family 👨‍👩‍👧 flag 🇫🇷 key 1️⃣ heart ❤️.", "Nice! Family flag key 1 heart."),
        ("a\x00b\x07 c\u200bd\ufeff\u202e e\ud800", "a b cd e"),
        ("你好 means hello, and привет too; π is 3.14.", "means hello, and too; π is 3.14."),
        ("𝐁𝐨𝐥𝐝 ｗｉｄｅ ﬁne Zoë ½", "Bold wide fine Zoë ½"),
        ("50% & $5 + 1 = 6, 20°C ≥ 5 < 7 → x", "50% & $5 + 1 = 6, 20°C ≥ 5 < 7 → x"),
        ("3 * 4 and 2*3", "3 × 4 and 2×3"),
        ("[[raw]] {x} \\*y\\*", "raw x y"),
        ("snake_case and __init__ stay", "snake_case and init stay"),
        ("key " + "x" * 51 + " gone", "key gone"),
        ("never `closed and [open too", "never closed and open too"),
        ("a\r\nb\r\n\r\nc", "a\nb.\n\nc"),
    ],
)
def test_markup_never_reaches_the_voice(markdown: str, expected: str) -> None:
    assert speakable(markdown) == expected
    stream = SpeakableText()
    assert "".join(map(stream.feed, markdown)) + stream.finish() == expected


@pytest.mark.parametrize(
    "text", ["", " \n", "🎉👍🏽", "你好，世界。", "مرحبا!", "```\ncode\n```", "---", "...", "<br/>"]
)
def test_nothing_to_say_is_empty(text: str) -> None:
    assert speakable(text) == ""


def test_a_fence_may_span_many_deltas() -> None:
    stream = SpeakableText()
    deltas = ["Run `", "``py", "thon\nfor x", " in y:\n", "``", "`\nThat is", " all."]
    assert "".join(map(stream.feed, deltas)) + stream.finish() == "Run.\nThat is all."


def test_words_come_out_as_soon_as_they_are_complete() -> None:
    stream = SpeakableText()
    assert stream.feed("The cap") == "The"
    assert stream.feed("ital, **of") == " capital,"
    assert stream.feed("** France") == " of"


def test_an_unclosed_bracket_does_not_silence_the_reply() -> None:
    stream = SpeakableText()
    assert len(stream.feed("[so " + "it goes on " * 30)) > 150


def test_the_cutter_sees_only_what_is_spoken() -> None:
    stream, cutter = SpeakableText(), ClauseCutter()
    text = stream.feed("See [my page](https://a.b/c?d=e. F) now. ```x. y```") + stream.finish()
    assert cutter.feed(text) + cutter.finish() == ["See my page now."]


SPANS = ["**b**", "[t](u v)", "![i](u)", "[ ]", "] (", "](", "`c d`", "<b>", "</b>", "<!-- c", "-->", "&amp;"]
LINES = ["\n", "\n\n", "\r\n", "- ", "1. ", "|a|b|\n", "---\n", "```", "~~~"]
WORDS = ["word", "two words", "x" * 60, "🎉", "你好", "https://a.b/c", " ", "  "]
FRAGMENTS = st.sampled_from([*"`*_~#>|<[]()!-=.:", *SPANS, *LINES, *WORDS])
MARKDOWN = st.one_of(st.lists(FRAGMENTS, max_size=40).map("".join), st.text(max_size=60))


@given(MARKDOWN, st.lists(st.integers(0, 300), max_size=30))
def test_chopping_changes_nothing(text: str, cuts: list[int]) -> None:
    whole = SpeakableText()
    expected = whole.feed(text) + whole.finish()
    edges = [0, *sorted(min(at, len(text)) for at in cuts), len(text)]
    for pieces in ([text[start:stop] for start, stop in pairwise(edges)], list(text)):
        stream = SpeakableText()
        assert "".join(map(stream.feed, pieces)) + stream.finish() == expected


@given(st.lists(st.from_regex(r"[A-Za-z]{1,9}[,.;]?", fullmatch=True), min_size=1, max_size=40))
def test_plain_text_passes_unchanged(words: list[str]) -> None:
    assert speakable(" ".join(words)) == " ".join(words)


@pytest.mark.parametrize(
    "piece", ["`", "[", "](", "<a", "<!--", "*", "...", "[](", "a.", "```", "|", "((", "_", "— "]
)
def test_hostile_text_takes_no_time_to_speak_of(piece: str) -> None:
    # A regex that backtracks would not end within the test run.
    speakable(piece * 5_000)
