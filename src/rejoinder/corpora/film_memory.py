"""Long-term memories (Dodge et al. 2016, section 3.1): every fact that shares a telling symbol with some messages.

A memory is one line of the knowledge base, such as `Shaolin Soccer has_genre Comedy, Action`: title, relation and
values, each one symbol; or the words of a plot. Symbols that many memories have tell little and are ignored.

memory = FilmMemory(kb, dictionary)
found = memory.look_up(dictionary.parse(["I liked Alien, and Blade Runner. Who directed that?"]).rows())
[memory.text(number) for number in found[0].tolist()]
"""

import numpy as np

from rejoinder.corpora.dictionary import Dictionary
from rejoinder.corpora.films import PLOT, RELATIONS, KnowledgeBase
from rejoinder.corpora.ragged import Ints, Ragged, group, to_starts

RARE = 1_000
"""A symbol that more memories have is ignored: in the official knowledge base five genres and a tag."""


class FilmMemory:
    """All facts as rows of symbols, and which of them have which symbol.

    The first memories are facts about entities, in the order of films and relations, then come the plots.
    Relations are symbols after those of the dictionary: `len(dictionary)` is RELATIONS[0], and so on; PLOT is the last.
    """

    def __init__(self, kb: KnowledgeBase, dictionary: Dictionary, rare: int = RARE) -> None:
        self.kb, self.rare = kb, rare
        self.size = len(dictionary) + len(RELATIONS) + 1
        """How many symbols there are, relations included."""
        lines = kb.by_film
        self._lines: Ints = np.flatnonzero(lines.lengths)
        film, relation = np.divmod(self._lines, len(RELATIONS))
        plots = dictionary.parse(kb.plots["plot"]).rows()
        titles = dictionary.parser.symbol_of[kb.titles]
        values = lines.take(self._lines)
        self.symbols = _assemble(
            np.concatenate([titles[film], titles[kb.plots["film"].to_numpy()]]),
            len(dictionary) + np.append(relation, np.full(len(plots), len(RELATIONS))),
            np.append(values.lengths, plots.lengths),
            np.concatenate([dictionary.parser.symbol_of[values.values], plots.values]),
        )
        """The symbols of each memory: title, relation, values."""
        known = self.symbols.values >= 0
        owners = self.symbols.owners()[known]
        self.holders = group(self.symbols.values[known], owners, self.size)
        """The memories that have each symbol."""

    def __len__(self) -> int:
        return len(self.symbols)

    def look_up(self, messages: Ragged) -> Ragged:
        """Return for each row of symbols the memories that share a rare enough one, in order."""
        telling = self.holders.lengths[messages.values] <= self.rare
        found = self.holders.take(messages.values[telling])
        dialogue = np.repeat(messages.owners()[telling], found.lengths)
        pairs = np.unique(dialogue * len(self) + found.values)
        counts = np.bincount(pairs // max(len(self), 1), minlength=len(messages))
        return Ragged(to_starts(counts), (pairs % max(len(self), 1)).astype(np.int32))

    def text(self, memory: int) -> str:
        """Return a memory as the knowledge base writes it."""
        if memory >= len(self._lines):
            film, plot = self.kb.plots.row(memory - len(self._lines))
            return f"{self.kb.entities[self.kb.titles[film]]} {PLOT} {plot}"
        line = self._lines[memory]
        film, relation = divmod(int(line), len(RELATIONS))
        values = ", ".join(self.kb.entities[value] for value in self.kb.by_film[line].tolist())
        return f"{self.kb.entities[self.kb.titles[film]]} {RELATIONS[relation]} {values}"


def _assemble(titles: Ints, relations: Ints, lengths: Ints, values: Ints) -> Ragged:
    """Put title and relation before the values of each memory."""
    starts = to_starts(lengths + 2)
    symbols = np.empty(starts[-1], np.int32)
    symbols[starts[:-1]], symbols[starts[:-1] + 1] = titles, relations
    rest = np.ones(len(symbols), np.bool_)
    rest[starts[:-1]] = rest[starts[:-1] + 1] = False
    symbols[rest] = values
    return Ragged(starts, symbols)
