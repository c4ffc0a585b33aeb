"""None of these: any ranker, and how likely it is that no option is right (DSTC7, subtask 4)."""

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from rejoinder.arrays import read_shaped, write_arrays
from rejoinder.errors import UserError, expect_share
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.ranking import narrowed, pairs_of
from rejoinder.systems.stacking import is_correct, learn_weights, scale_of, softmax, starts_of, strengths
from rejoinder.systems.system import Lesson, SelectionSystem, expect_no_none
from rejoinder.tasks.selection import NONE, SelectionTask
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

_FILE = "none.npz"
_FOLDS = 5
_FEWEST = 10
"""Examples of dev that a wanted precision has to be seen in."""
_ROUNDING = 1e-9
_CERTAIN = 50.0
"""Log odds of what is certain."""
_SIGNALS = 7
"""How many numbers describe a ranking."""


class Learned(NamedTuple):
    """A scale and a temperature that turn scores into logits, a logistic regression, and where to abstain."""

    scale: Floats
    temperature: Floats
    mean: Floats
    spread: Floats
    weights: Floats
    bias: Floats
    found_weights: Floats
    """Of a second regression: how likely it is that the right option, if there is one, was found at all."""
    found_bias: Floats
    threshold: Floats
    """The least confidence with which an option is put before NONE; 0: whatever is more likely."""
    options: Floats
    """How many options the lists of dev had, in the middle."""


class Abstain(SelectionSystem):
    """Gives NONE its place among the options of another ranker.

    Ranked by probability: NONE has p, learned from the scores of the example's options; the options share 1 - p by a
    softmax whose temperature is learned too. Where a search may miss the right option, they share the less the likelier
    that is.
    """

    class Settings(msgspec.Struct, frozen=True):
        """Whom to ask, and how careful to be."""

        ranker: str
        """A recipe, or the folder of a trained model."""
        precision: float | None = None
        """Put NONE first wherever an option is too doubtful, so that those put first on dev are right this often."""
        share: float = 0.2
        """How many examples have no right option, where dev has none of that kind."""

        def __post_init__(self) -> None:
            """Refuse what is no share."""
            expect_share(self, "share", *(["precision"] if self.precision is not None else []))

    learned: Learned

    @property
    def says_none(self) -> bool:
        """That is what it is for."""
        return True

    def part_sources(self) -> tuple[str, ...]:
        """Return the ranker."""
        return (self.settings.ranker,)

    def expect_part(self, source: str, part: SelectionSystem) -> None:
        """Refuse a ranker that says NONE already."""
        expect_no_none(source, part)

    def check(self, lesson: Lesson[SelectionTask]) -> None:
        """Ask for dev."""
        if lesson.dev is None:
            raise UserError("how likely it is that no option is right is learned on dev: name a task by --dev")

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn on dev, which has taught the ranker little: when to stop, or a few weights of its own."""
        assert lesson.dev is not None
        seen = self._see(lesson.dev, lesson.seed, lesson.watch)
        unfound = len(np.setdiff1d(seen.answered, seen.run.choices["example"].filter(seen.correct)))
        if unfound and unfound == len(seen.answered):
            raise UserError("the ranker found the right option of no example of dev: nothing can be learned")
        if unfound:
            self.notes.append(
                f"the ranker did not find the answers of {unfound:,} of dev's {len(seen.answered):,} that have one"
            )
        self.learned = _learn(seen, self.settings.share)
        if not self.learned.temperature:
            self.notes.append(
                "better scores are no righter on dev: all options of an example are taken to be as likely"
            )
        if self.settings.precision is not None:
            found = _choose_threshold(seen, self.settings)
            self.learned = self.learned._replace(threshold=np.array(found.least))
            where = f"from a confidence of {found.least:.3f} on"
            if found.answered == found.possible:
                where = "wherever an option is likelier than NONE, so that asking for it changes little"
            self.notes.append(
                f"on dev a precision of {self.settings.precision} is reached {where}: by {found.answered:,} of "
                f"{lesson.dev.examples.height:,} examples; the others are NONE"
            )

    def _see(self, dev: SelectionTask, seed: int, watch: Watch) -> "_Seen":
        """Let the ranker rank dev, and lists of it with and without the right options: scores may depend on others."""
        run = self.ask(0, dev, watch)
        correct = is_correct(run.choices, dev.truth().correct)
        # in a pool, an answer may be there that was not found: that is no example without one
        answered = dev.truth().correct.filter(pl.col("option") != NONE).select("example").unique()
        lists = run.choices.with_columns(kept=_without_some(run.choices, correct, seed), right=pl.Series(correct))
        found = pl.col("right").any().over("example")
        bare = lists.join(answered, on="example", how="semi", maintain_order="left")
        bare = bare.filter(pl.when(found).then(~pl.col("right")).otherwise("kept"))
        whole, bare = (few.select(run.choices.columns) for few in (lists.filter("kept"), bare))
        again = (self._ranked(dev, few, watch) for few in (whole, bare))
        return _Seen(run, correct, answered["example"].to_numpy(), *again)

    def _ranked(self, dev: SelectionTask, choices: pl.DataFrame, watch: Watch) -> SelectionRun:
        """Let the ranker rank some choices alone."""
        if choices.is_empty():
            return SelectionRun("", choices)
        return self.ask(0, narrowed(dev, pairs_of(dev, choices)), watch)

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Rank NONE among the options."""
        run = self.ask(0, task, watch)
        return msgspec.structs.replace(place_none(run, self.learned), notes=(*run.notes, *self._doubts(run)))

    def _doubts(self, run: SelectionRun) -> list[str]:
        """Say where lists are of another kind than those that were learned from."""
        here, there = _usual_size(run), float(self.learned.options)
        if there / 2 <= here <= there * 2:
            return []
        return [
            f"how likely it is that none is right was learned from lists of {there:.0f} options and is not to be "
            f"trusted with {here:.0f}; train it on such lists"
        ]

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        write_arrays(folder / _FILE, self.learned._asdict())

    def load(self, folder: Path) -> None:
        """Read what was learned."""
        wide = ("mean", "spread", "weights", "found_weights")
        shapes = {name: (_SIGNALS,) if name in wide else () for name in Learned._fields}
        self.learned = Learned(**read_shaped(folder / _FILE, shapes))


