"""Appendix A's dictionary (Dodge et al. 2016): every entity is one symbol, the rest are words; all in lower case.

A text is cut into words and punctuation marks, and read from left to right; at each step the longest stretch that is
an entity is consumed. White space does not matter ("Schindler 's List"), nor does letter case: entities that differ
in nothing else share a symbol. Which of them is meant: the one that is written exactly like the text; else a film
rather than a person, a person rather than a genre, a language, a year, a tag (`films.KINDS`).

parsed = Parser(kb.entities, kb.rank).parse(["who directed M?"])
[kb.entities[number] for number in parsed.entities.tolist()]    # ["M"]
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpora.lookup import Lookup
from rejoinder.corpora.ragged import Ints, Numbers, Ragged, group
from rejoinder.corpora.tokens import Tokens, tokenise

_PRIME = np.uint64(0x9E3779B97F4A7C15)
Hashes = NDArray[np.uint64]


class Parsed(msgspec.Struct, frozen=True):
    """The entities and words of some texts; text t holds the items `starts[t]:starts[t + 1]`."""

    starts: Ints
    symbols: Numbers
    """Which entity, letter case aside; words are -1 here, and numbered after all entities by a Dictionary."""
    entities: Numbers
    """The entity that is meant; -1 for a word."""
    exact: NDArray[np.bool_]
    """Whether the entity is written as in its name, letter case included."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self) -> Ragged:
        """Return the symbols of each text."""
        return Ragged(self.starts, self.symbols)


