"""Texts as TF-IDF rows of word and character n-grams, in any language: no list of words has to be kept, only hashes."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.text import tokens

Matrix = sparse.csr_matrix
COLUMNS = 2**20
FEWEST = 2
"""Texts that an n-gram must be in to be kept."""


def word_grams(text: str) -> Iterator[str]:
    """Yield words and pairs of them; Chinese characters, pairs and triples of them."""
    words = tokens(text)
    yield from words
    for first, second in pairwise(words):
        yield f"{first} {second}"
    for triple in zip(words, words[1:], words[2:], strict=False):
        if all(len(word) == 1 for word in triple):
            yield " ".join(triple)


def grams(text: str) -> Iterator[str]:
    """Yield words, pairs of words and parts of words; Chinese characters, pairs and triples of them."""
    yield from word_grams(text)
    for word in tokens(text):
        if len(word) > 1:
            edged = f" {word} "
            for size in (2, 3, 4):
                for start in range(len(edged) - size + 1):
                    yield f"#{edged[start : start + size]}"


class Grams(msgspec.Struct, frozen=True):
    """Which n-grams are kept, and how rare each is."""

    columns: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Grams":
        """Learn from texts."""
        counts = _count(texts)
        columns, found = np.unique(counts.indices, return_counts=True)
        kept = found >= FEWEST
        weights = np.log((1 + len(texts)) / (1 + found[kept])) + 1
        return cls(columns[kept].astype(np.int32), weights.astype(np.float32))

    def transform(self, texts: Sequence[str]) -> Matrix:
        """Return texts x n-grams: (1 + log count) x idf, each row of length one."""
        counts = _count(texts)[:, self.columns]
        counts.data = 1 + np.log(counts.data)
        return unit_rows((counts @ sparse.diags_array(self.weights)).tocsr())


def unit_rows(matrix: Matrix) -> Matrix:
    """Return the matrix with each row of length one, or of zeros."""
    lengths = sparse.linalg.norm(matrix, axis=1)
    unit: Matrix = (sparse.diags_array(1 / np.where(lengths, lengths, 1)) @ matrix).astype(np.float32).tocsr()
    return unit


def _count(texts: Sequence[str]) -> Matrix:
    from sklearn.feature_extraction.text import HashingVectorizer

    if not len(texts):
        return sparse.csr_matrix(np.zeros((0, COLUMNS), dtype=np.float32))
    hashing = HashingVectorizer(analyzer=grams, n_features=COLUMNS, norm=None, alternate_sign=False, dtype=np.float32)
    counts: Matrix = hashing.transform(texts).tocsr()
    return counts
