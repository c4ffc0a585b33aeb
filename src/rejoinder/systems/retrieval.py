"""Rankers that compare words: random order (for reference), TF-IDF and BM25 of the context with every option."""

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.system import SelectionSystem
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

KEPT = 100
"""How many choices of a pool a run keeps, as in DSTC7's submissions."""


def rank_at_random(task: SelectionTask, seed: int = 0) -> SelectionRun:
    """Order the options at random."""
    rng = np.random.default_rng(seed)
    return _rank(task, "random", lambda _, rows: rng.random(len(rows)))


def rank_by_tfidf(task: SelectionTask) -> SelectionRun:
    """Rank by the cosine of TF-IDF vectors of the whole context and the option."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\w+|[^\w\s]+")
    options = vectors.fit_transform(task.options["text"].to_list())
    contexts = vectors.transform(task.contexts())

    def score(example: int, rows: Rows) -> Floats:
        return np.asarray((options[rows] @ contexts[example].T).toarray().ravel(), dtype=np.float64)

    return _rank(task, "TF-IDF", score)


def rank_by_bm25(task: SelectionTask) -> SelectionRun:
    """Rank by BM25 (Lucene's variant) with the whole context as the query."""
    import bm25s

    index = bm25s.BM25()
    index.index(
        bm25s.tokenize(task.options["text"].to_list(), stopwords=None, show_progress=False), show_progress=False
    )
    queries = bm25s.tokenize(task.contexts(), stopwords=None, return_ids=False, show_progress=False)

    def score(example: int, rows: Rows) -> Floats:
        known = [word for word in queries[example] if word in index.vocab_dict]
        return np.asarray(index.get_scores(known)[rows] if known else np.zeros(len(rows)), dtype=np.float64)

    return _rank(task, "BM25", score)


def _rank(task: SelectionTask, name: str, score: Callable[[int, Rows], Floats]) -> SelectionRun:
    ids = task.options["id"]
    parts = [
        pl.DataFrame(
            {
                "example": pl.repeat(example, len(rows), dtype=pl.UInt32, eager=True),
                "option": ids.gather(rows),
                "score": scores,
            }
        )
        for example, rows, scores in _ranked(task, score)
    ]
    return SelectionRun(name, pl.concat(parts))


def _ranked(task: SelectionTask, score: Callable[[int, Rows], Floats]) -> Iterator[tuple[int, Rows, Floats]]:
    pool = np.arange(task.options.height)
    for example, options in enumerate(task.examples["options"]):
        rows = pool if options is None else options.to_numpy().astype(np.intp)
        scores = score(example, rows)
        best = np.argsort(-scores, kind="stable")[: KEPT if options is None else None]
        yield example, rows[best], scores[best]


class Random(SelectionSystem):
    """Orders the options at random, for reference."""

    class Settings(msgspec.Struct, frozen=True):
        """Which random order."""

        seed: int = 0

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        return rank_at_random(task, self.settings.seed)


class Tfidf(SelectionSystem):
    """Ranks by the cosine of TF-IDF vectors."""

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        return rank_by_tfidf(task)


class Bm25(SelectionSystem):
    """Ranks by BM25."""

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        return rank_by_bm25(task)
