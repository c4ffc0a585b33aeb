"""How messages are worded around the entity they are about: one small language model for each meaning.

A message is read as items, words and entities; the one it is about, if any, becomes a mark. Of each meaning (a way
through the knowledge base) a model of pairs of items is learned, smoothed by the frequency of items: messages in a
wording never seen get their meaning from the words that they share with others.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.arrays import read_arrays
from rejoinder.corpora.entities import Parser, consume
from rejoinder.corpora.ragged import Ints, Numbers, Ragged
from rejoinder.corpora.tokens import Tokens, tokenise

Floats = NDArray[np.float32]
EDGE, TARGET, ENTITY, UNKNOWN = range(4)
"""Items that are no word: an end of the message, what it is about, other entities, rare words."""
_MARKS = 4
_MOST_ITEMS = 200
_PAIRS, _ITEMS = 2.0, 20.0
"""How many observations smoothing counts for."""


class Reading(msgspec.Struct, frozen=True):
    """Texts at every position: the longest entity that starts there, or a word."""

    starts: Ints
    length: Ints
    entity: Numbers
    """-1: a word."""
    item: Ints
    taken: NDArray[np.bool_]
    """Whether an item starts here when the text is read from left to right."""

    def part(self, texts: slice) -> "Reading":
        """Return some of the texts."""
        here = slice(self.starts[texts.start], self.starts[texts.stop])
        starts = self.starts[texts.start : texts.stop + 1] - here.start
        return Reading(starts, self.length[here], self.entity[here], self.item[here], self.taken[here])

    def chains(self) -> Ragged:
        """Return the positions of each text's items."""
        places = np.flatnonzero(self.taken)
        return Ragged(np.searchsorted(places, self.starts), places.astype(np.int32))


class Vocabulary(msgspec.Struct, frozen=True):
    """The words and the entities, by symbol, that are items of their own."""

    words: list[str]
    symbols: Ints

    def __len__(self) -> int:
        return _MARKS + len(self.words) + len(self.symbols)

    def items(self, parser: Parser, tokens: Tokens, symbol: Numbers) -> Ints:
        """Return the item at every position: an entity's, or else the word's."""
        known = pl.DataFrame({"word": self.words}, schema={"word": pl.String}).with_row_index("item", offset=_MARKS)
        words = tokens.lower().to_frame("word").join(known, on="word", how="left", maintain_order="left")
        by_word = words["item"].cast(pl.Int64).fill_null(UNKNOWN).to_numpy()
        by_symbol = np.full(parser.symbols, ENTITY)
        by_symbol[self.symbols] = _MARKS + len(self.words) + np.arange(len(self.symbols))
        return np.where(symbol >= 0, by_symbol[symbol], by_word[tokens.codes])


