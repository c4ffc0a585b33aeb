"""How alike films are by what the knowledge base says of them, and how much of each likeness to use."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.sparse.linalg import svds

from rejoinder.corpora.films import RELATIONS
from rejoinder.systems.film_world import FilmWorld, Matrix

Floats = NDArray[np.float32]
_SHARED = ("directed_by", "written_by", "starred_actors", "has_genre", "has_tags")
_TOPICS = 50
_YEARS = 3.0
"""Films some years apart are alike: e-fold less so every three years."""
_FIRST_YEAR, _LAST_YEAR = 1880, 2050
_PENALTY = 1e-2


class Likeness:
    """Means over liked films of: the cosine by each relation, by topics (latent semantic analysis), and of years."""

    def __init__(self, world: FilmWorld) -> None:
        self._by_relation = [_unit_rows(_weighted(world, [RELATIONS.index(name)])) for name in _SHARED]
        self._topics = _topics(_weighted(world, [RELATIONS.index(name) for name in (*_SHARED, "in_language")]))
        self._year, self._near = _years(world)

    def features(self, liked: Matrix) -> Iterator[Floats]:
        """Yield arrays of examples x films."""
        mean = sparse.diags(1 / np.maximum(np.asarray(liked.sum(axis=1)).ravel(), 1)).astype(np.float32) @ liked
        for vectors in self._by_relation:
            yield ((mean @ vectors) @ vectors.T).toarray()
        yield np.asarray((mean @ self._topics) @ self._topics.T)
        shape = (len(self._year), len(self._near))
        years = sparse.csr_matrix((np.ones(shape[0], np.float32), (np.arange(shape[0]), self._year)), shape)
        yield np.asarray((mean @ years) @ self._near)[:, self._year]


def _weighted(world: FilmWorld, relations: list[int]) -> Matrix:
    """Return films x facts that several films have, the rarer the heavier."""
    kb = world.kb
    used = np.isin(kb.relation, relations)
    film, fact = (
        world.film_of[kb.titles[kb.film[used]]],
        kb.value[used].astype(np.int64) * len(RELATIONS) + kb.relation[used],
    )
    facts, column = np.unique(fact, return_inverse=True)
    held = sparse.csr_matrix((np.ones(len(film), np.float32), (film, column)), (len(world.films), max(len(facts), 1)))
    held.data[:] = 1
    count = np.asarray(held.sum(axis=0)).ravel()
    shared = np.flatnonzero(count > 1)
    rarity = np.log(len(world.films) / np.maximum(count[shared], 1)).astype(np.float32)
    return (held[:, shared] @ sparse.diags(rarity)).tocsr()


def _unit_rows(vectors: Matrix) -> Matrix:
    norms = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    return (sparse.diags(1 / np.maximum(norms, 1e-9)).astype(np.float32) @ vectors).tocsr().astype(np.float32)


def _topics(vectors: Matrix) -> Floats:
    size = min(_TOPICS, *(side - 1 for side in vectors.shape))
    if size < 1:
        return np.zeros((vectors.shape[0], 1), np.float32)
    start = np.random.default_rng(0).random(min(vectors.shape))
    left, strength, _ = svds(_unit_rows(vectors).astype(np.float64), k=size, v0=start)
    topics = left * strength
    return np.asarray(topics / np.maximum(np.linalg.norm(topics, axis=1, keepdims=True), 1e-9), np.float32)


def _years(world: FilmWorld) -> tuple[NDArray[np.int64], Floats]:
    """Return each film's year, counted from the first (0: not known), and how near years are."""
    kb = world.kb
    year = np.zeros(len(world.films), np.int64)
    for film, value in zip(
        *(array[kb.relation == RELATIONS.index("release_year")].tolist() for array in (kb.film, kb.value)), strict=True
    ):
        name = kb.entities[value]
        if name.isdecimal() and _FIRST_YEAR < int(name) < _LAST_YEAR:
            year[world.film_of[kb.titles[film]]] = int(name) - _FIRST_YEAR
    count = np.arange(_LAST_YEAR - _FIRST_YEAR)
    near = np.exp(-np.abs(count[:, None] - count) / _YEARS)
    near[0] = near[:, 0] = 0
    return year, near.astype(np.float32)


def learn_weights(features: Floats, answer: NDArray[np.integer], barred: NDArray[np.bool_]) -> Floats:
    """Return the weights under which the softmax of the weighted features makes the answers likeliest.

    Features are examples x films x features, and are scaled in place; barred films cannot be the answer.
    """
    spread = features.std(axis=(0, 1)) + np.float32(1e-6)
    features /= spread
    flat = features.reshape(-1, features.shape[-1])
    rows = np.arange(len(answer))
    right = features[rows, answer].mean(axis=0)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = (flat @ weights.astype(np.float32)).reshape(barred.shape)
        scores[barred] = -np.inf
        scores -= scores.max(axis=1, keepdims=True)
        chance = np.exp(scores)
        chance /= chance.sum(axis=1, keepdims=True)
        likely = -np.log(np.maximum(chance[rows, answer], 1e-30)).mean()
        slope = chance.ravel() @ flat / np.float32(len(rows)) - right
        return float(likely + _PENALTY * weights @ weights), slope + 2 * _PENALTY * weights

    found = minimize(loss, np.zeros(features.shape[-1]), jac=True, method="L-BFGS-B", options={"maxiter": 50})
    return np.asarray(found.x / spread, np.float32)