class Parser:
    """Finds entities: a tree of words, as sorted arrays, that all positions of all texts descend together."""

    def __init__(self, names: Sequence[str], rank: NDArray[np.integer] | None = None) -> None:
        tokens = tokenise(names)
        rank = np.zeros(len(names), np.int64) if rank is None else rank
        self._vocabulary = tokens.lower().unique(maintain_order=True).to_frame("word").with_row_index("token")
        words = self.numbers(tokens)
        ends = self._plant(tokens.starts, words)
        order = np.lexsort((np.arange(len(names)), rank))
        order = order[ends[order] >= 0]  # a name without any word or mark can never be read
        self._count_symbols(ends, order)
        self.symbol_of: Numbers = np.where(ends >= 0, self._symbol[ends], -1).astype(np.int32)
        """The symbol of each entity; -1 where its name holds no word or mark."""
        self.members = group(self._symbol[ends[order]], order, self.symbols)
        """The entities of each symbol, the likeliest first."""
        self._remember_spelling(tokens, order)
        self.capital = pl.Series(names, dtype=pl.String).str.contains(r"[\p{Lu}\p{N}]").to_numpy()
        """Whether a name has a capital letter or a figure, as few everyday words have."""

    def numbers(self, tokens: Tokens) -> Ints:
        """Return each word's number, -1 for a word that no entity has."""
        distinct = tokens.lower().to_frame("word")
        found = distinct.join(self._vocabulary, on="word", how="left", maintain_order="left")
        return found["token"].cast(pl.Int64).fill_null(-1).to_numpy()[tokens.codes]

    def _plant(self, starts: Ints, words: Ints) -> Ints:
        """Build the tree and return the node at which each name ends.

        A node is 1 + the place of its key, parent * vocabulary + word. Deeper nodes have larger numbers, so that the
        levels' keys, each sorted, are sorted as a whole.
        """
        lengths = np.diff(starts)
        node = np.where(lengths > 0, 0, -1)
        levels: list[Ints] = []
        planted = 0
        for depth in range(int(lengths.max(initial=0))):
            active = np.flatnonzero(lengths > depth)
            keys = node[active] * self._vocabulary.height + words[starts[active] + depth]
            level, place = np.unique(keys, return_inverse=True)
            node[active] = 1 + planted + place
            planted += len(level)
            levels.append(level)
        self._nodes = Lookup(np.concatenate([*levels, np.zeros(0, np.int64)]))
        self._first = np.zeros(self._vocabulary.height + 1, np.int64)  # the last one is for unknown words, -1
        for top in levels[:1]:
            self._first[top] = 1 + np.arange(len(top))
        return node

    def _count_symbols(self, ends: Ints, order: Ints) -> None:
        """Number the symbols by the first entity of each."""
        nodes, first = np.unique(ends[np.sort(order)], return_index=True)
        by_entity = np.argsort(first, kind="stable")
        self.symbols = len(nodes)
        self._symbol: Numbers = np.full(int(ends.max(initial=0)) + 1, -1, np.int32)
        self._symbol[nodes[by_entity]] = np.arange(len(nodes))

    def _remember_spelling(self, tokens: Tokens, order: Ints) -> None:
        starts, lengths = tokens.starts[order], np.diff(tokens.starts)[order]
        hashes = _hash_stretches(tokens, starts, lengths)
        self._spelling, first = np.unique(hashes, return_index=True)
        self._spelled: Numbers = order[first].astype(np.int32)

    def match(self, starts: Ints, words: Ints) -> tuple[Ints, Numbers]:
        """Return for every position how many words the longest entity there has (0: none), and its symbol."""
        length, symbol = np.zeros(len(words), np.int64), np.full(len(words), -1, np.int32)
        at = np.flatnonzero(self._first[words])
        end = np.repeat(starts[1:], np.diff(starts))[at]
        node, depth = self._first[words[at]], 1
        while len(at):
            terminal = self._symbol[node]
            ending = terminal >= 0
            length[at[ending]], symbol[at[ending]] = depth, terminal[ending]
            more = at + depth < end
            at, end, node = at[more], end[more], node[more]
            following = words[at + depth]
            place = self._nodes.find(node * self._vocabulary.height + following)
            found = (place >= 0) & (following >= 0)
            at, end, node = at[found], end[found], place[found] + 1
            depth += 1
        return length, symbol

    def parse(self, texts: Sequence[str] | pl.Series) -> Parsed:
        """Return the entities and, as symbol -1, the other words of each text."""
        tokens = tokenise(texts)
        return self.parse_tokens(tokens)[0]

    def parse_tokens(self, tokens: Tokens) -> tuple[Parsed, Ints]:
        """Return what texts hold, and the position at which each item starts."""
        length, symbol = self.match(tokens.starts, self.numbers(tokens))
        taken = np.flatnonzero(consume(tokens.starts, length))
        starts = np.searchsorted(taken, tokens.starts)
        entities, exact = self.meant(tokens, taken, length[taken], symbol[taken])
        return Parsed(starts, symbol[taken], entities, exact), taken

    def meant(self, tokens: Tokens, taken: Ints, length: Ints, symbol: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """Return the entity that is meant at each of these positions (-1: none), and whether it is written exactly."""
        entities, exact = np.full(len(taken), -1, np.int32), np.zeros(len(taken), np.bool_)
        known = np.flatnonzero(symbol >= 0)
        if len(known):
            hashes = _hash_stretches(tokens, taken[known], length[known])
            place = np.minimum(np.searchsorted(self._spelling, hashes), len(self._spelling) - 1)
            exact[known] = self._spelling[place] == hashes
            likeliest = self.members.values[self.members.starts[symbol[known]]]
            entities[known] = np.where(exact[known], self._spelled[place], likeliest)
        return entities, exact


def consume(starts: Ints, length: Ints) -> NDArray[np.bool_]:
    """Mark where items start when every text is read from left to right, all texts in step."""
    taken = np.zeros(len(length), np.bool_)
    cursor, end = starts[:-1], starts[1:]
    while len(cursor := cursor[going := cursor < end]):
        end = end[going]
        taken[cursor] = True
        cursor = cursor + np.maximum(length[cursor], 1)
    return taken


def _hash_stretches(tokens: Tokens, starts: Ints, lengths: Ints) -> Hashes:
    """Hash stretches of words, as polynomials of their words' hashes."""
    words = tokens.words.hash(seed=0).to_numpy()
    hashes = np.zeros(len(starts), np.uint64)
    active, depth = np.flatnonzero(lengths), 0
    while len(active):
        hashes[active] = hashes[active] * _PRIME + words[tokens.codes[starts[active] + depth]]
        depth += 1
        active = active[lengths[active] > depth]
    return hashes
