"""Rows of different lengths in one flat array."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]


class Ragged(msgspec.Struct, frozen=True):
    """Row r is `values[starts[r]:starts[r + 1]]`."""

    starts: Ints
    values: Numbers

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Numbers:
        return self.values[self.starts[row] : self.starts[row + 1]]

    @property
    def lengths(self) -> Ints:
        """How many values each row has."""
        return np.diff(self.starts)

    def take(self, rows: Numbers | Ints) -> "Ragged":
        """Return these rows, in this order."""
        lengths = self.lengths[rows]
        starts = to_starts(lengths)
        places = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        return Ragged(starts, self.values[places])

    def lists(self) -> list[list[int]]:
        """Return the rows as lists."""
        flat, edges = self.values.tolist(), self.starts.tolist()
        return [flat[start:end] for start, end in pairwise(edges)]

    def owners(self) -> Ints:
        """Return the row of every value."""
        return np.repeat(np.arange(len(self)), self.lengths)


def to_starts(lengths: NDArray[np.integer]) -> Ints:
    """Return where rows of these lengths start, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def from_lists(rows: Sequence[Sequence[int]]) -> Ragged:
    """Put lists together."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return Ragged(to_starts(lengths), np.fromiter((value for row in rows for value in row), np.int32, lengths.sum()))


def group(keys: NDArray[np.integer], values: NDArray[np.integer], size: int) -> Ragged:
    """Gather the values of each key from 0 to `size` - 1, in the order given."""
    order = np.argsort(keys, kind="stable")
    return Ragged(to_starts(np.bincount(keys, minlength=size)), values[order].astype(np.int32))
