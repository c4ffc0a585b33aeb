"""A run of messages as arrays, and the window of earlier messages that each of them may answer."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rejoinder.corpora.link_lexicon import Floats as Floats
from rejoinder.corpora.link_lexicon import Lexicon
from rejoinder.corpora.link_messages import ADDRESSEES, FACTS, Message

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

WINDOW = 100
AHEAD = 20
# no number of a person
NOBODY = -2


class Block:
    """Messages from `start` to `stop` as rows, amid those before and after them that their features need.

    Row i of each matrix is a message; column d is the message d places before it, and column 0 the message itself,
    which stands for "starts a conversation".
    """

    def __init__(self, messages: Sequence[Message], start: int, stop: int, lexicon: Lexicon) -> None:
        self.size = len(messages)
        self.rows = np.arange(start, stop)
        self.line = np.array([message.line for message in messages], dtype=np.int64)
        self.minute = np.array([message.minute for message in messages], dtype=np.int64)
        self.person = np.array([message.person for message in messages], dtype=np.int64)
        self.addressees = _addressees(messages)
        self.last_to = np.array([message.last_to for message in messages], dtype=np.int64)
        self.last_from = np.array([message.last_from for message in messages], dtype=np.int64)
        self.facts = np.array([message.facts for message in messages], dtype=np.float32).reshape(-1, len(FACTS))
        self.words, self.weight = _words(messages, lexicon.rarity)
        self.meaning = _meanings(self.words, lexicon.vectors)
        places = self.rows[:, None] - np.arange(WINDOW + 1)
        self.valid = places >= 0
        self.other = np.maximum(places, 0)
        self.later = np.minimum(self.rows[:, None] + np.arange(1, AHEAD + 1), self.size - 1)
        self.comes = self.rows[:, None] + np.arange(1, AHEAD + 1) < self.size


def _addressees(messages: Sequence[Message]) -> Ints:
    table = np.full((len(messages), ADDRESSEES), NOBODY, dtype=np.int64)
    for i, message in enumerate(messages):
        table[i, : len(message.addressees)] = message.addressees
    return table


def _words(messages: Sequence[Message], rarity: Floats) -> "tuple[csr_array[np.float32, tuple[int, int]], Floats]":
    """Return the words of each message, weighted by rarity, as vectors of length 1, and the lengths they had."""
    counts = np.array([len(message.words) for message in messages], dtype=np.int64)
    columns = np.fromiter((word for message in messages for word in message.words), np.int64, int(counts.sum()))
    rows = np.repeat(np.arange(len(messages)), counts)
    weights = rarity[columns].astype(np.float64)
    lengths = np.sqrt(np.bincount(rows, weights**2, len(messages)))
    values = (weights / np.maximum(lengths, 1e-6)[rows]).astype(np.float32)
    ends = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((values, columns, ends), shape=(len(messages), len(rarity))), lengths.astype(np.float32)


def _meanings(words: "csr_array[np.float32, tuple[int, int]]", vectors: Floats) -> Floats:
    """Return the sum of the words' vectors of each message, at length 1."""
    sums = np.asarray(words.sign() @ vectors)
    return np.asarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6))


class Table:
    """Named columns of features for all pairs of a block."""

    def __init__(self, block: Block) -> None:
        self.shape = block.other.shape
        self.features: dict[str, Floats] = {}

    def add(self, name: str, values: NDArray[np.generic]) -> None:
        """Keep a feature of pairs; a message by itself has none of it."""
        column = values.astype(np.float32)
        column[:, 0] = 0
        self.features[name] = column

    def add_row(self, name: str, values: NDArray[np.generic]) -> None:
        """Keep a feature of the row's message."""
        self.features[name] = np.broadcast_to(values.astype(np.float32)[:, None], self.shape)

    def where(self, use: Flags, names: Sequence[str]) -> Floats:
        """Return pairs x features of the pairs flagged."""
        return np.stack([self.features[name][use] for name in names], axis=-1)

    def taken(self, columns: Ints) -> Floats:
        """Return rows x columns x features of some columns of each row."""
        rows = np.arange(len(columns))[:, None]
        return np.stack([feature[rows, columns] for feature in self.features.values()], axis=-1)
