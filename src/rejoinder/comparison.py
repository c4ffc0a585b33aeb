"""Compare runs by every measure: means, intervals, tests, tie groups and how far the measures agree."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np

from rejoinder import __version__
from rejoinder.measures.measure import Measure, Scores
from rejoinder.statistics import (
    ALPHA,
    RESAMPLES,
    TRIALS,
    Floats,
    Interval,
    TukeyHSD,
    kendall_tau,
    mean_intervals,
    randomised_tukey_hsd,
    tie_groups,
)
from rejoinder.watch import Step, Watch, unwatched

FEWEST_RANKED = 5
"""Runs below which a rank correlation, and still more its interval, says nothing."""


class MeasureComparison(msgspec.Struct, frozen=True):
    """All runs by one measure."""

    scores: Scores
    low: Floats
    high: Floats
    test: TukeyHSD
    groups: list[str]

    @property
    def measure(self) -> Measure:
        """Return the measure."""
        return self.scores.measure

    @property
    def order(self) -> list[int]:
        """Return the runs' places, best first."""
        means = self.scores.means
        ranked = np.argsort(-means if self.measure.higher_is_better else means, kind="stable")
        return [int(place) for place in ranked]

    @property
    def has_examples(self) -> bool:
        """Whether there are scores by example; a board shows no more than means."""
        return bool(self.scores.values.shape[1] > 1)

    def is_best(self, run: int) -> bool:
        """Whether a run cannot be told apart from the best of several."""
        return len(self.scores.runs) > 1 and bool(self.test.p[self.order[0], run] >= ALPHA)

    def better_than(self, run: int) -> list[int]:
        """Return the runs that this one is significantly better than, nearest first (DialEval-1, tables 14-29)."""
        after = self.order[self.order.index(run) + 1 :]
        return [other for other in after if self.test.p[run, other] < ALPHA]


class Correlation(msgspec.Struct, frozen=True):
    """How far two measures rank the runs alike."""

    measures: tuple[str, str]
    tau: Interval


class Comparison(msgspec.Struct, frozen=True):
    """Everything there is to say of some runs on one task."""

    title: str
    examples: int
    runs: tuple[str, ...]
    measures: list[MeasureComparison]
    correlations: list[Correlation]
    signature: str
    references: Mapping[str, Mapping[str, float]] = {}
    """Published rows: run -> measure -> mean. They have no scores by example, so nothing is tested against them."""
    notes: tuple[str, ...] = ()

    @property
    def ranked(self) -> list[str]:
        """Return the runs, best first by the first measure; those that it does not score come last."""
        first = self.measures[0]
        scored = [first.scores.runs[place] for place in first.order]
        return scored + [run for run in self.runs if run not in scored]


class Settings(msgspec.Struct, frozen=True):
    """What makes a comparison reproducible, besides the data."""

    seed: int = 0
    trials: int = TRIALS
    resamples: int = RESAMPLES


def sign(parts: Mapping[str, object], settings: Settings) -> str:
    """Return the signature that makes a figure reproducible, as sacreBLEU has it."""
    fixed = {
        "ci": f"BCa95x{settings.resamples}",
        "test": f"tukey-hsd-x{settings.trials}",
        "seed": settings.seed,
        "rejoinder": __version__,
    }
    return "|".join(f"{key}:{value}" for key, value in {**parts, **fixed}.items())


def compare(
    scores: Sequence[Scores],
    title: str,
    settings: Settings,
    parts: Mapping[str, object] | None = None,
    watch: Watch = unwatched,
) -> Comparison:
    """Compare the runs of several measures' matrices."""
    examples = scores[0].values.shape[1]
    with watch("comparing", settings.trials * examples * len(scores)) as advance:
        measures = _compare_by_measure(scores, settings, advance)
    runs = tuple(dict.fromkeys(run for matrix in scores for run in matrix.runs))
    signature = sign({"n": examples, **(parts or {})}, settings)
    return Comparison(title, examples, runs, measures, correlate(scores, settings), signature)


def _compare_by_measure(scores: Sequence[Scores], settings: Settings, advance: Step) -> list[MeasureComparison]:
    rows = np.concatenate([matrix.values for matrix in scores])
    ends = mean_intervals(rows, resamples=settings.resamples, seed=settings.seed)
    borders = np.cumsum([len(matrix.runs) for matrix in scores])[:-1]
    # every measure lies between 0 and 1; only F90's linearised values can reach beyond
    lows, highs = (np.split(np.clip(end, 0, 1), borders) for end in ends)
    compared = []
    for matrix, low, high in zip(scores, lows, highs, strict=True):
        test = randomised_tukey_hsd(matrix.values, settings.trials, settings.seed, advance)
        groups = tie_groups(matrix.means, test.p, matrix.measure.higher_is_better)
        compared.append(MeasureComparison(matrix, low, high, test, groups))
    return compared


def correlate(scores: Sequence[Scores], settings: Settings) -> list[Correlation]:
    """Correlate the rankings of the runs by each two measures of one question (DialEval-1, tables 8 and 13)."""
    found = []
    for first, second in combinations(scores, 2):
        runs = [run for run in first.runs if run in second.runs]
        if len(runs) < FEWEST_RANKED or _subject(first) != _subject(second):
            continue
        x, y = (_goodness(matrix, runs) for matrix in (first, second))
        tau = kendall_tau(x, y, settings.trials, seed=settings.seed)
        if math.isnan(tau.estimate):  # a measure that ranks all runs alike
            continue
        found.append(Correlation((first.measure.name, second.measure.name), tau))
    return found


def _subject(scores: Scores) -> str:
    """Return what a measure is about: A for NMD(A), nothing for MRR."""
    _, _, subject = scores.measure.name.partition("(")
    return subject


def _goodness(scores: Scores, runs: list[str]) -> Floats:
    means = scores.means[[scores.runs.index(run) for run in runs]]
    return means if scores.measure.higher_is_better else -means
