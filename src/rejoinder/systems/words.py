"""Words as numbers: texts become sparse rows of hashed words, and how rare a word is is learned from many texts."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.arrays import expect_shapes, find, read_arrays, write_arrays
from rejoinder.text import words

Floats = NDArray[np.float32]
Matrix = sparse.csr_matrix
"""Texts x words, a word's column being its hash; the columns of a row are in order."""

_COLUMNS = 2**31 - 1
_NUMBER = re.compile(r"[\d_]")


def split_words(text: str, stem: int) -> list[str]:
    """Return words and Chinese characters, in lower case; of words without a number `stem` letters (0: all)."""
    found = words(text)
    return [word if _NUMBER.search(word) else word[:stem] for word in found] if stem else found


def count_words(texts: Sequence[str], stem: int) -> Matrix:
    """Count each text's words."""
    return count_tokens(texts, lambda text: split_words(text, stem))


def count_tokens(texts: Sequence[str], split: Callable[[str], list[str]]) -> Matrix:
    """Count what each text is split into."""
    from sklearn.feature_extraction.text import HashingVectorizer

    if not len(texts):
        nothing = np.zeros(0, dtype=np.int32)
        return sparse.csr_matrix((nothing.astype(np.float32), nothing, np.zeros(1, np.int32)), shape=(0, _COLUMNS))
    hashing = HashingVectorizer(analyzer=split, n_features=_COLUMNS, norm=None, alternate_sign=False)
    counts: Matrix = hashing.transform(texts).astype(np.float32).tocsr()
    counts.sort_indices()
    return counts


def lengths(counts: Matrix) -> Floats:
    """Return how many words each text has."""
    return np.asarray(counts.sum(axis=1), dtype=np.float32).ravel()


def with_values(counts: Matrix, values: NDArray[Any]) -> Matrix:
    """Return the same words with other values."""
    return sparse.csr_matrix((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)


class WordStatistics(msgspec.Struct, frozen=True):
    """In how many texts each word was seen."""

    words: NDArray[np.int32]
    """Hashes, in order."""
    found: NDArray[np.int32]
    """In how many texts each was."""
    texts: int
    mean_length: float

    @classmethod
    def of(cls, counts: Matrix, times: NDArray[np.integer[Any]]) -> "WordStatistics":
        """Learn from different texts, and how many times each stands."""
        words, place = np.unique(counts.indices, return_inverse=True)
        found = np.bincount(place, np.repeat(times, np.diff(counts.indptr)), minlength=len(words))
        texts = int(times.sum())
        mean = float(lengths(counts) @ times / texts) if texts else 1.0
        return cls(words.astype(np.int32), found.astype(np.int32), texts, max(mean, 1.0))

    def frequency(self, words: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """Return in how many texts the words were; 0 where a word is new."""
        found = np.zeros(len(words), dtype=np.int32)
        places, known = find(self.words, words)
        found[known] = self.found[places[known]]
        return found

    def save(self, path: Path) -> None:
        """Write to a file."""
        arrays = {"words": self.words, "found": self.found, "texts": self.texts, "mean_length": self.mean_length}
        write_arrays(path, {name: np.asarray(value) for name, value in arrays.items()})

    @classmethod
    def load(cls, path: Path) -> "WordStatistics":
        """Read from a file."""
        arrays = read_arrays(path, ("words", "found", "texts", "mean_length"))
        size = arrays["words"].size
        expect_shapes(path, arrays, {"words": (size,), "found": (size,), "texts": (), "mean_length": ()})
        return cls(arrays["words"], arrays["found"], int(arrays["texts"]), float(arrays["mean_length"]))
