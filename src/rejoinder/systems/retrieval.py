"""Simple rankers: random order (for reference), what was not said yet, TF-IDF and BM25 of context and option."""

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.arrays import read_arrays, write_arrays
from rejoinder.errors import UserError, expect_least, expect_share
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.ranking import KEPT, Pairs, join_pairs, offered, pools, rank_by_products, to_run
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.systems.turns import Turns, number_texts, turns_of
from rejoinder.systems.words import Matrix, WordStatistics, count_words, lengths, with_values
from rejoinder.tasks.selection import SelectionTask
from rejoinder.text import lowered
from rejoinder.watch import Watch, unwatched

_STATISTICS, _SEED = "words.npz", "seed.npz"


class Random(SelectionSystem):
    """Orders the options at random, for reference."""

    seed = 0

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Take the training's seed: each has an order of its own."""
        self.seed = lesson.seed

    def save(self, folder: Path) -> None:
        """Write the seed."""
        write_arrays(folder / _SEED, {"seed": np.array(self.seed)})

    def load(self, folder: Path) -> None:
        """Read the seed."""
        self.seed = int(read_arrays(folder / _SEED, ("seed",))["seed"])

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        rng = np.random.default_rng(self.seed)
        parts = [offered(task)]
        scores = [rng.random(len(parts[0].row))]
        for examples, size in pools(task):
            kept = min(KEPT, size)
            drawn = [rng.choice(size, kept, replace=False) for _ in examples]
            parts.append(Pairs(np.repeat(examples, kept), np.concatenate(drawn)))
            # the best of `size` numbers drawn at random, in order, without drawing the others
            best = rng.random((len(examples), kept)) ** (1 / (size - np.arange(kept)))
            scores.append(best.cumprod(axis=1).ravel())
        return to_run(task, "random", join_pairs(parts), np.concatenate(scores))


class Unsaid(SelectionSystem):
    """Puts options last that repeat a turn of the context word for word; one of an ensemble's members."""

    def check(self, lesson: Lesson[SelectionTask]) -> None:
        """Refuse a pool to choose from before the other members of an ensemble are trained."""
        if lesson.dev is not None:
            self.expect_task(lesson.dev)

    def expect_task(self, task: SelectionTask) -> None:
        """Refuse a pool."""
        if pools(task):
            raise UserError("unsaid ranks an example's own options alone; for pools there is `cascade`")

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        self.expect_task(task)
        pairs = offered(task)
        return to_run(task, "unsaid", pairs, 1.0 - said_already(turns_of(task), task.options["text"], pairs))


class WordSystem(SelectionSystem):
    """Ranks by the product of words' weights in the context with their weights in the option.

    Words of older turns weigh less: `recency` to the power of how many turns came after them.
    """

    name: ClassVar[str]
    statistics: WordStatistics

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn from the training turns and options how rare each word is."""
        texts = [*lesson.train.options["text"].to_list(), *turns_of(lesson.train).texts]
        distinct, rows = number_texts(texts)
        self.statistics = WordStatistics.of(count_words(distinct, self.settings.stem), np.bincount(rows))

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        options = self.weigh_options(count_words(task.options["text"].to_list(), self.settings.stem))
        return rank_by_products(task, self.name, self.weigh_contexts(turns_of(task)), options, watch)

    def weigh_contexts(self, turns: Turns) -> Matrix:
        """Return the weights of the words of every example's context."""
        counts = _count_each_once(turns.texts, self.settings.stem)
        recency = np.repeat(self.settings.recency**turns.age, np.diff(counts.indptr))
        # an example's turns are rows that follow each other, and become one
        ends = counts.indptr[np.searchsorted(turns.example, np.arange(turns.examples + 1))]
        said = sparse.csr_matrix((counts.data * recency, counts.indices, ends), (turns.examples, counts.shape[1]))
        said.sum_duplicates()
        said.eliminate_zeros()  # of turns that count for nothing
        return self.weigh_said(said)

    @abstractmethod
    def weigh_said(self, counts: Matrix) -> Matrix:
        """Turn contexts' counts, older ones reduced, into weights."""

    @abstractmethod
    def weigh_options(self, counts: Matrix) -> Matrix:
        """Turn options' counts into weights."""

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        self.statistics.save(folder / _STATISTICS)

    def load(self, folder: Path) -> None:
        """Read what was learned."""
        self.statistics = WordStatistics.load(folder / _STATISTICS)


