"""Which characters an English espeak voice can say, and what happens to the others."""

import re
import unicodedata

_PUNCTUATION = frozenset("!\"#%&'()*,-./:;?@[]_{}“”‘’‚„«»‹›–—…·′″§¿¡")
_SYMBOLS = frozenset("+<=>~±×÷≈≠≤≥−→°©®™¼½¾²³¹")
"""Those espeak names in words: "greater or equal to", "degrees", "a half"."""
_STYLED = ("FULLWIDTH ", "MATHEMATICAL ", "LATIN SMALL LIGATURE ", "DOUBLE-STRUCK ")
_WORD = re.compile(r"[^\W\d_]+")


def has_speech(text: str) -> bool:
    """Whether there is anything to say: a letter or a digit."""
    return any(map(str.isalnum, text))


def sayable(text: str) -> str:
    """`text` without what the voice cannot say.

    Emoji, control, format and private characters go. So do letters that are not Latin: espeak would
    say "Chinese letter" for each. A single Greek letter stays ("π", "μ"); a Greek word goes. Letters
    in a mathematical or full-width style become plain ones.
    """
    text = unicodedata.normalize("NFC", text)
    text = _WORD.sub(lambda run: _latin(run[0]), text)
    return "".join(map(_plain, text))


def _latin(run: str) -> str:
    if len(run) == 1 and unicodedata.name(run, "").startswith("GREEK"):
        return run
    return "".join(
        unicodedata.normalize("NFKC", letter) if name.startswith(_STYLED) else letter
        for letter in run
        if (name := unicodedata.name(letter, "")).startswith(("LATIN", *_STYLED)) or letter in _SYMBOLS
    )


def _plain(character: str) -> str:
    category = unicodedata.category(character)
    if category.startswith("L") or character in _PUNCTUATION or character in _SYMBOLS or category == "Sc":
        return character
    if category.startswith("Z") or character in "\n\t\r\v\f":
        return character if character == "\n" else " "
    if category.startswith("N"):
        plain = unicodedata.normalize("NFKC", character)
        return plain if plain.isascii() and plain.isdigit() else ""
    return " " if category == "Cc" else ""
