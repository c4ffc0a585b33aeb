"""None of these: any ranker, and how likely it is that no option is right (DSTC7, subtask 4)."""

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.arrays import read_arrays, write_arrays
from rejoinder.errors import UserError
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.stacking import is_correct, learn_weights, scale_of, softmax, strengths
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.tasks.selection import NONE, SelectionTask
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

_FILE = "none.npz"
_FOLDS = 5


class Learned(NamedTuple):
    """A scale and a temperature that turn scores into logits, a logistic regression, and where to abstain."""

    scale: Floats
    temperature: Floats
    mean: Floats
    spread: Floats
    weights: Floats
    bias: Floats
    threshold: Floats
    """The least confidence with which an option is put before NONE; 0: whatever is more likely."""


class Abstain(SelectionSystem):
    """Gives NONE its place among the options of another ranker.

    Ranked by probability: NONE has p, learned from the scores of the example's options; the options share 1 - p by a
    softmax whose temperature is learned too.
    """

    class Settings(msgspec.Struct, frozen=True):
        """Whom to ask, and how careful to be."""

        ranker: str
        """A recipe, or the folder of a trained model."""
        precision: float | None = None
        """Put NONE first wherever an option is too doubtful, so that those put first on dev are right this often."""
        share: float = 0.2
        """How many examples have no right option, where dev has none of that kind."""

    learned: Learned

    def part_sources(self) -> tuple[str, ...]:
        """Return the ranker."""
        return (self.settings.ranker,)

    def check(self, lesson: Lesson[SelectionTask]) -> None:
        """Ask for dev."""
        if lesson.dev is None:
            raise UserError("how likely it is that no option is right is learned on dev: name a task by --dev")

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn on dev, which the ranker has not learned from."""
        assert lesson.dev is not None
        run = self.parts[0].predict(lesson.dev, lesson.watch)
        correct = is_correct(run.choices, lesson.dev.truth().correct)
        self.learned = _learn(run, correct, self.settings.share)
        if self.settings.precision is not None:
            threshold = _choose_threshold(run, correct, self.settings)
            self.learned = self.learned._replace(threshold=np.array(threshold))

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Rank NONE among the options."""
        return place_none(self.parts[0].predict(task, watch), self.learned)

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        write_arrays(folder / _FILE, self.learned._asdict())

    def load(self, folder: Path) -> None:
        """Read what was learned."""
        self.learned = Learned(**read_arrays(folder / _FILE, Learned._fields))


def place_none(run: SelectionRun, learned: Learned) -> SelectionRun:
    """Put NONE into every ranking, with its probability."""
    logits, starts = _logits(run, learned)
    none = probability_of_none(logits, starts, learned)
    shares = softmax(logits, starts) * (1 - np.repeat(none, np.diff(starts, append=len(logits))))
    doubtful = shares[starts] < learned.threshold
    none = np.where(doubtful, np.maximum(none, np.nextafter(shares[starts], 2)), none)
    added = pl.DataFrame({"example": run.choices["example"].gather(starts), "option": NONE, "score": none})
    ranked = pl.concat([added, run.choices.with_columns(score=pl.Series(shares))])
    # NONE comes first among equals, and before an option that it was lifted to
    ranked = ranked.with_columns(score=pl.col("score") / pl.col("score").sum().over("example"))
    return SelectionRun("none of these", ranked.sort("example", "score", descending=[False, True], maintain_order=True))


def probability_of_none(logits: Floats, starts: Rows, learned: Learned) -> Floats:
    """Return how likely it is that no option is right, for each example."""
    signals = (_signals(logits, starts) - learned.mean) / learned.spread
    return np.asarray(1 / (1 + np.exp(-(signals @ learned.weights + learned.bias))))


def _logits(run: SelectionRun, learned: Learned) -> tuple[Floats, Rows]:
    return strengths(run, float(learned.scale)) * learned.temperature, _starts(run.choices["example"].to_numpy())


def _starts(example: NDArray[np.integer]) -> Rows:
    return np.flatnonzero(np.diff(example.astype(np.int64), prepend=-1))