def place_none(run: SelectionRun, learned: Learned) -> SelectionRun:
    """Put NONE into every ranking, with its probability."""
    shares, none, starts = _probabilities(run, learned)
    doubtful = shares[starts] < learned.threshold
    none = np.where(doubtful, np.maximum(none, np.nextafter(shares[starts], 2)), none)
    added = pl.DataFrame({"example": run.choices["example"].gather(starts), "option": NONE, "score": none})
    ranked = pl.concat([added, run.choices.with_columns(score=pl.Series(shares))])
    # NONE comes first among equals, and before an option that it was lifted to
    whole = pl.max_horizontal(1.0, pl.col("score").sum().over("example"))
    ranked = ranked.with_columns(score=pl.col("score") / whole)
    return SelectionRun("none of these", ranked.sort("example", "score", descending=[False, True], maintain_order=True))


def _probabilities(run: SelectionRun, learned: Learned) -> tuple[Floats, Floats, Rows]:
    """Return how likely each option is right, how likely none of an example is, and where examples start."""
    logits, starts = _logits(run, learned)
    signals = (_signals(logits, starts) - learned.mean) / learned.spread
    none = expit(signals @ learned.weights + learned.bias)
    found = (1 - none) * expit(signals @ learned.found_weights + learned.found_bias)
    return softmax(logits, starts) * np.repeat(found, np.diff(starts, append=len(logits))), none, starts


def _logits(run: SelectionRun, learned: Learned) -> tuple[Floats, Rows]:
    return strengths(run, float(learned.scale)) * learned.temperature, starts_of(run.choices["example"].to_numpy())


