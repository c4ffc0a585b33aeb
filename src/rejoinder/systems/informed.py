"""A ranker with knowledge (DSTC7, subtask 5): pages that context and options name, or are about, as more to weigh."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.arrays import read_shaped, write_arrays
from rejoinder.errors import UserError, expect_least
from rejoinder.files import read_parquet
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.pages import READ, Pages
from rejoinder.systems.ranking import Pairs, pair_products, pairs_of
from rejoinder.systems.retrieval import Tfidf
from rejoinder.systems.stacking import (
    is_correct,
    learn_order,
    learn_weights,
    mean_rank,
    scale_of,
    softmax,
    starts_of,
    strengths,
    with_shares,
)
from rejoinder.systems.system import Lesson, SelectionSystem, expect_no_none
from rejoinder.systems.turns import turns_of
from rejoinder.systems.words import count_words
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float64]

_PAGES, _WEIGHTS = "pages.npz", "weights.npz"
_PENALTY = 30.0
"""Pages say little, and a few hundred examples of dev seem to say much of them."""
_AT_ONCE = 1_000
"""Examples that are compared with all pages at once."""
_OPINION, _KNOWLEDGE = 2, 4
"""How many numbers the ranker has for each choice, and how many the pages."""
_FOLDS = 5
_ROUNDING = 1e-9


class Informed(SelectionSystem):
    """Weighs a ranker's score with what pages of knowledge say of context and option.

    A page that an option names says what the option is about: `lspci` has the words of a context that asks for
    hardware. A page that the context names, or is about, tells which words a reply to it may have. Where dev does not
    show that pages help, they weigh nothing, and the ranker's order stays.
    """

    class Settings(msgspec.Struct, frozen=True):
        """Whom to inform, and of what."""

        ranker: str
        """A recipe, or the folder of a trained model."""
        knowledge: Literal["pages", "none"] = "pages"
        """none: the same system without the pages, to see what they add."""
        pages: int = 3
        """Pages that a context is taken to be about."""
        words: Tfidf.Settings = Tfidf.Settings()

        def __post_init__(self) -> None:
            """Refuse fewer than no pages."""
            expect_least(self, pages=0)

    words: Tfidf
    pages: Pages
    scale: float
    weights: Floats

    @property
    def reads(self) -> bool:
        """Whether there are pages to read."""
        return bool(self.settings.knowledge == "pages")

    def part_sources(self) -> tuple[str, ...]:
        """Return the ranker."""
        return (self.settings.ranker,)

    def expect_part(self, source: str, part: SelectionSystem) -> None:
        """Refuse a ranker that says NONE already."""
        expect_no_none(source, part)

    def check(self, lesson: Lesson[SelectionTask]) -> None:
        """Ask for dev and, where pages are to be read, for knowledge."""
        if lesson.dev is None:
            raise UserError("what knowledge weighs is learned on dev: name a task by --dev")
        if self.reads and lesson.train.knowledge is None:
            raise UserError("this task names no knowledge; `rejoinder build` adds it by --knowledge or --courses")

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Read the pages, and learn on dev what they weigh."""
        assert lesson.dev is not None
        if self.reads:
            self.words = Tfidf(self.settings.words)
            self.words.fit(lesson)
            self.pages = self._read(lesson.train)
        run = self.ask(0, lesson.dev, lesson.watch)
        self.scale = scale_of(run)
        correct, example = is_correct(run.choices, lesson.dev.truth().correct), run.choices["example"].to_numpy()
        values = self._features(lesson.dev, run)
        self.weights = np.eye(values.shape[1])[0]  # the ranker's scores, and nothing else
        if self.reads and _tell_more(values, example, correct):
            self.weights = learn_order(values, example, correct, _PENALTY)
        elif self.reads:
            self.notes.append("the pages tell right options on dev no better than the ranker alone: they weigh nothing")

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        run = self.ask(0, task, watch)
        ranked = with_shares(run.choices, self._features(task, run) @ self.weights)
        return SelectionRun("informed", ranked.sort("example", "score", descending=[False, True], maintain_order=True))

    def _read(self, task: SelectionTask) -> Pages:
        pages = read_parquet(task.knowledge) if task.knowledge is not None else pl.DataFrame()
        if not {"title", "text"} <= set(pages.columns):
            raise UserError(f"{task.knowledge}: holds no pages of knowledge; expected the columns title, text")
        pages = pages.with_columns(pl.col("title", "text").fill_null(""))
        texts = [title + " " + text[:READ] for title, text in pages.select("title", "text").iter_rows()]
        weights = self.words.weigh_options(count_words(texts, self.settings.words.stem))
        return Pages.of(pages, weights, turns_of(task).texts)

    def _features(self, task: SelectionTask, run: SelectionRun) -> Floats:
        """Return what is known of each choice: the ranker's opinion, and the pages'."""
        rank = run.choices.select(mean_rank().log()).to_series().to_numpy()
        opinion = np.column_stack([strengths(run, self.scale), -rank])
        if not self.reads:
            return opinion
        pairs = pairs_of(task, run.choices)
        used, place = np.unique(pairs.row, return_inverse=True)
        options = task.options["text"].gather(used).to_list()
        return np.column_stack([opinion, self._knowledge(task, options, Pairs(pairs.example, place))])

    def _knowledge(self, task: SelectionTask, options: list[str], pairs: Pairs) -> Floats:
        """Return what pages tell of options, which are in the order of their examples."""
        offered = self.words.weigh_options(count_words(options, self.settings.words.stem))
        named, words = self.pages.named(options), self.pages.own_columns(offered)
        parts = [np.zeros((0, _KNOWLEDGE))]
        for start in range(0, task.examples.height, _AT_ONCE):
            few = msgspec.structs.replace(task, examples=task.examples.slice(start, _AT_ONCE))
            own = slice(*np.searchsorted(pairs.example, [start, start + _AT_ONCE]))
            local = Pairs(pairs.example[own] - start, pairs.row[own])
            parts.append(np.column_stack(list(self._compared(few, named, words, local))))
        return np.asarray(np.log1p(np.concatenate(parts)))

    def _compared(self, task: SelectionTask, names: Any, words: Any, pairs: Pairs) -> Iterator[NDArray[Any]]:
        """Compare what options name, and their words, with the pages that contexts name or are about."""
        named, near = self.pages.named(task.contexts()), self.pages.near(self.words.weigh_contexts(turns_of(task)))
        about = named + self.pages.nearest(near, self.settings.pages)
        yield pair_products(near, names, pairs)
        yield pair_products(self.pages.words_of(about), words, pairs)
        yield pair_products(named, names, pairs)
        yield np.asarray(names.sum(axis=1)).ravel()[pairs.row]

    def save(self, folder: Path) -> None:
        """Write the pages and what was learned."""
        if self.reads:
            self.words.save(folder)
            self.pages.save(folder / _PAGES)
        write_arrays(folder / _WEIGHTS, {"scale": np.array(self.scale), "weights": self.weights})

    def load(self, folder: Path) -> None:
        """Read the pages and what was learned."""
        if self.reads:
            self.words = Tfidf(self.settings.words)
            self.words.load(folder)
            self.pages = Pages.load(folder / _PAGES)
        learned = read_shaped(folder / _WEIGHTS, {"scale": (), "weights": (_OPINION + _KNOWLEDGE * self.reads,)})
        self.scale, self.weights = float(learned["scale"]), learned["weights"]


def _tell_more(values: Floats, example: NDArray[np.integer[Any]], correct: NDArray[np.bool_]) -> bool:
    """Whether the pages make right options likelier, by more than the standard error, where they did not learn."""
    answered = np.isin(example, example[correct])
    rows = values[answered], example[answered], correct[answered]
    if not answered.any():
        return False
    gains = _likelihoods(*rows) - _likelihoods(rows[0][:, :_OPINION], *rows[1:])
    return bool(gains.mean() > gains.std() / np.sqrt(len(gains)) + _ROUNDING)


def _likelihoods(values: Floats, example: NDArray[np.integer[Any]], correct: NDArray[np.bool_]) -> Floats:
    """Return, by its logarithm, how likely each example's right options are to what the other four fifths teach."""
    found = []
    folds = np.unique(example, return_inverse=True)[1] % _FOLDS
    for fold in np.unique(folds):
        held = folds == fold
        weights = learn_weights(values[~held], example[~held], correct[~held], _PENALTY)
        starts = starts_of(example[held])
        shares = softmax(values[held] @ weights, starts)
        found.append(np.add.reduceat(np.where(correct[held], shares, 0.0), starts))
    return np.asarray(np.log(np.maximum(np.concatenate(found), 1e-300)))
