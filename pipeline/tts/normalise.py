"""A reply's markdown as it streams → the plain text that is cut into clauses and spoken.

Lines are structure (headings, lists, tables, fences), words are markup (`inline.py`). A word is held
back until it is complete, which the clause cutter needs too; only what cannot be understood in part
is held for longer: a link, inline code, a tag, a table row.
"""

import re

from pipeline.tts.characters import has_speech
from pipeline.tts.inline import words_of

_HOLD = 120
"""Characters after which an opened link, tag or code span is taken for plain text."""

_SPACE = re.compile(r"\s+")
_TOKEN = re.compile(r"(?:(?!```)\S)+|\S+")
_NEXT_TOKEN = re.compile(r"[^\S\n]*\n?[^\S\n]*\S+")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_RULE = re.compile(r"([-*_=])\1{2,}|[|:-][\s|:-]*-[\s|:-]*")
"""A thematic break, a heading's underline, or the rule under a table's head."""
_RULE_CHARACTERS = frozenset("-*_=|: \t\r")
_MARKER = re.compile(r"(?:>|(?:#{1,6}|[-*+•‣◦▪–]|\[[ xX]\])(?=\s))")
_NUMBER = re.compile(r"\d{1,3}[.)](?=\s)")
_COMPLETE = re.compile(
    r"(`+)(?!`).+?(?<!`)\1(?!`)|<!--.*?-->|</?[a-zA-Z][^<>]*>"
    r"|\[[^\[\]]*\](?:(?!\()|\([^()]*(?:\([^()]*\)[^()]*)*\))",
    re.DOTALL,
)
_OPENED = re.compile(r"`|<!--|</?[a-zA-Z][^<>]*\Z|\[[^\[\]]*\Z|\]\(", re.DOTALL)
_CLOSERS = "\"'”’)]»"
_ENDS = (".", "!", "?", ":", ";", ",", "…", "—")


def speakable(text: str) -> str:
    """The plain text of a whole reply; empty when there is nothing to say."""
    stream = SpeakableText()
    spoken = stream.feed(text) + stream.finish()
    return spoken if has_speech(spoken) else ""


class SpeakableText:
    """One reply's markdown in, plain text out, the same however the reply is chopped.

    Dropped: fenced code, emoji, control characters, scripts the voice cannot read, HTML tags, rules.
    A heading, list item, table row or paragraph that ends without punctuation is given a full stop,
    so that it is cut and spoken as one. The numbers of list items stay.
    """

    def __init__(self) -> None:
        self._unread = ""
        self._fence = ""
        self._line_start = True
        self._structural = False
        """The line is a heading, list item or table row; it ends a sentence."""
        self._stop_due = False
        self._newlines = 0
        self._space = False
        self._last_word = ""

    def feed(self, text: str) -> str:
        """What is known to be spoken by now, in order."""
        self._unread += text
        return self._read(last=False)

    def finish(self) -> str:
        """The rest, at the end of the reply."""
        return self._read(last=True)

    def _read(self, *, last: bool) -> str:
        spoken: list[str] = []
        position = 0
        while position < len(self._unread):
            after = self._step(position, last, spoken)
            if after is None:
                break
            position = after
        self._unread = self._unread[position:]
        return "".join(spoken)

    def _step(self, position: int, last: bool, spoken: list[str]) -> int | None:
        """Read one thing at `position`; returns where it ends, None when more text is needed."""
        line_end = self._unread.find("\n", position)
        line_complete = last or line_end >= 0
        line_end = line_end if line_end >= 0 else len(self._unread)
        line = self._unread[position:line_end]
        if self._fence:
            return self._skip_fenced(line, line_end) if line_complete else None
        if space := _SPACE.match(self._unread, position):
            self._pass_space(space[0])
            return space.end()
        token = _TOKEN.match(self._unread, position)
        if token is None or (token.end() == len(self._unread) and not last):
            return None
        if line.startswith("```") or (self._line_start and line.startswith("~~~")):
            fence = _FENCE.match(line)
            closes = fence is not None and fence[1] in line[fence.end() :]
            if not (closes or line_complete):
                return None
            if fence and not closes:
                self._fence = fence[1]
                return line_end
        if self._line_start:
            if not line_complete and _RULE_CHARACTERS.issuperset(line):
                return None
            if _RULE.fullmatch(line.rstrip()):
                self._stop_due = True
                return line_end
            if line.startswith("|"):
                if line_complete:
                    self._say_row(line, spoken)
                return line_end if line_complete else None
            if marker := _MARKER.match(self._unread, position):
                if marker[0] != ">":
                    self._structural = self._stop_due = True
                return marker.end()
            if _NUMBER.match(self._unread, position):
                self._structural = self._stop_due = True
        end = self._piece_end(position, token.end(), last)
        if end is None:
            return None
        self._line_start = False
        piece = self._unread[position:end]
        self._say(words_of(piece).split(), spoken, piece)
        return end

    def _skip_fenced(self, line: str, line_end: int) -> int:
        if _FENCE.fullmatch(line.strip()) and line.strip().startswith(self._fence):
            self._fence = ""
            self._stop_due = True
            self._line_start = False
            return line_end
        return min(line_end + 1, len(self._unread))

    def _pass_space(self, space: str) -> None:
        self._space = True
        if "\n" in space:
            self._newlines += space.count("\n")
            self._stop_due |= self._structural or self._newlines > 1
            self._structural = False
            self._line_start = True

    def _piece_end(self, start: int, token_end: int, last: bool) -> int | None:
        """Where the markup that opens in a word is closed; the word's own end when it never is."""
        end = token_end
        while True:
            piece = _COMPLETE.sub("", _COMPLETE.sub("", self._unread[start:end]))
            if not _OPENED.search(piece):
                return end
            more = _NEXT_TOKEN.match(self._unread, end)
            if more is None:
                paragraph_ends = self._unread.find("\n", self._unread.find("\n", end) + 1) >= 0
                return token_end if last or paragraph_ends else None
            if more.end() - start > _HOLD:
                return token_end
            if more.end() == len(self._unread) and not last:
                return None
            end = more.end()

    def _say_row(self, line: str, spoken: list[str]) -> None:
        self._structural = True
        self._line_start = False
        cells = (" ".join(words_of(cell).split()) for cell in line.strip().strip("|").split("|"))
        self._say(", ".join(filter(None, cells)).split(), spoken, line)

    def _say(self, words: list[str], spoken: list[str], source: str) -> None:
        if not words:
            return
        ended = self._last_word.rstrip(_CLOSERS).endswith(_ENDS)
        if self._last_word and self._stop_due and not ended:
            spoken.append(".")
        # Punctuation that followed something dropped, as an emoji, belongs to the word before.
        orphan = words[0][0] in _ENDS and words[0][0] != source[0]
        if self._last_word and (self._space or self._newlines) and not (orphan and not self._newlines):
            spoken.append("\n" * min(self._newlines, 2) or " ")
        spoken.append(" ".join(words))
        self._last_word = words[-1]
        self._stop_due = self._space = False
        self._newlines = 0
