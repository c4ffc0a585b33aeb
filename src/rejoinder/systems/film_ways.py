"""Ways through the film knowledge base: from an entity that is mentioned, along a relation, to what may be answered."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.arrays import find
from rejoinder.corpora.films import RELATIONS, KnowledgeBase
from rejoinder.corpora.ragged import Ints, Ragged
from rejoinder.systems.film_patterns import Observations, Reading

WAYS = 2 * len(RELATIONS)
"""Forward along each relation, from a film to its facts, then backward."""
ASIDE = 2 * WAYS
"""The meaning of messages that no fact answers. Ways from an entity of the message come first, then those from an
entity of the turn before it (`who directed that?`)."""
MEANINGS = ASIDE + 1
_DOUBTFUL = 0.01
"""The weight of examples that several ways explain (whoever wrote the film also directed it), next to clear ones."""


class Ways(msgspec.Struct, frozen=True):
    """Ways that messages could mean."""

    example: Ints
    position: Ints
    """Where the entity stands in the message; -1: in the turn before, or nowhere."""
    meaning: Ints
    row: Ints
    """Of the index that the way uses; -1: none."""

    def take(self, chosen: NDArray[np.intp]) -> "Ways":
        """Return some of them."""
        return Ways(self.example[chosen], self.position[chosen], self.meaning[chosen], self.row[chosen])

    @property
    def backward(self) -> NDArray[np.bool_]:
        """Which of them lead from facts to films."""
        found: NDArray[np.bool_] = (self.meaning < ASIDE) & (self.meaning % WAYS >= len(RELATIONS))
        return found


def find_ways(kb: KnowledgeBase, reading: Reading, before: Ragged, read_only: bool = False) -> Ways:
    """Return every way that leads anywhere, from entities of the messages and of the turns before.

    With `read_only`, from those entities alone that a reading from left to right finds.
    """
    named = (reading.entity >= 0) & reading.taken if read_only else reading.entity >= 0
    position = np.flatnonzero(named)
    text = np.searchsorted(reading.starts, position, side="right") - 1
    example = np.append(text, before.owners())
    entity = np.append(reading.entity[position], before.values).astype(np.int64)
    position = np.append(position, np.full(len(before.values), -1))
    way = np.arange(WAYS)
    row = entity[:, None] * len(RELATIONS) + way % len(RELATIONS)
    found = np.where(way < len(RELATIONS), kb.forward.lengths[row], kb.backward.lengths[row]) > 0
    mention, chosen = np.nonzero(found)
    meaning = chosen + np.where(position[mention] < 0, WAYS, 0)
    return Ways(example[mention], position[mention], meaning, row[mention, chosen])


def follow(kb: KnowledgeBase, ways: Ways) -> tuple[Ints, Ints]:
    """Return what ways lead to: the number of the way, and an entity."""
    numbers, values = [], []
    known = ways.meaning < ASIDE
    for index, chosen in ((kb.forward, known & ~ways.backward), (kb.backward, ways.backward)):
        which = np.flatnonzero(chosen)
        found = index.take(ways.row[which])
        numbers.append(which[found.owners()])
        values.append(found.values.astype(np.int64))
    return np.concatenate(numbers), np.concatenate(values)


def explain(kb: KnowledgeBase, reading: Reading, before: Ragged, answers: Ragged) -> Observations:
    """Find the ways that lead to most of an example's answers and to little else; several as good count for little.

    Examples whose answers no way leads to have the meaning ASIDE.
    """
    ways = find_ways(kb, reading, before, read_only=True)
    number, entity = follow(kb, ways)
    truth = np.sort(answers.owners() * len(kb) + answers.values)
    is_answer = find(truth, ways.example[number] * len(kb) + entity)[1]
    hits = np.bincount(number, is_answer, minlength=len(ways.example))
    found = np.bincount(number, minlength=len(ways.example))
    wanted = answers.lengths[ways.example]
    quality = np.where(2 * hits >= wanted, hits / (found + wanted - hits), 0)
    best = np.zeros(len(answers))
    np.maximum.at(best, ways.example, quality)
    good = ways.take(np.flatnonzero((quality > 0) & (quality >= best[ways.example])))
    share = np.bincount(good.example, minlength=len(answers))
    unexplained = np.flatnonzero(share == 0)
    nowhere = np.full(len(unexplained), -1)
    return Observations(
        np.append(good.example, unexplained),
        np.append(good.position, nowhere),
        np.append(good.meaning, np.full(len(unexplained), ASIDE)),
        np.append(np.where(share == 1, 1, _DOUBTFUL / np.maximum(share, 1))[good.example], np.ones(len(unexplained))),
    )