def _signals(logits: Floats, starts: Rows) -> Floats:
    """Describe each example's ranking: how good the best is, how far ahead, and how undecided the whole is.

    Entropy and the best one's share are told beside those of equal options, of which longer lists have more.
    """
    sizes = np.diff(starts, append=len(logits))
    last = starts + sizes - 1
    best, second, tenth = (logits[np.minimum(starts + place, last)] for place in (0, 1, 9))
    shares = softmax(logits, starts)
    entropy = -np.add.reduceat(shares * np.log(shares + 1e-300), starts) / np.log(np.maximum(sizes, 2))
    mean = np.add.reduceat(logits, starts) / sizes
    spread = np.sqrt(np.maximum(np.add.reduceat(logits**2, starts) / sizes - mean**2, 0))
    ahead = np.log(shares[starts] * sizes + 1e-300)
    columns = (best, best - second, second - tenth, entropy, ahead, best - mean, spread)
    return np.stack(columns, axis=1)


class _Seen(NamedTuple):
    """How a ranker ranks examples, which of its choices are right, and how it ranks fewer of them."""

    run: SelectionRun
    correct: NDArray[np.bool_]
    answered: NDArray[np.uint32]
    """Examples that have a right option, whether the ranker found it or not."""
    whole: SelectionRun
    """Each example's choices but for some wrong ones."""
    bare: SelectionRun
    """Those that have a right option without it, and so as many choices as above: their number shall tell nothing."""

    def of(self, folds: set[int]) -> "_Seen":
        """Return what was seen of some folds of the examples."""
        inside = (pl.col("example") % _FOLDS).is_in(folds)
        run, whole, bare = (SelectionRun("", seen.choices.filter(inside)) for seen in (self.run, self.whole, self.bare))
        right = self.correct[self.run.choices.select(inside).to_series()]
        return _Seen(run, right, self.answered, whole, bare)


def _without_some(choices: pl.DataFrame, correct: NDArray[np.bool_], seed: int) -> pl.Series:
    """Say which choices are kept where each example loses as many wrong ones, at random, as it has right ones.

    Where none is right it loses as many as others do, but not its last.
    """
    drawn = pl.Series(np.random.default_rng(seed).random(len(correct)))
    table = choices.select("example", right=pl.Series(correct), drawn=drawn)
    place = pl.col("drawn").rank("ordinal").over("example", "right")
    table = table.with_columns(place=place, rights=pl.col("right").sum().over("example"))
    found = table.filter(pl.col("rights") > 0).unique("example")["rights"].to_numpy()
    usual = round(float(found.mean())) if len(found) else 1
    lost = (
        pl.when(pl.col("rights") > 0).then("rights").otherwise(pl.min_horizontal(usual, pl.len().over("example") - 1))
    )
    return table.select(pl.col("right") | (pl.col("place") > lost)).to_series()


class _Lessons(NamedTuple):
    signals: Floats
    none: NDArray[np.bool_]
    weight: Floats


def _learn(seen: _Seen, share: float) -> Learned:
    scale = np.array(scale_of(seen.run))
    values = strengths(seen.run, float(scale))
    example = seen.run.choices["example"].to_numpy()
    temperature = max(0.0, learn_weights(values[:, None], example, seen.correct, penalty=1e-3)[0])
    nothing = np.zeros(0)
    start = Learned(
        scale=scale,
        temperature=np.array(temperature),
        mean=nothing,
        spread=nothing,
        weights=nothing,
        bias=nothing,
        found_weights=nothing,
        found_bias=nothing,
        threshold=np.array(0.0),
        options=np.array(_usual_size(seen.run)),
    )
    return _learn_found(seen, _regression(_lessons(seen, start, share), start))