def _signals(logits: Floats, starts: Rows) -> Floats:
    """Describe each example's ranking: how good the best is, how far ahead, and how undecided the whole is."""
    sizes = np.diff(starts, append=len(logits))
    last = starts + sizes - 1
    best, second, tenth = (logits[np.minimum(starts + place, last)] for place in (0, 1, 9))
    shares = softmax(logits, starts)
    entropy = -np.add.reduceat(shares * np.log(shares + 1e-300), starts)
    mean = np.add.reduceat(logits, starts) / sizes
    spread = np.sqrt(np.maximum(np.add.reduceat(logits**2, starts) / sizes - mean**2, 0))
    columns = (best, best - second, second - tenth, entropy, np.log(shares[starts] + 1e-300), best - mean, spread)
    return np.stack(columns, axis=1)


class _Lessons(NamedTuple):
    signals: Floats
    none: NDArray[np.bool_]
    weight: Floats
    example: Rows


def _learn(run: SelectionRun, correct: NDArray[np.bool_], share: float) -> Learned:
    scale = np.array(scale_of(run))
    values = strengths(run, float(scale))
    temperature = learn_weights(values[:, None], run.choices["example"].to_numpy(), correct, penalty=1e-3)[0]
    nothing = np.zeros(0)
    start = Learned(scale, np.array(temperature), nothing, nothing, nothing, nothing, np.array(0.0))
    lessons = _lessons(run, correct, start, share)
    return _regression(lessons, start)


def _lessons(run: SelectionRun, correct: NDArray[np.bool_], learned: Learned, share: float) -> _Lessons:
    """Take each example as it is, and, where a right option is there, once more without it.

    The two kinds are weighed so that those without a right option are as frequent as they were.
    """
    example = run.choices["example"].to_numpy().astype(np.intp)
    logits, starts = _logits(run, learned)
    answered = np.logical_or.reduceat(correct, starts)
    observed = float(1 - answered.mean()) or share
    bare = ~correct & np.isin(example, example[starts][answered])
    bare_starts = _starts(example[bare])
    signals = np.concatenate([_signals(logits, starts), _signals(logits[bare], bare_starts)])
    none = np.concatenate([~answered, np.ones(len(bare_starts), dtype=bool)])
    weight = np.where(none, observed / max(none.sum(), 1), (1 - observed) / max((~none).sum(), 1)) * len(none)
    return _Lessons(signals, none, weight, np.concatenate([example[starts], example[bare][bare_starts]]))


def _regression(lessons: _Lessons, start: Learned) -> Learned:
    from sklearn.linear_model import LogisticRegression

    if lessons.none.all() or not lessons.none.any():
        raise UserError("dev has no example with a right option, or only one option each: nothing can be learned")
    mean, spread = lessons.signals.mean(axis=0), lessons.signals.std(axis=0)
    spread[spread == 0] = 1.0
    found = LogisticRegression().fit((lessons.signals - mean) / spread, lessons.none, lessons.weight)
    return start._replace(mean=mean, spread=spread, weights=found.coef_[0], bias=found.intercept_[0])


def _choose_threshold(run: SelectionRun, correct: NDArray[np.bool_], settings: Abstain.Settings) -> float:
    """Return the least confidence that reaches the wanted precision, each fifth of dev judged by the other four."""
    wanted = float(settings.precision or 0)
    example = run.choices["example"].to_numpy()
    fold = example % _FOLDS
    confidence, right = [], []
    for number in range(_FOLDS):
        inside = fold == number
        learned = _learn(SelectionRun("", run.choices.filter(~inside)), correct[~inside], settings.share)
        held = SelectionRun("", run.choices.filter(inside))
        logits, starts = _logits(held, learned)
        confidence.append(softmax(logits, starts)[starts] * (1 - probability_of_none(logits, starts, learned)))
        right.append(correct[inside][starts])
    order = np.argsort(-np.concatenate(confidence), kind="stable")
    precision = np.cumsum(np.concatenate(right)[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(precision >= wanted)
    if not len(enough):
        raise UserError(f"no confidence reaches a precision of {wanted} on dev; the best is {precision.max():.3f}")
    return float(np.concatenate(confidence)[order][enough[-1]])
