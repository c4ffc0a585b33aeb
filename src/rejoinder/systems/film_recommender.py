"""What films somebody may like who likes some others (Dodge et al. 2016, sections 2.2 and 3.5).

The texts are thrown away: an example is a row of a matrix with the films that its user names, and the answer. Ways to
fill that matrix: how often a film is liked at all, its singular value decomposition (section 3.5), EASE (Steck 2019,
"Embarrassingly shallow autoencoders"), and a mixture of EASE with what the knowledge base says of the films, whose
weights are learned on dev.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from rejoinder.arrays import read_arrays, write_arrays
from rejoinder.corpora.ragged import Ragged
from rejoinder.errors import UserError
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.film_likeness import Likeness, learn_weights
from rejoinder.systems.film_world import (
    FilmWorld,
    Matrix,
    as_matrix,
    entities_of,
    load_world,
    mentions,
    world_of,
)
from rejoinder.systems.ranking import KEPT, Pairs, answers_of, best_columns, blocks, join_pairs, to_run
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float32]
_LEARNED = "recommender.npz"
_BLOCK = 500
_WEIGHED = 300
"""Examples by which the mixture's weights are learned: enough for a dozen, and all films are looked at."""
_LEAST_LINK = 0.02
"""Added to EASE's scores before their logarithm is taken."""


class Recommender:
    """Scores all films for people who like some of them."""

    def __init__(self, world: FilmWorld, method: str = "mixture", dimension: int = 50, penalty: float = 20.0) -> None:
        self.world, self.method, self.dimension, self.penalty = world, method, dimension, penalty
        self.learned: dict[str, NDArray[Any]] = {}
        self.likeness = Likeness(world) if method == "mixture" else None

    def learn(self, train: SelectionTask, dev: SelectionTask | None = None, seed: int = 0) -> None:
        """Learn from examples, and the mixture's weights from dev, or else from some of the same examples."""
        named, answer = self._statements(train)
        liked = _distinct_rows(named + answer)
        popularity = np.asarray(liked.sum(axis=0)).ravel()
        self.learned["popularity"] = popularity.astype(np.float32)
        if self.method == "svd":
            self.learned["directions"] = _directions(liked, self.dimension, seed)
        if self.method in ("ease", "mixture"):
            self.learned["active"] = np.flatnonzero(popularity)
            self.learned["links"] = ease(liked[:, self.learned["active"]], self.penalty)
        if self.likeness is not None:
            self._weigh(train if dev is None else dev, seed)

    def _statements(self, task: SelectionTask) -> tuple[Matrix, Matrix]:
        """Return what is named and what is answered where a dialogue begins with films and gets one for an answer.

        Later on, what is answered has more to do with what was asked than with what is liked.
        """
        begun = task.examples["turns"].list.len() == 1
        first = msgspec.structs.replace(task, examples=task.examples.filter(begun), groups=None)
        named, answer = self.named(first), self.answered(first)
        chosen = np.flatnonzero((np.diff(answer.indptr) == 1) & (np.diff(named.indptr) > 0))
        if not len(chosen):
            raise UserError("no example names films in its first turn and has one film as its answer")
        return named[chosen], answer[chosen]

    def named(self, task: SelectionTask) -> Matrix:
        """Return examples x films that the user names."""
        return as_matrix(self.world, mentions(self.world, task, own=True))

    def answered(self, task: SelectionTask) -> Matrix:
        """Return examples x films that are answers."""
        answers = answers_of(task)
        return as_matrix(self.world, Ragged(answers.starts, entities_of(self.world, task)[answers.values]))

    def score(self, liked: Matrix) -> Floats:
        """Return the score of every film for each row of liked ones; the mixture's are log-odds."""
        if self.method == "popularity":
            return np.tile(self.learned["popularity"], (liked.shape[0], 1))
        if self.method == "svd":
            directions = self.learned["directions"]
            return np.asarray((liked @ directions) @ directions.T, dtype=np.float32)
        if self.method == "ease":
            # where no link is known, films that are liked at all come first
            return np.asarray(self._linked(liked) + 1e-6 * np.log1p(self.learned["popularity"]), np.float32)
        return self._mixed(liked)

    def _linked(self, liked: Matrix) -> Floats:
        scores = np.zeros(liked.shape, np.float32)
        active = self.learned["active"]
        scores[:, active] = liked[:, active] @ self.learned["links"]
        return scores

    def _mixed(self, liked: Matrix) -> Floats:
        scores = np.zeros(liked.shape, np.float32)
        for weight, feature in zip(self.learned["weights"], self._features(liked), strict=True):
            scores += weight * feature
        return scores

    def _features(self, liked: Matrix) -> Iterator[NDArray[Any]]:
        """Yield what the mixture mixes, one array of examples x films at a time."""
        popularity = self.learned["popularity"]
        yield np.log(np.maximum(self._linked(liked), 0) + _LEAST_LINK)
        yield np.broadcast_to(np.log1p(popularity / popularity.max() * 1e3), liked.shape)
        yield np.broadcast_to(popularity > 0, liked.shape)
        if self.likeness is not None:
            yield from self.likeness.features(liked)

    def _weigh(self, task: SelectionTask, seed: int) -> None:
        """Learn the weights: a softmax over films, those that are named left out."""
        rng = np.random.default_rng(seed)
        liked, answer = self._statements(task)
        chosen = np.sort(rng.choice(liked.shape[0], min(liked.shape[0], _WEIGHED), replace=False))
        liked = liked[chosen]
        features = np.stack([np.asarray(feature, np.float32) for feature in self._features(liked)], axis=-1)
        self.learned["weights"] = learn_weights(features, answer[chosen].indices, liked.toarray() > 0)


