"""Task 3 (Dodge et al. 2016, section 2.3): three exchanges that go on from one another.

1. Somebody says what they like and which genre, tag or person a film is to have: a film that they like has it.
2. They ask for a fact about that film, with a pronoun: all its directors, actors or tags.
3. They name another director, actor or tag that they like more: a different film that has this and what was wished
   for at first.
"""

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.arrays import find
from rejoinder.corpora.films import RELATIONS, KnowledgeBase
from rejoinder.corpora.ragged import Ints, Ragged
from rejoinder.tasks.film_tastes import Tastes, draw_tastes, one_each, state, turns_of
from rejoinder.tasks.film_templates import ALTERNATIVES, FACTOIDS, WISH

WISHES = {"has_genre": 48, "has_tags": 24, "starred_actors": 14, "directed_by": 11, "written_by": 2, "in_language": 1}
"""What is wished for, in percent, about as in the official files; a film's own facts decide what is possible."""
ASKED = {"directed_by": 50, "starred_actors": 49, "has_tags": 1}
_TRIES = 12


class Script(msgspec.Struct, frozen=True):
    """What some dialogues are about, by entity."""

    tastes: Tastes
    wish: Ints
    relation: Ints
    """What the second exchange asks for."""
    other: Ints
    """Whom or what somebody likes more."""
    film: Ints
    """The film of the third exchange."""

    def take(self, rows: Ints) -> "Script":
        """Return some of them."""
        return Script(self.tastes.take(rows), self.wish[rows], self.relation[rows], self.other[rows], self.film[rows])


class Playwright:
    """Draws what dialogues are about, from a knowledge base and what users like."""

    def __init__(self, kb: KnowledgeBase, likes: Ragged) -> None:
        self.kb, self.likes = kb, likes
        self._weigh_wishes()
        rows = np.repeat(np.arange(len(kb.forward)), kb.forward.lengths)
        self._facts = np.sort(rows * len(kb) + kb.forward.values)

    def _weigh_wishes(self) -> None:
        """Give each fact of a title its chance to be wished for: none if no other film has it."""
        kb = self.kb
        rows = kb.forward.owners()
        relation = rows % len(RELATIONS)
        weight = np.zeros(len(RELATIONS))
        weight[[RELATIONS.index(name) for name in WISHES]] = list(WISHES.values())
        shared = kb.backward.lengths[kb.forward.values.astype(np.int64) * len(RELATIONS) + relation] > 1
        chance = weight[relation] * shared / kb.forward.lengths[rows]
        self._chances = np.append(0.0, np.cumsum(chance))

    def write(self, count: int, rng: np.random.Generator) -> Script:
        """Draw dialogues; those that do not come to three exchanges are left out."""
        tastes = draw_tastes(self.likes, count, rng)
        wish, possible = self._wish(tastes.answer, rng)
        relation, askable = self._ask(tastes.answer, rng)
        other, film = np.full(count, -1), np.full(count, -1)
        open_ = np.flatnonzero(possible & askable)
        for _ in range(_TRIES):
            found, value, fits = self._alternative(tastes.take(open_), wish[open_], relation[open_], rng)
            other[open_[fits]], film[open_[fits]] = value[fits], found[fits]
            open_ = open_[~fits]
        wished = self.kb.forward.values[wish].astype(np.int64)
        return Script(tastes, wished, relation, other, film).take(np.flatnonzero(film >= 0))

    def _wish(self, titles: Ints, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """Draw one fact of each title, as a place among all facts."""
        starts = self.kb.forward.starts
        low, high = (self._chances[starts[(titles + more) * len(RELATIONS)]] for more in (0, 1))
        drawn = np.searchsorted(self._chances, low + rng.random(len(titles)) * (high - low), side="right") - 1
        return np.clip(drawn, 0, len(self._chances) - 2), high > low

    def _ask(self, titles: Ints, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """Draw what is asked about each title, among what is known of it."""
        relations = np.array([RELATIONS.index(name) for name in ASKED])
        known = self.kb.forward.lengths[titles[:, None] * len(RELATIONS) + relations] > 0
        chances = np.cumsum(known * np.array(list(ASKED.values()), float), axis=1)
        drawn = (rng.random(len(titles)) * chances[:, -1])[:, None] >= chances
        return relations[np.minimum(drawn.sum(axis=1), len(relations) - 1)], known.any(axis=1)

    def _alternative(
        self, tastes: Tastes, wish: Ints, relation: Ints, rng: np.random.Generator
    ) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Draw another film that has what was wished for, and somebody of it whom the first film has not."""
        kb, width = self.kb, len(RELATIONS)
        wished = kb.forward.values[wish].astype(np.int64)
        wished_as = np.searchsorted(kb.forward.starts, wish, side="right") - 1
        film = _draw(kb.backward, wished * width + wished_as % width, rng)
        value = _draw(kb.forward, film * width + relation, rng)
        known = (film != tastes.answer) & ~(tastes.liked == film[:, None]).any(axis=1) & (value >= 0)
        return film, value, known & ~self._holds(tastes.answer * width + relation, value) & (value != wished)

    def _holds(self, rows: Ints, values: Ints) -> NDArray[np.bool_]:
        """Say whether a row of the forward index has a value."""
        return find(self._facts, rows * len(self.kb) + values)[1]


def _draw(index: Ragged, rows: Ints, rng: np.random.Generator) -> Ints:
    """Draw one value of each row; -1 where it has none."""
    lengths = index.lengths[rows]
    place = index.starts[rows] + (rng.random(len(rows)) * lengths).astype(np.int64)
    values = index.values[np.minimum(place, len(index.values) - 1)].astype(np.int64)
    return np.where(lengths > 0, values, -1)


def converse(kb: KnowledgeBase, script: Script, rng: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put dialogues into words, and return three examples for each."""
    names, count = kb.entities, len(script.film)
    said = state(kb, script.tastes, rng)
    factoids = {RELATIONS.index(name): forms for name, forms in FACTOIDS.items()}
    rows = kb.forward.take(script.tastes.answer * len(RELATIONS) + script.relation)
    answers = [rows[number].tolist() for number in range(count)]
    luck = rng.random((count, 2)).tolist()
    lines = []
    for number, (wish, relation, other) in enumerate(
        zip(script.wish.tolist(), script.relation.tolist(), script.other.tolist(), strict=True)
    ):
        forms = factoids[relation]
        lines.append(
            (
                f"{said[number]} {WISH.format(article=_article(names[wish]), matter=names[wish])}",
                names[script.tastes.answer[number]],
                forms[int(luck[number][0] * len(forms))],
                ", ".join([names[answer] for answer in answers[number]]),
                ALTERNATIVES[int(luck[number][1] * len(ALTERNATIVES))].format(matter=names[other]),
            )
        )
    columns = ("one", "film", "two", "fact", "three")
    table = pl.DataFrame(lines, schema=dict.fromkeys(columns, pl.String), orient="row")
    facts = pl.Series(answers, dtype=pl.List(pl.UInt32))
    correct = (one_each(script.tastes.answer), facts, one_each(script.film))
    exchanges = [
        table.select(turns=turns_of(*columns[: 2 * number + 1]), correct=right) for number, right in enumerate(correct)
    ]
    order = np.arange(3 * count).reshape(3, count).T.ravel()
    groups = pl.DataFrame({"response": np.tile([1, 2, 3], count)})
    return pl.concat(exchanges)[order], groups


def _article(matter: str) -> str:
    return "an" if matter[:1].lower() in "aeiou" else "a"
