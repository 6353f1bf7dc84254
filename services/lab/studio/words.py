"""What was said against what was understood, word by word."""

import difflib
import re
from collections.abc import Sequence

_ALIKE = 0.6
"""difflib's ratio from which two spellings are one word misheard: "figures" and "figure"."""


def words(text: str) -> list[str]:
    """Lower case, without punctuation: design's equivalent transcripts are equal in this."""
    return re.findall(r"[a-z0-9]+(?:'[a-z0-9]+)*", text.lower().replace("’", "'"))


def matched(said: Sequence[str], understood: Sequence[str]) -> list[bool]:
    """For each word said whether it was understood, in order; a word that only sounds alike counts.

    The longest common subsequence, so that words that came twice or in between do not matter.
    """
    rows, columns = len(said), len(understood)
    longest = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            skipped = max(longest[i + 1][j], longest[i][j + 1])
            longest[i][j] = max(skipped, longest[i + 1][j + 1] + _alike(said[i], understood[j]))
    found = [False] * rows
    i = j = 0
    while i < rows and j < columns:
        if _alike(said[i], understood[j]) and longest[i][j] == longest[i + 1][j + 1] + 1:
            found[i] = True
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def reached(reply: Sequence[str], heard: Sequence[str], near: int) -> int:
    """How many of the reply's first words the ear heard: the length whose words are fewest edits away
    from `heard`; of several the one nearest to `near`."""
    distances = _distances(reply, heard)
    return min(range(len(distances)), key=lambda count: (distances[count], abs(count - near)))


def errors(reply: Sequence[str], heard: Sequence[str]) -> int:
    """Words to insert, delete or replace between a reply and what an ear made of it."""
    return _distances(reply, heard)[-1]


def _distances(reply: Sequence[str], heard: Sequence[str]) -> list[int]:
    """Levenshtein's distance of `heard` to each beginning of the reply."""
    row = list(range(len(heard) + 1))
    distances = [row[-1]]
    for count, expected in enumerate(reply, 1):
        diagonal, row[0] = row[0], count
        for j, found in enumerate(heard, 1):
            best = min(row[j] + 1, row[j - 1] + 1, diagonal + (not _alike(expected, found)))
            diagonal, row[j] = row[j], best
        distances.append(row[-1])
    return distances


def _alike(a: str, b: str) -> bool:
    return a == b or (min(len(a), len(b)) > 2 and difflib.SequenceMatcher(None, a, b).ratio() >= _ALIKE)