def _lessons(seen: _Seen, learned: Learned, share: float) -> _Lessons:
    """Take each example with its right option, if it has one, and then once more without it.

    The two kinds are weighed so that those without a right option are as frequent as they were.
    """
    logits, starts = _logits(seen.whole, learned)
    bare_logits, bare_starts = _logits(seen.bare, learned)
    answered = np.isin(seen.whole.choices["example"].to_numpy()[starts], seen.answered)
    observed = float(1 - answered.mean()) or share
    signals = np.concatenate([_signals(logits, starts), _signals(bare_logits, bare_starts)])
    none = np.concatenate([~answered, np.ones(len(bare_starts), dtype=bool)])
    weight = np.where(none, observed / max(none.sum(), 1), (1 - observed) / max((~none).sum(), 1)) * len(none)
    return _Lessons(signals, none, weight)


def _regression(lessons: _Lessons, start: Learned) -> Learned:
    from sklearn.linear_model import LogisticRegression

    if lessons.none.all() or not lessons.none.any():
        raise UserError("dev has no example with a right option, or none with a wrong one: nothing can be learned")
    mean, spread = lessons.signals.mean(axis=0), lessons.signals.std(axis=0)
    spread[spread <= _ROUNDING * np.abs(lessons.signals).max(axis=0)] = 1.0
    found = LogisticRegression().fit((lessons.signals - mean) / spread, lessons.none, lessons.weight)
    return start._replace(mean=mean, spread=spread, weights=found.coef_[0], bias=found.intercept_[0])


def _learn_found(seen: _Seen, learned: Learned) -> Learned:
    """Learn how likely it is that a right option was found."""
    from sklearn.linear_model import LogisticRegression

    logits, starts = _logits(seen.run, learned)
    example = seen.run.choices["example"].to_numpy()
    answered = np.isin(example[starts], seen.answered)
    found = np.add.reduceat(seen.correct, starts)[answered] > 0
    weights, bias = np.zeros(_SIGNALS), np.array(_CERTAIN if found.all() else -_CERTAIN)
    if found.any() and not found.all():
        signals = ((_signals(logits, starts) - learned.mean) / learned.spread)[answered]
        regression = LogisticRegression().fit(signals, found)
        weights, bias = regression.coef_[0], regression.intercept_[0]
    return learned._replace(found_weights=weights, found_bias=bias)


def _usual_size(run: SelectionRun) -> float:
    sizes = run.choices.group_by("example").len()["len"].to_numpy()
    return float(np.median(sizes)) if len(sizes) else 0.0


class _Threshold(NamedTuple):
    """The least confidence that reaches a precision, how many examples of dev have it, and how many could have."""

    least: float
    answered: int
    possible: int


def _choose_threshold(seen: _Seen, settings: Abstain.Settings) -> _Threshold:
    """Choose on dev from what confidence on the wanted precision is reached; each fifth is judged by the others."""
    wanted = float(settings.precision or 0)
    if seen.run.choices["example"].n_unique() < _FOLDS:
        raise UserError(f"a precision is chosen on dev, fifth by fifth; it has fewer than {_FOLDS} examples")
    confidence, right = [], []
    for number in range(_FOLDS):
        learned = _learn(seen.of(set(range(_FOLDS)) - {number}), settings.share)
        held = seen.of({number})
        shares, none, starts = _probabilities(held.run, learned)
        best = shares[starts]
        confidence.append(best[best > none])  # the others have NONE first whatever the threshold
        right.append(held.correct[starts][best > none])
    order = np.argsort(-np.concatenate(confidence), kind="stable")
    sure = np.concatenate(confidence)[order]
    last = np.diff(sure, append=-1) != 0  # no threshold can tell those before it, of the same confidence, from it
    count = np.arange(1, len(order) + 1)
    precision = np.where(last & (count >= _FEWEST), np.cumsum(np.concatenate(right)[order]) / count, 0)
    enough = np.flatnonzero(precision >= wanted)
    if not len(enough) or not precision.any():
        raise UserError(
            f"no confidence reaches a precision of {wanted} in {_FEWEST} or more examples of dev; the best is "
            f"{precision.max(initial=0):.3f}, in {len(order):,} examples in which an option is likelier than NONE"
        )
    return _Threshold(float(sure[enough[-1]]), int(enough[-1]) + 1, len(order))
