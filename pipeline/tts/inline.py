"""Markup inside a line → the words in it: emphasis, links, code, HTML, URLs."""

import html
import re

from pipeline.tts.characters import sayable

LONGEST_WORD = 50
"""Characters. Longer runs are keys, hashes or a model stuck in a loop, and nothing to listen to."""

_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->", re.DOTALL)
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]+|[^\s<>@]+@[^\s<>]+)>")
_BREAKING_TAG = re.compile(r"</?(?:br|p|div|li|ul|ol|td|th|tr|hr|h[1-6])\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*(?:\([^()]*\)[^()]*)*\)")
_REFERENCE_LINK = re.compile(r"!?\[([^\[\]]+)\]\[[^\[\]]*\]")
_CITATION = re.compile(r"\[\^?\d+\]|\[\^[^\[\]]*\]|【[^【】]*】")
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_URL = re.compile(r"\b(?:(?:https?|ftp)://|www\.)([^\s<>\"'()\[\]{}]+)", re.IGNORECASE)
_BARE_URL = re.compile(
    r"(?<![\w@./-])(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?[/?#][^\s<>\"'()\[\]{}]*", re.IGNORECASE
)
_HOST = re.compile(r"(?:[^@/?#]*@)?(?:www\.)?([^:/?#]*[^:/?#.,;!])[^\s]*?([.,:;!?]*)\Z")
_READABLE_CODE = re.compile(r"[^\W\d_]\w*(?:[ .'-]\w+)*")
_EMPHASIS = re.compile(r"\*+(?=\S)|(?<=\S)\*+|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)|~~|`+")
_TIMES = re.compile(r"(?<=\d)\*(?=\d)|(?<!\S)\*(?!\S)")
_LEFTOVER = re.compile(r"[\[\]{}\\|^]+|<(?=\S)|(?<=\S)>(?!\S)")


def words_of(text: str) -> list[str]:
    """The words to be said of a piece of a line.

    A link is its text, an image its description. A URL is its host ("example.com": espeak says the
    dot), since nobody follows a path by ear. Inline code is said when it reads as words (`print`,
    `pip install`, `readme.txt`) and dropped when it does not. Citations ([1]) are dropped,
    so is a word longer than LONGEST_WORD.
    """
    text = _COMMENT.sub(" ", text)
    text = _CODE.sub(_code, text)
    text = _AUTOLINK.sub(lambda match: match[1].removeprefix("mailto:"), text)
    text = _TAG.sub("", _BREAKING_TAG.sub(" ", text))
    text = html.unescape(text)
    text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))  # an image may be inside a link
    text = _REFERENCE_LINK.sub(r"\1", text)
    text = _CITATION.sub("", text)
    text = _URL.sub(lambda match: _host(match[1]), text)
    text = _BARE_URL.sub(lambda match: _host(match[0]), text)
    text = _EMPHASIS.sub("", _TIMES.sub("×", text))
    words = sayable(_LEFTOVER.sub(" ", text)).split()
    return [word for word in words if len(word) <= LONGEST_WORD]


def _code(match: re.Match[str]) -> str:
    code = match[2].strip().removesuffix("()")
    return code.replace("_", " ") if _READABLE_CODE.fullmatch(code) else ""


def _host(address: str) -> str:
    match = _HOST.match(address)
    return match[1] + match[2] if match else ""