def choose_vocabulary(parser: Parser, texts: Sequence[str] | pl.Series) -> Vocabulary:
    """Choose the items that messages are told apart by: the most frequent ones."""
    tokens = tokenise(texts)
    parsed, places = parser.parse_tokens(tokens)
    entity = parsed.symbols >= 0
    fewest = max(5, len(parsed) // 1_000)
    symbols = np.bincount(parsed.symbols[entity], minlength=parser.symbols)
    counts = np.bincount(tokens.codes[places[~entity]], minlength=len(tokens.words))
    words = pl.DataFrame({"word": tokens.lower(), "count": counts}).group_by("word").agg(pl.col("count").sum())
    frequent = words.filter(pl.col("count") >= fewest).sort("count", "word", descending=[True, False])
    often = np.flatnonzero(symbols >= fewest)
    often = np.sort(often[np.argsort(-symbols[often], kind="stable")[:_MOST_ITEMS]])
    return Vocabulary(frequent["word"].head(_MOST_ITEMS).to_list(), often)


def read(parser: Parser, texts: Sequence[str] | pl.Series, vocabulary: Vocabulary) -> Reading:
    """Read texts."""
    tokens = tokenise(texts)
    length, symbol = parser.match(tokens.starts, parser.numbers(tokens))
    entity, _ = parser.meant(tokens, np.arange(len(length)), length, symbol)
    items = vocabulary.items(parser, tokens, symbol)
    return Reading(tokens.starts, np.maximum(length, 1), entity, items, consume(tokens.starts, length))


class Observations(msgspec.Struct, frozen=True):
    """What training messages are about: one row for each explanation."""

    example: Ints
    position: Ints
    """Where the target stands, at the start of an item; -1: nowhere."""
    meaning: Ints
    weight: NDArray[np.float64]


class Patterns:
    """The language models, as one table of logarithms: item x next item x meaning."""

    vocabulary: Vocabulary
    table: Floats
    prior: Floats
    """The logarithm of each meaning's share; -inf: never seen."""

    def learn(self, parts: Sequence[tuple[Observations, Reading]], meanings: int) -> None:
        """Count pairs of items for each meaning."""
        size = len(self.vocabulary)
        counts, shares = np.zeros((size, size, meanings)), np.zeros(meanings)
        for seen, reading in parts:
            chains = reading.chains()
            rows = chains.take(seen.example)
            items = np.where(rows.values == np.repeat(seen.position, rows.lengths), TARGET, reading.item[rows.values])
            before, after = _with_edges(rows.starts, items)
            owner = np.repeat(np.arange(len(seen.example)), rows.lengths + 1)
            np.add.at(counts, (before, after, seen.meaning[owner]), seen.weight[owner])
            shares += np.bincount(seen.meaning, seen.weight, minlength=meanings)
        self.table = _smoothed(counts)
        with np.errstate(divide="ignore"):
            self.prior = np.log(shares / shares.sum()).astype(np.float32)

    def score(self, reading: Reading, text: Ints, position: Ints) -> Floats:
        """Return the log-likelihood of texts, were they about what stands at a position (-1: nothing in them).

        One row for each pair of a text and a position, one column for each meaning.
        """
        chains = reading.chains()
        items = reading.item[chains.values]
        before, after = _with_edges(chains.starts, items)
        steps = np.cumsum(self.table[before, after], axis=0, dtype=np.float64)
        steps = np.concatenate([np.zeros((1, steps.shape[1])), steps])
        first = chains.starts[text] + text  # each text has one step more than items
        whole = steps[chains.starts[text + 1] + text + 1] - steps[first]
        about = position >= 0
        whole[about] = self._about(reading, chains, steps, text[about], position[about]) - steps[first[about]]
        return np.asarray(whole, np.float32)

    def _about(self, reading: Reading, chains: Ragged, steps: NDArray[np.float64], text: Ints, at: Ints) -> Floats:
        """Score the items before the target, the target, and the reading that goes on behind it."""
        place = np.searchsorted(chains.values, at, side="right") - 1
        inside = chains.values[place] < at  # the target cuts an item of the left-to-right reading
        first = place == chains.starts[text]
        previous = np.where(first, EDGE, reading.item[chains.values[place - 1]])
        scores = steps[place + text]
        scores[inside] += self.table[previous[inside], UNKNOWN]
        previous = np.where(inside, UNKNOWN, previous)
        behind = at + reading.length[at]
        end = behind == reading.starts[text + 1]
        following = np.where(end, EDGE, reading.item[np.where(end, 0, behind)])
        scores += self.table[previous, TARGET] + self.table[TARGET, following]
        scores[~end] += self._rest(reading)[behind[~end]]
        return np.asarray(scores, np.float32)

    def _rest(self, reading: Reading) -> Floats:
        """Return for every position the log-likelihood of what follows the item there, all texts in step."""
        rest = np.zeros((len(reading.item), self.table.shape[2]), np.float32)
        ends, sizes = reading.starts[1:], np.diff(reading.starts)
        for distance in range(1, int(sizes.max(initial=0)) + 1):
            end = ends[sizes >= distance]
            at = end - distance
            behind = at + reading.length[at]
            last = behind >= end
            following = np.where(last, EDGE, reading.item[np.where(last, 0, behind)])
            rest[at] = self.table[reading.item[at], following]
            rest[at[~last]] += rest[behind[~last]]
        return rest

    def save(self, path: Path) -> None:
        """Write what was learned."""
        words = np.array(self.vocabulary.words, dtype=np.str_)
        np.savez_compressed(path, table=self.table, prior=self.prior, words=words, symbols=self.vocabulary.symbols)

    def load(self, path: Path) -> None:
        """Read what `save` wrote."""
        arrays = read_arrays(path, ("table", "prior", "words", "symbols"))
        self.table, self.prior = arrays["table"], arrays["prior"]
        self.vocabulary = Vocabulary(arrays["words"].tolist(), arrays["symbols"])


def _with_edges(starts: Ints, items: Ints) -> tuple[Ints, Ints]:
    """Return all pairs of neighbours, with an edge before and after each row."""
    places = np.arange(len(items)) + np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    size = len(items) + len(starts) - 1
    before, after = np.full(size, EDGE), np.full(size, EDGE)
    before[places + 1] = items
    after[places] = items
    return before, after


def _smoothed(counts: NDArray[np.float64]) -> Floats:
    """Return log P(next | item, meaning), smoothed by P(next | meaning), and that by P(next)."""
    every = counts.sum(axis=(0, 2)) + 1
    item = counts.sum(axis=0) + _ITEMS * (every / every.sum())[:, None]
    item /= item.sum(axis=0)
    pairs = counts + _PAIRS * item
    pairs /= pairs.sum(axis=1, keepdims=True)
    return np.asarray(np.log(pairs), np.float32)
