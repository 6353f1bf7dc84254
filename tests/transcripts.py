"""Word error rate, with Whisper's own English normaliser."""

from collections.abc import Sequence

from whisper_normalizer.english import EnglishTextNormalizer

_normalise = EnglishTextNormalizer()


def words(text: str) -> list[str]:
    return _normalise(text).split()


def edits(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Levenshtein distance in words."""
    row = list(range(len(hypothesis) + 1))
    for i, expected in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, found in enumerate(hypothesis, 1):
            best = min(row[j] + 1, row[j - 1] + 1, diagonal + (expected != found))
            diagonal, row[j] = row[j], best
    return row[-1]


def word_error_rate(pairs: Sequence[tuple[str, str]]) -> float:
    """Over (reference, hypothesis) pairs, in proportion to the words of the references."""
    errors = sum(edits(words(reference), words(hypothesis)) for reference, hypothesis in pairs)
    return errors / max(1, sum(len(words(reference)) for reference, _ in pairs))