def _distinct_rows(liked: Matrix) -> Matrix:
    """Return every set of films once: drawn with replacement, users with few films would else outweigh all others."""
    liked.data[:] = 1
    liked.sort_indices()
    spread = np.random.default_rng(0).random(liked.shape[1])
    return liked[np.sort(np.unique(liked @ spread, return_index=True)[1])]


def ease(liked: Matrix, penalty: float) -> Floats:
    """Return EASE's weights: the linear map of rows onto themselves that may not use a film to predict itself.

    B = I - P / diag(P) with P = (X'X + penalty · I)^-1 (Steck 2019, equation 8); the penalty is in units of how often
    a film is liked on average, so that it does not depend on the number of examples.
    """
    gram = (liked.T @ liked).toarray().astype(np.float32)
    gram[np.diag_indices(len(gram))] += penalty * np.diag(gram).mean()
    inverse = np.linalg.inv(gram)
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return np.asarray(weights, np.float32)


def _directions(liked: Matrix, dimension: int, seed: int) -> Floats:
    """Return the first right singular vectors."""
    gram = (liked.T @ liked).astype(np.float64)
    size = min(dimension, gram.shape[0] - 1)
    start = np.random.default_rng(seed).random(gram.shape[0])
    return np.asarray(eigsh(gram, k=size, v0=start)[1], np.float32)


class FilmRecommender(SelectionSystem):
    """Recommends films that are not named."""

    class Settings(msgspec.Struct, frozen=True):
        """How."""

        method: Literal["popularity", "svd", "ease", "mixture"] = "mixture"
        dimension: int = 50
        """Of the singular value decomposition (appendix B)."""
        penalty: float = 20.0
        """EASE's regularisation, in units of how often a film is liked."""

    recommender: Recommender

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn what goes with what."""
        self._start(world_of(lesson.train))
        with lesson.watch("learning tastes", None):
            self.recommender.learn(lesson.train, lesson.dev, lesson.seed)

    def _start(self, world: FilmWorld) -> None:
        settings = self.settings
        self.recommender = Recommender(world, settings.method, settings.dimension, settings.penalty)

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        world = self.recommender.world
        rows = world.rows_in(task)[world.films]
        offered = np.flatnonzero(rows >= 0)
        liked = self.recommender.named(task)
        parts, scores = [], []
        with watch("recommending", liked.shape[0]) as advance:
            for block in blocks(liked.shape[0], _BLOCK):
                score = self.recommender.score(liked[block])
                score[liked[block].nonzero()] = -np.inf
                score = score[:, offered]
                best = best_columns(score, KEPT)
                example = np.repeat(np.arange(block.start, block.stop), best.shape[1])
                found = np.take_along_axis(score, best, axis=1).ravel()
                finite = np.isfinite(found)
                parts.append(Pairs(example[finite], rows[offered[best.ravel()[finite]]]))
                scores.append(found[finite])
                advance(block.stop - block.start)
        return to_run(task, self.settings.method, join_pairs(parts), np.concatenate(scores))

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        self.recommender.world.save(folder)
        save_learned(self.recommender, folder)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        self._start(load_world(folder))
        load_learned(self.recommender, folder)


def save_learned(recommender: Recommender, folder: Path) -> None:
    """Write a recommender's arrays."""
    write_arrays(folder / _LEARNED, recommender.learned)


def load_learned(recommender: Recommender, folder: Path) -> None:
    """Read a recommender's arrays."""
    recommender.learned = read_arrays(folder / _LEARNED)
