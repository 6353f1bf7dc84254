"""A reply's markdown as it streams → the plain text that is cut into clauses and spoken.

Lines are structure (headings, lists, tables, fences), words are markup (`inline.py`). A word is held
back until it is complete, which the clause cutter needs too; only what cannot be understood in part
is held for longer: a link, inline code, a tag, a table row.
"""

import re
from dataclasses import dataclass

from pipeline.tts.inline import words_of

_HOLD = 120
"""Characters after which an opened link, tag or code span is taken for plain text."""

_SPACE = re.compile(r"\s+")
_TOKEN = re.compile(r"(?:(?!```)\S)+|\S+")
_NEXT_TOKEN = re.compile(r"[^\S\n]*\n?[^\S\n]*\S+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_RULE = re.compile(r"([-*_=])\1{2,}|[|:-][\s|:-]*-[\s|:-]*")
"""A thematic break, a heading's underline, or the rule under a table's head."""
_RULE_CHARACTERS = frozenset("-*_=|: \t\r")
_QUOTE = re.compile(r">[> ]*")
_MARKER = re.compile(r"(?:#{1,6}|[-*+•‣◦▪–]|\[[ xX]\])(?=\s)")
_NUMBER = re.compile(r"\d{1,3}[.)](?=\s)")
_COMPLETE = re.compile(
    r"(?<!`)(`{1,3})(?!`).+?(?<!`)\1(?!`)|<!--(?:(?!<!--).)*?-->|</?[a-zA-Z][^<>]*>"
    r"|\[[^\[\]]*\](?:(?!\()|\([^()]*(?:\([^()]*\)[^()]*)*\))",
    re.DOTALL,
)
_OPENED = re.compile(r"`|<!--|</?[a-zA-Z][^<>]*\Z|\[[^\[\]]*\Z|\]\(", re.DOTALL)
_CLOSERS = "\"'”’)]»"
_ENDS = (".", "!", "?", ":", ";", ",", "…", "—")


@dataclass(frozen=True, slots=True)
class _Line:
    """What is known of the rest of a line."""

    text: str
    end: int
    """Of its text, in what is unread."""
    complete: bool


class _IncompleteError(Exception):
    """What comes next cannot be told from the text so far."""


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
        try:
            while position < len(self._unread):
                position = self._step(position, last, spoken)
        except _IncompleteError:
            pass
        self._unread = self._unread[position:]
        return "".join(spoken)

    def _step(self, position: int, last: bool, spoken: list[str]) -> int:
        """Read one thing at `position`; returns where it ends. Raises _IncompleteError."""
        line = self._line(position, last)
        if self._fence:
            return self._skip_fenced(line)
        if space := _SPACE.match(self._unread, position):
            self._pass_space(space[0])
            return space.end()
        token = _TOKEN.match(self._unread, position)
        if token is None or (token.end() == len(self._unread) and not last):
            raise _IncompleteError
        if line.text.startswith("```") or (self._line_start and line.text.startswith("~~~")):
            after = self._open_fence(position, line)
        elif self._line_start:
            after = self._structure(position, line, spoken)
        else:
            after = position
        return after if after > position else self._inline(position, token.end(), last, spoken)

    def _line(self, position: int, last: bool) -> _Line:
        end = self._unread.find("\n", position)
        if end < 0:
            return _Line(self._unread[position:], len(self._unread), complete=last)
        return _Line(self._unread[position:end], end, complete=True)

    def _skip_fenced(self, line: _Line) -> int:
        if not line.complete:
            raise _IncompleteError
        text = line.text.strip()
        if _FENCE.fullmatch(text) and text.startswith(self._fence):
            self._fence = ""
            self._stop_due = True
            return line.end
        return min(line.end + 1, len(self._unread))

    def _open_fence(self, position: int, line: _Line) -> int:
        """Past the line, unless the fence is closed on it: then it is inline code."""
        fence = line.text[: len(line.text) - len(line.text.lstrip(line.text[0]))]
        if fence in line.text[len(fence) :]:
            return position
        if not line.complete:
            raise _IncompleteError
        self._fence = fence
        return line.end

    def _structure(self, position: int, line: _Line, spoken: list[str]) -> int:
        """Past what gives a line its form, at its start: a rule, a table row, a marker."""
        if not line.complete and _RULE_CHARACTERS.issuperset(line.text):
            raise _IncompleteError
        if _RULE.fullmatch(line.text.rstrip()):
            self._stop_due = True
            return line.end
        if line.text.startswith("|"):
            if not line.complete:
                raise _IncompleteError
            self._structural = True
            cells = (" ".join(words_of(cell)) for cell in line.text.strip().strip("|").split("|"))
            self._say(", ".join(filter(None, cells)).split(), spoken, line.text)
            return line.end
        if quote := _QUOTE.match(self._unread, position):
            return quote.end()
        if marker := _MARKER.match(self._unread, position):
            self._structural = self._stop_due = True
            return marker.end()
        if _NUMBER.match(self._unread, position):
            self._structural = self._stop_due = True
        return position

    def _inline(self, position: int, token_end: int, last: bool, spoken: list[str]) -> int:
        end = self._piece_end(position, token_end, last)
        self._line_start = False
        piece = self._unread[position:end]
        self._say(words_of(piece), spoken, piece)
        return end

    def _pass_space(self, space: str) -> None:
        self._space = True
        if "\n" in space:
            self._newlines += space.count("\n")
            self._stop_due |= self._structural or self._newlines > 1
            self._structural = False
            self._line_start = True

    def _piece_end(self, start: int, token_end: int, last: bool) -> int:
        """Where the markup that opens in a word is closed; the word's own end when it never is."""
        end = token_end
        while _OPENED.search(_COMPLETE.sub("", _COMPLETE.sub("", self._unread[start:end]))):
            more = _NEXT_TOKEN.match(self._unread, end)
            if more is None:
                if last or self._unread.count("\n", end) > 1:
                    return token_end
                raise _IncompleteError
            if more.end() - start > _HOLD:
                return token_end
            if more.end() == len(self._unread) and not last:
                raise _IncompleteError
            end = more.end()
        return end

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
