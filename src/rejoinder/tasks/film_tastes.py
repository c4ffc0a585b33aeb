"""Task 2 (Dodge et al. 2016, section 2.2): somebody says which films they like, and wants another one.

A user is drawn, with replacement; films that they gave five stars make the statement, another one is the answer.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpora.films import KnowledgeBase
from rejoinder.corpora.ragged import Ints, Ragged
from rejoinder.tasks.film_templates import REQUESTS, STATEMENTS

MOST, USUAL = 8, 7
"""How many liked films a statement holds: seven in most of the official ones, one to eight in the paper."""
SHARE_USUAL = 0.95
EVAL_SHARE, MOST_EVAL_USERS = 0.05, 1_000
"""Of the users, at most so many are for dev, and as many for test."""
FEWEST_USERS = 3
"""One for each split."""


class Tastes(msgspec.Struct, frozen=True):
    """Some users' films, drawn: what each one likes, as entities filled up with -1, and one more as the answer."""

    liked: Ints
    """One row a user, up to eight columns."""
    answer: Ints

    def __len__(self) -> int:
        return len(self.answer)

    def take(self, rows: Ints) -> "Tastes":
        """Return some of them."""
        return Tastes(self.liked[rows], self.answer[rows])


def divide_users(likes: Ragged, rng: np.random.Generator) -> dict[str, Ragged]:
    """Let no user be in two splits."""
    users = rng.permutation(len(likes))
    size = min(MOST_EVAL_USERS, int(np.ceil(EVAL_SHARE * len(users))), len(users) // 3)
    dev, test, train = np.split(users, [size, 2 * size])
    return {"train": likes.take(train), "dev": likes.take(dev), "test": likes.take(test)}


def draw_tastes(likes: Ragged, count: int, rng: np.random.Generator) -> Tastes:
    """Draw users, of each some films, and one more as the answer.

    In the official files the film that most statements name (nine of a hundred) is the answer no more often than
    hundreds of others: so a user's film is the answer with a chance inverse to how many like it.
    """
    users = rng.integers(len(likes), size=count)
    sizes = likes.lengths[users]
    answers = _draw_rare(likes, users, rng)
    wanted = np.where(rng.random(count) < SHARE_USUAL, USUAL, rng.integers(1, MOST + 1, size=count))
    places = draw_distinct(sizes - 1, np.minimum(wanted, sizes - 1), rng)
    places += places >= answers[:, None]  # all of a user's films but the answer
    starts = likes.starts[users]
    films = np.where(places >= 0, likes.values[starts[:, None] + np.maximum(places, 0)], -1)
    return Tastes(films.astype(np.int64), likes.values[starts + answers].astype(np.int64))


def _draw_rare(likes: Ragged, users: Ints, rng: np.random.Generator) -> Ints:
    """Draw the place of one film for each user, the more likely the fewer like it."""
    chances = np.cumsum(1 / np.bincount(likes.values)[likes.values])
    before = np.append(0.0, chances)[likes.starts]
    drawn = before[users] + rng.random(len(users)) * (before[users + 1] - before[users])
    places: Ints = np.searchsorted(chances, drawn, side="right") - likes.starts[users]
    return np.minimum(np.maximum(places, 0), likes.lengths[users] - 1)


def draw_distinct(sizes: Ints, counts: Ints, rng: np.random.Generator) -> Ints:
    """Draw counts[r] different places below sizes[r] for each row, in any order, filled up with -1.

    Floyd's algorithm, all rows in step: every set is as likely as another.
    """
    most = int(counts.max(initial=0))
    drawn = np.full((len(sizes), most), -1, np.int64)
    for step in range(most):
        top = sizes - counts + step
        going = step < counts
        place = rng.integers(0, np.where(going, top, 0) + 1)
        place = np.where((drawn[:, :step] == place[:, None]).any(axis=1), top, place)
        drawn[going, step] = place[going]
    keys = np.where(drawn >= 0, rng.random(drawn.shape), 2.0)
    return np.take_along_axis(drawn, np.argsort(keys, axis=1), axis=1)


def state(kb: KnowledgeBase, tastes: Tastes, rng: np.random.Generator) -> list[str]:
    """Say what is liked, in one of the ways there are."""
    used = rng.integers(len(STATEMENTS), size=len(tastes)).tolist()
    return [
        STATEMENTS[template].format(films=listed([kb.entities[film] for film in row if film >= 0]))
        for template, row in zip(used, tastes.liked.tolist(), strict=True)
    ]


def listed(names: Sequence[str]) -> str:
    """Return `A`, `A and B`, or `A, B, and C`."""
    if len(names) < 3:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"


def recommend(
    kb: KnowledgeBase, likes: Ragged, count: int, rng: np.random.Generator
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return examples of task 2."""
    tastes = draw_tastes(likes, count, rng)
    asked = rng.integers(len(REQUESTS), size=count).tolist()
    said = state(kb, tastes, rng)
    texts = pl.Series("text", [f"{text} {REQUESTS[place]}" for text, place in zip(said, asked, strict=True)])
    examples = texts.to_frame().select(turns=turns_of("text"), correct=one_each(tastes.answer))
    return examples, pl.DataFrame({"response": np.ones(count, np.int64)})


def turns_of(*columns: str) -> pl.Expr:
    """Return turns whose texts are these columns, the user's first, in turn."""
    speakers = ("user", "model")
    turns = [pl.struct(speaker=pl.lit(speakers[place % 2]), text=pl.col(name)) for place, name in enumerate(columns)]
    return pl.concat_list(turns)


def one_each(values: NDArray[np.integer]) -> pl.Series:
    """Return lists of one value."""
    return pl.Series(values.reshape(-1, 1), dtype=pl.Array(pl.UInt32, 1)).cast(pl.List(pl.UInt32))
