"""An EvidenceSource over a folder of documents: BM25 ranking of what the asker may see.

What an asker may not see is left out *before* ranking: each set of visible documents has an index of its
own, so that not even the word frequencies of hidden documents show in a score.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Self

import bm25s

from pipeline.events import Evidence
from pipeline.llm.folder import Document, read_folder

INDEXES_KEPT = 32
"""Indexes kept at once, one for each set of documents that askers may see."""


class FolderEvidence:
    """Passages of a folder that was read once. Ranking runs on the executor."""

    def __init__(self, documents: Sequence[Document], executor: Executor, top_k: int = 3) -> None:
        """`top_k`: passages that one answer has at most; 160 tokens each, so nine fill a prompt of 1,500."""
        self._documents = documents
        self._executor = executor
        self._top_k = top_k
        self._indexes: OrderedDict[frozenset[str], _Index] = OrderedDict()

    @classmethod
    async def open(cls, folder: Path, executor: Executor, top_k: int = 3) -> Self:
        """Read a folder (see folder.py for its form). Raises ConfigError with path and reason."""
        loop = asyncio.get_running_loop()
        return cls(await loop.run_in_executor(executor, read_folder, folder), executor, top_k)

    async def find(self, query: str, *, tenant: str, role: str) -> Sequence[Evidence]:
        """Passages that share words with the query, best first."""
        visible = [document for document in self._documents if document.access.admits(tenant, role)]
        key = frozenset(document.name for document in visible)
        loop = asyncio.get_running_loop()
        index = self._indexes.pop(key, None)
        if index is None:
            index = await loop.run_in_executor(self._executor, _Index, visible)
        self._indexes[key] = index
        if len(self._indexes) > INDEXES_KEPT:
            self._indexes.popitem(last=False)
        return await loop.run_in_executor(self._executor, index.best, query, self._top_k)


class _Index:
    """BM25 over the passages of some documents."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._passages = [(document.name, text) for document in documents for text in document.passages]
        tokens = bm25s.tokenize(
            [text for _, text in self._passages], stopwords="en", return_ids=False, show_progress=False
        )
        self._vocabulary = frozenset(word for passage in tokens for word in passage)
        self._ranking = bm25s.BM25()
        if self._vocabulary:
            self._ranking.index(tokens, show_progress=False)

    def best(self, query: str, top_k: int) -> list[Evidence]:
        asked = bm25s.tokenize([query], stopwords="en", return_ids=False, show_progress=False)[0]
        known = [word for word in asked if word in self._vocabulary]
        if not known:
            return []
        places, scores = self._ranking.retrieve(
            [known], k=min(top_k, len(self._passages)), show_progress=False, backend_selection="numpy"
        )
        found = []
        for place, score in zip(places[0], scores[0], strict=True):
            if score > 0:
                source, text = self._passages[place]
                found.append(Evidence(source, text, float(score)))
        return found
