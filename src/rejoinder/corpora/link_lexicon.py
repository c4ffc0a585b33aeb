"""What words weigh and which are alike, learned from the logs themselves.

Words are alike that the same people use at about the same time: the leading singular vectors of the table of who said
what in each quarter of an hour (latent semantic analysis).
"""

import re
from collections.abc import Iterable, Sequence
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

Floats = NDArray[np.float32]

BUCKETS = 1 << 17
_DIMENSIONS = 64
_RAREST = 6
_COMMONEST = 0.03
_WORD = re.compile(r"[a-z0-9_\[\]{}|^`\\][a-z0-9_\[\]{}|^`\\.+/'-]*")
_ENDING = re.compile(r"(?<=\w{3})(?:'?s|ing|ed|es)$")
_START = re.compile(r"\s*@?([^\s:,>]{2,})\s*(?:[:,]|->|>)")


class Lexicon(msgspec.Struct, frozen=True):
    """For each bucket of words how rare it is, and a vector of its meaning as long as its weight."""

    rarity: Floats
    vectors: Floats


def bucket(word: str) -> int:
    """Return the bucket of a word, the same for its common endings."""
    return crc32(_ENDING.sub("", word).encode()) % BUCKETS


def split(text: str) -> list[str]:
    """Return the words of a message, in lower case."""
    return [word.rstrip(".'/-+") for word in _WORD.findall(text.lower())]


def address(text: str) -> str | None:
    """Return what stands before a colon or comma at the start of a message: perhaps a nick."""
    found = _START.match(text)
    return found[1] if found else None


def rarities(texts: Iterable[str]) -> Floats:
    """Return the inverse document frequency of each bucket; a greeting by name says nothing about a word."""
    counts = np.zeros(BUCKETS, dtype=np.int64)
    total = 0
    for text in texts:
        found = _START.match(text)
        counts[list({bucket(word) for word in split(text[found.end() :] if found else text)})] += 1
        total += 1
    return _rounded(np.log((total + 1) / (counts + 1)))


def vectors(documents: Sequence[Sequence[int]]) -> Floats:
    """Return the vector of each bucket from documents of buckets; zero where a bucket is too rare or too common."""
    counts = np.bincount([word for words in documents for word in words], minlength=BUCKETS)
    known = np.flatnonzero((counts >= _RAREST) & (counts <= _COMMONEST * len(documents)))
    found = np.zeros((BUCKETS, _DIMENSIONS), dtype=np.float32)
    rank = min(_DIMENSIONS, len(known) - 1, len(documents) - 1)
    if rank > 0:
        weights = np.log(len(documents) / counts[known])
        directions = _directions(_table(documents, known, weights), rank)
        found[known, :rank] = _rounded(directions * weights[:, None])
    return found


def _table(documents: Sequence[Sequence[int]], known: NDArray[np.int64], weights: NDArray[np.float64]) -> csr_array:
    """Return documents x known words, weighted, each document of length 1."""
    place = np.full(BUCKETS, -1)
    place[known] = np.arange(len(known))
    rows = np.repeat(np.arange(len(documents)), [len(words) for words in documents])
    columns = place[[word for words in documents for word in words]]
    rows, columns = rows[columns >= 0], columns[columns >= 0]
    lengths = np.sqrt(np.bincount(rows, weights[columns] ** 2, len(documents)))
    return csr_array((weights[columns] / lengths[rows], (rows, columns)), shape=(len(documents), len(known)))


def _directions(table: csr_array, rank: int) -> NDArray[np.float64]:
    start = np.random.default_rng(0).random(min(table.shape))
    _, strengths, right = svds(table, k=rank, v0=start)
    scaled = right.T * np.sqrt(strengths)
    return np.asarray(scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-9))


def _rounded(values: NDArray[np.float64]) -> Floats:
    # half precision is what a model's file keeps
    return values.astype(np.float16).astype(np.float32)
