"""Pages of knowledge (DSTC7, subtask 5): which a text names, and which its words are about."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.arrays import find, read_arrays, write_arrays
from rejoinder.systems.ranking import best_columns, same_columns
from rejoinder.systems.words import Matrix, count_tokens
from rejoinder.tasks.knowledge import SECTION

READ = 2000
"""Characters of a page that are read: a manual page begins with what a command is for."""

_NAME = re.compile(r"[\w][\w.+-]*\w|\w")


def split_names(text: str) -> list[str]:
    """Return what may be a page's title: words such as `apt-get`, and pairs such as `CMP 109`, in lower case."""
    words = _NAME.findall(text.lower())
    return words + [first + second for first, second in pairwise(words)]


def page_name(title: str) -> str:
    """Return a title as `split_names` would find it: without the section of a manual page, and without spaces."""
    return SECTION.sub("", title.lower()).replace(" ", "")


class Pages(NamedTuple):
    """Pages by name and by words."""

    names: NDArray[np.int64]
    """Hashes of the names, in order."""
    page: NDArray[np.int64]
    """The page of each name."""
    rarity: NDArray[np.float32]
    """How telling each name is: `file` and `time` are said without meaning the commands."""
    words: Matrix
    """Pages x hashed words, of length 1."""

    @classmethod
    def of(cls, pages: pl.DataFrame, words: Matrix, said: Sequence[str]) -> "Pages":
        """Index pages (columns `title`, `text`) with the weights of their words; `said` shows how telling names are."""
        names = count_tokens([page_name(title) for title in pages["title"]], lambda name: [name] if name else ["-"])
        order, first = np.unique(names.indices, return_index=True)
        found = count_tokens(said, lambda text: list(set(split_names(text))))
        heard, counts = np.unique(found.indices, return_counts=True)
        places, known = find(heard, order)
        times = np.zeros(len(order))
        times[known] = counts[places[known]]
        rarity = np.log((1 + len(said)) / (1 + times)).astype(np.float32)
        return cls(order.astype(np.int64), first.astype(np.int64), rarity, words)

    def named(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """Return texts x pages: how telling the naming of each page is."""
        found = count_tokens(texts, split_names)
        place, known = find(self.names, found.indices)
        ends = np.concatenate([[0], np.cumsum(known)])[found.indptr]
        shape = (len(texts), self.words.shape[0])
        table = sparse.csr_matrix((self.rarity[place[known]], self.page[place[known]], ends), shape)
        table.sum_duplicates()
        return table

    def near(self, weights: Matrix) -> sparse.csr_matrix:
        """Return texts x pages: how near their words are to each other."""
        texts, pages = same_columns(weights, self.words)
        found: sparse.csr_matrix = (texts @ pages.T.tocsr()).tocsr()
        found.sort_indices()
        return found

    @staticmethod
    def nearest(near: sparse.csr_matrix, most: int) -> sparse.csr_matrix:
        """Return texts x pages: the few that come nearest to each text."""
        parts = []
        for start in range(0, near.shape[0], 1000):
            few = near[start : start + 1000].toarray()
            columns = best_columns(few, most)
            values = np.take_along_axis(few, columns, axis=1)
            rows = np.repeat(np.arange(len(few)), columns.shape[1])
            parts.append(sparse.csr_matrix((values.ravel(), (rows, columns.ravel())), shape=few.shape))
        found: sparse.csr_matrix = sparse.vstack(parts, format="csr")
        return found

    def words_of(self, chosen: sparse.csr_matrix) -> Matrix:
        """Return the words of the pages that each text has chosen, in columns of their own."""
        found: Matrix = (chosen @ same_columns(self.words, self.words)[1]).tocsr()
        found.sort_indices()
        return found

    def own_columns(self, weights: Matrix) -> Matrix:
        """Return texts' words in the columns of `words_of`."""
        return same_columns(weights, self.words)[0]

    def save(self, path: Path) -> None:
        """Write to a file."""
        arrays = {"data": self.words.data, "indices": self.words.indices, "indptr": self.words.indptr}
        write_arrays(path, {"names": self.names, "page": self.page, "rarity": self.rarity, **arrays})

    @classmethod
    def load(cls, path: Path) -> "Pages":
        """Read from a file."""
        found = read_arrays(path, ("names", "page", "rarity", "data", "indices", "indptr"))
        shape = (len(found["indptr"]) - 1, 2**31 - 1)
        words = sparse.csr_matrix((found["data"], found["indices"], found["indptr"]), shape)
        return cls(found["names"], found["page"], found["rarity"], words)