class Tfidf(WordSystem):
    """Ranks by the cosine of TF-IDF vectors."""

    class Settings(msgspec.Struct, frozen=True):
        """How words are weighed; the defaults are the best of a few on real dev data."""

        recency: float = 0.8
        stem: int = 5
        """How many letters of a word count; 0: all."""
        rarity: float = 1.25
        """The power of idf in a vector; 1: plain TF-IDF."""

        def __post_init__(self) -> None:
            """Refuse what turns the order around."""
            expect_least(self, recency=0, stem=0, rarity=0)

    name = "TF-IDF"

    def weigh_options(self, counts: Matrix) -> Matrix:
        """Return vectors of length 1: (log(1 + tf) · idf ^ rarity), with idf = 1 + log((1 + N) / (1 + df))."""
        seen = self.statistics.frequency(counts.indices)
        idf = 1 + np.log((1 + self.statistics.texts) / (1 + seen))
        weights = np.log1p(counts.data) * idf**self.settings.rarity
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        norms = np.sqrt(np.bincount(row, weights**2, minlength=counts.shape[0]))
        norms[norms == 0] = 1  # all its words are of turns that count for nothing
        return with_values(counts, weights / norms[row])

    weigh_said = weigh_options


class Bm25(WordSystem):
    """Ranks by BM25 (Robertson and Zaragoza 2009, section 3), the whole context being the query."""

    class Settings(msgspec.Struct, frozen=True):
        """BM25's parameters; the defaults are the best of a few on real dev data."""

        recency: float = 0.8
        stem: int = 5
        """How many letters of a word count; 0: all."""
        rarity: float = 2.0
        """The power of idf; 1: plain BM25."""
        k1: float = 2.0
        b: float = 0.9
        k3: float = 1.0
        """How soon a word's repetitions in the context stop to count."""

        def __post_init__(self) -> None:
            """Refuse what turns the order around."""
            expect_least(self, recency=0, stem=0, rarity=0, k1=0, k3=0)
            expect_share(self, "b")

    name = "BM25"

    def weigh_said(self, counts: Matrix) -> Matrix:
        """Return qtf (k3 + 1) / (qtf + k3) · idf ^ rarity, with Lucene's idf, which is never negative."""
        seen = self.statistics.frequency(counts.indices)
        idf = np.log1p((self.statistics.texts - seen + 0.5) / (seen + 0.5))
        k3 = self.settings.k3
        return with_values(counts, counts.data * (k3 + 1) / (counts.data + k3) * idf**self.settings.rarity)

    def weigh_options(self, counts: Matrix) -> Matrix:
        """Return tf (k1 + 1) / (tf + k1 (1 - b + b · length / mean length))."""
        k1, b = self.settings.k1, self.settings.b
        relative = np.repeat(lengths(counts) / self.statistics.mean_length, np.diff(counts.indptr))
        return with_values(counts, counts.data * (k1 + 1) / (counts.data + k1 * (1 - b + b * relative)))


def said_already(turns: Turns, options: pl.Series, pairs: Pairs) -> NDArray[np.bool_]:
    """Say which options repeat a turn of their context word for word."""
    used, place = np.unique(pairs.row, return_inverse=True)
    texts = [lowered(text).strip() for text in (*options.gather(used).to_list(), *turns.texts)]
    distinct, number = number_texts(texts)
    said = turns.example * len(distinct) + number[len(used) :]
    return np.isin(pairs.example * len(distinct) + number[: len(used)][place], said)


def _count_each_once(texts: list[str], stem: int) -> Matrix:
    """Count the words of texts of which many are the same."""
    distinct, rows = number_texts(texts)
    return count_words(distinct, stem)[rows]
