"""What a language's text needs to be cut and spoken: abbreviations and small words.

English only so far. Another language is another `Language` in `_LANGUAGES`; rules that are more
than words (money, years) live in `verbalise.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Language:
    """Word lists, lower case, abbreviations without their last dot."""

    code: str
    spoken: Mapping[str, str]
    """Abbreviation → what is said."""
    leading: frozenset[str]
    """Abbreviations that need what follows, so never end a sentence: "Dr. Smith"."""
    closing: frozenset[str]
    """Abbreviations that may end one; the next word decides: "at 5 p.m. The"."""
    counting: frozenset[str]
    """Abbreviations only before a number: "No. 5"."""
    starters: frozenset[str]
    """Words that, capitalised after a closing abbreviation, begin a new sentence."""
    weak: frozenset[str]
    """Words that lean on the next one; speech does not pause after them."""
    joining: frozenset[str]
    """Words that begin a phrase; speech may pause before them."""


def find_language(code: str) -> Language:
    """The language for a code such as en or en-us. Raises ConfigError."""
    language = _LANGUAGES.get(code.lower().replace("_", "-").split("-")[0])
    if language is None:
        raise ConfigError(f"speech language {code!r}: expected one of {', '.join(sorted(_LANGUAGES))}")
    return language


_ENGLISH_TITLES = {
    "dr": "doctor",
    "mr": "Mr",
    "mrs": "Mrs",
    "ms": "miz",
    "mx": "mix",
    "prof": "professor",
    "gen": "general",
    "sen": "senator",
    "rep": "representative",
    "gov": "governor",
    "rev": "reverend",
    "hon": "honorable",
    "capt": "captain",
    "lt": "lieutenant",
    "sgt": "sergeant",
    "col": "colonel",
    "mt": "mount",
    "ft": "fort",
}
_ENGLISH_LINKS = {
    "e.g": "for example",
    "i.e": "that is",
    "vs": "versus",
    "cf": "compare",
    "approx": "approximately",
    "esp": "especially",
    "incl": "including",
}
_ENGLISH_CLOSING = {
    "st": "street",
    "ave": "avenue",
    "blvd": "boulevard",
    "rd": "road",
    "etc": "etc",
    "inc": "incorporated",
    "ltd": "limited",
    "co": "company",
    "corp": "corporation",
    "dept": "department",
    "est": "established",
    "jr": "junior",
    "sr": "senior",
    "a.m": "AM",
    "p.m": "PM",
    "ph.d": "PhD",
    "jan": "January",
    "feb": "February",
    "aug": "August",
    "sept": "September",
    "oct": "October",
    "nov": "November",
    "dec": "December",
}
_ENGLISH_COUNTING = {
    "no": "number",
    "nos": "numbers",
    "fig": "figure",
    "vol": "volume",
    "ch": "chapter",
    "sec": "section",
    "pp": "pages",
    "p": "page",
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH = Language(
    code="en",
    spoken=_ENGLISH_TITLES | _ENGLISH_LINKS | _ENGLISH_CLOSING | _ENGLISH_COUNTING,
    leading=frozenset(_ENGLISH_TITLES | _ENGLISH_LINKS),
    closing=frozenset(_ENGLISH_CLOSING),
    counting=frozenset(_ENGLISH_COUNTING),
    starters=_words(
        "the a an it he she we they i you this that these those there here it's he's she's we're"
        " they're i'm i've i'll you're that's there's what's let's"
        " but and so or however then if in on at as for to when while after before since because"
        " although though first next finally also still now please"
        " what why how who where which is are was were do does did can could will would should"
        " yes no my your his her our their its some many most all one both each every"
    ),
    weak=_words(
        "a an the of to in on at by for from with into onto about as than per via"
        " and or but nor so that which who whose if when while because"
        " is are was were be been am has have had do does did will would can could"
        " shall should may might must my your his her our their its this these those some any no every"
        " each very too more most not"
        " i you he she we they it i'm you're we're they're it's don't"
    ),
    joining=_words(
        "and but or so because although though while when where which who that if unless until since"
        " before after as than with without in on at for from to by through during about between"
    ),
)

_LANGUAGES = {_ENGLISH.code: _ENGLISH}
