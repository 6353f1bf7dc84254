"""How each word of a clause is said, where espeak would get it wrong.

espeak says "dollar five" for $5 and "twelve zero zero" for 12:00, ends a sentence after "Dr.", reads
"[[" as the start of phonemes and makes no pause at "…". Everything else (numbers, &, %, +, =, °) is
left to it. The rules are English.
"""

import re
from collections.abc import Sequence

from pipeline.tts.language import Language

_OPENERS = "\"'“‘({«¿¡"
_CLOSERS = "\"'”’)}»,;:!?"
_PARTS = re.compile(rf"([{_OPENERS}]*)(.*?)(\.?)([{_CLOSERS}.]*)", re.DOTALL)
_FIRST_ELLIPSIS = re.compile(r"^(?:\.\.|…)[.…]*")
_LAST_ELLIPSIS = re.compile(rf"(?:\.\.|…)[.…]*(?=[{_CLOSERS}]*$)")
_ELLIPSIS = re.compile(r"(?:\.\.|…)[.…]*")
_MONEY = re.compile(r"([$£€¥₹])(\d[\d,]*)(\.\d+)?(k|K|m|M|mn|bn|B|T)?")
_CURRENCIES = {
    "$": ("dollar", "dollars", "cents"),
    "£": ("pound", "pounds", "pence"),
    "€": ("euro", "euros", "cents"),
    "¥": ("yen", "yen", ""),
    "₹": ("rupee", "rupees", "paise"),
}
_THOUSAND, _MILLION, _BILLION, _TRILLION = _SCALES = ("thousand", "million", "billion", "trillion")
_SCALE_LETTERS = {
    "k": _THOUSAND,
    "K": _THOUSAND,
    "m": _MILLION,
    "M": _MILLION,
    "mn": _MILLION,
    "bn": _BILLION,
    "B": _BILLION,
    "T": _TRILLION,
}
_YEAR = re.compile(r"(1[1-9]|20)(\d)(\d)(s?)")
_DECADES = [
    "hundreds",
    "tens",
    "twenties",
    "thirties",
    "forties",
    "fifties",
    "sixties",
    "seventies",
    "eighties",
    "nineties",
]
_TIME = re.compile(r"(\d{1,2}):(\d)(\d)([ap]m)?", re.IGNORECASE)
_HALF_DAY = re.compile(r"[ap]\.?m\b", re.IGNORECASE)
_RANGE = re.compile(r"([\d.]+)([–-])([\d.]+)([^\d–-]*)")
_SINGLE_OR_DOTTED = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")
_DASH = re.compile(r"—|--+|(?<=[^\W\d_])–(?=[^\W\d_])")
_SLASH = re.compile(r"(?<=[^\W\d_])/(?=[^\W\d_])")
_NUMBERED = re.compile(r"#(?=\d)")
_ALONE = {
    **dict.fromkeys(("-", "--", "–", "—", "...", "…"), "—"),
    **dict.fromkeys(("→", "->", "=>"), "to"),
    "<": "less than",
    ">": "greater than",
}


def spoken_forms(words: Sequence[str], language: Language) -> list[str]:
    """What espeak is given for each word, in order; joined by spaces it is the clause to say."""
    forms: list[str] = []
    unit = ""
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        previous = words[index - 1] if index else ""
        form = _form(word, previous, following, language)
        if unit:
            form, unit = form.replace(_stem(word), f"{_stem(word)} {unit}", 1), ""
        money = _MONEY.fullmatch(word.lstrip(_OPENERS))
        if money and _stem(following).lower() in _SCALES:
            # "$5 million" is five million dollars.
            form, unit = form.replace(money[0], (money[2] + (money[3] or ""))), _CURRENCIES[money[1]][1]
        forms.append(form)
    return forms


def _stem(word: str) -> str:
    return word.strip(_OPENERS + _CLOSERS + ".")


def _form(word: str, previous: str, following: str, language: Language) -> str:
    if word in _ALONE:
        if word in "-–" and previous[-1:].isdigit() and following[:1].isdigit():
            return "minus" if word == "-" else "to"
        return _ALONE[word]
    word = _LAST_ELLIPSIS.sub(",", _FIRST_ELLIPSIS.sub("", word))
    word = _ELLIPSIS.sub(", ", word).replace("[", "").replace("]", "")
    parts = _PARTS.fullmatch(word)
    if parts is None:
        return word
    opening, stem, dot, closing = parts.groups()
    if dot and (said := _abbreviation(stem, following, language)):
        # Its dot would end the sentence for espeak; it is one only at the clause's end.
        return opening + said + ("" if following else dot) + closing
    return opening + _say(stem, following) + dot + closing


def _abbreviation(stem: str, following: str, language: Language) -> str | None:
    key = stem.lower()
    if key in language.counting and not following[:1].isdigit():
        return None
    if key == "st" and following[:1].isupper():
        return "saint"
    if key in language.spoken:
        return language.spoken[key]
    return stem if following and _SINGLE_OR_DOTTED.fullmatch(stem) else None


def _say(stem: str, following: str) -> str:
    if money := _MONEY.fullmatch(stem):
        return stem if _stem(following).lower() in _SCALES else _money(*money.groups())
    if time := _TIME.fullmatch(stem):
        return _time(time, following)
    if year := _YEAR.fullmatch(stem):
        return _year(*year.groups())
    span = _RANGE.fullmatch(stem)
    # 10-20 and 1999-2005 are ranges, 555-1234 is a telephone number.
    if span and (span[2] == "–" or len(span[1]) == len(span[3]) or max(map(len, (span[1], span[3]))) < 4):
        return f"{_say(span[1], '')} to {_say(span[3], '')}{span[4]}"
    stem = _NUMBERED.sub("number ", _DASH.sub(" — ", stem))
    return _SLASH.sub(" ", stem)


def _money(symbol: str, whole: str, fraction: str | None, scale: str | None) -> str:
    one, many, small = _CURRENCIES[symbol]
    if scale:
        return f"{whole}{fraction or ''} {_SCALE_LETTERS[scale]} {many}"
    if fraction and (len(fraction) != 3 or not small):
        return f"{whole}{fraction} {many}"
    cents = int(fraction[1:]) if fraction else 0
    units = f"{whole} {one if whole == '1' else many}"
    if not cents:
        return units
    pieces = f"{cents} {small.removesuffix('s') if cents == 1 else small}"
    return pieces if whole == "0" else f"{units} and {pieces}"


def _time(time: re.Match[str], following: str) -> str:
    hour, tens, ones, half = time.groups()
    if tens + ones == "00":
        bare = half or _HALF_DAY.match(following) or following.lower().startswith("o'clock")
        said = hour if bare else f"{hour} o'clock" if int(hour) <= 12 else f"{hour} hundred"
    else:
        said = f"{hour} oh {ones}" if tens == "0" else f"{hour}:{tens}{ones}"
    return f"{said} {half.upper()}" if half else said


def _year(century: str, tens: str, ones: str, plural: str) -> str:
    if century == "20" and tens == "0":
        return century + tens + ones + plural
    if plural and ones == "0":
        return f"{century} {_DECADES[int(tens)]}"
    if tens == "0":
        return f"{century}00" if ones == "0" else f"{century} oh {ones}"
    return f"{century} {tens}{ones}"
