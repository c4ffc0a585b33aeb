"""Measures of ranking: where the correct options stand in a run's list of choices.

An option that a run does not list is not found. Where no option is correct, NONE is the correct one.
"""

import re
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.measures.measure import Floats, Measure, UnknownMeasureError
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.selection import SelectionTruth

MASS = 0.9
"""The share of a run's confidence that its selected choices must cover (F90)."""

_DSTC7 = 'Gunasekara et al. 2019, "Metrics"'
_LOWE = "Lowe et al. 2015; " + _DSTC7
_DODGE = "Dodge et al. 2016, sections 2.1-2.4"
_TRACK = 'DSTC7 Track 1 README, "Evaluation"'


class Ranks(msgspec.Struct, frozen=True):
    """The correct options that a run lists, by example and best first."""

    correct: Floats
    """How many correct options each example has."""
    example: NDArray[np.intp]
    rank: NDArray[np.intp]
    """From 1."""
    scores: Floats
    """All choices' scores, by example and best first."""
    starts: NDArray[np.intp]
    """Where each example's choices start among the scores, and where the last one's end."""

    @property
    def selected(self) -> NDArray[np.intp]:
        """Count the best choices that cover 90% of each example's confidence; -1 where confidences are negative."""
        return _covering(self.scores, self.starts)

    def of(self, chosen: NDArray[np.bool_]) -> "Ranks":
        """Return the ranks in some of the examples only."""
        sizes = np.diff(self.starts)
        number = np.cumsum(chosen) - 1
        kept = chosen[self.example]
        return Ranks(
            correct=self.correct[chosen],
            example=number[self.example[kept]],
            rank=self.rank[kept],
            scores=self.scores[np.repeat(chosen, sizes)],
            starts=np.concatenate([[0], np.cumsum(sizes[chosen])]),
        )


def rank_correct(run: SelectionRun, truth: SelectionTruth) -> Ranks:
    """Find the ranks of the correct options; a run's choices are in order, best first."""
    examples = len(truth.ids)
    example = run.choices["example"].to_numpy().astype(np.intp)
    starts = np.searchsorted(example, np.arange(examples + 1))
    found = run.choices.with_row_index("row").join(
        truth.correct, on=["example", "option"], how="semi", maintain_order="left"
    )
    row = found["row"].to_numpy().astype(np.intp)
    correct = np.bincount(truth.correct["example"].to_numpy(), minlength=examples)
    return Ranks(
        correct=correct.astype(np.float64),
        example=example[row],
        rank=row - starts[example[row]] + 1,
        scores=run.choices["score"].to_numpy(),
        starts=starts,
    )


def _covering(scores: Floats, starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Count the fewest best choices that hold 90% of each example's confidence."""
    sizes = np.diff(starts)
    example = np.repeat(np.arange(len(sizes)), sizes)
    best = np.zeros(len(sizes))
    best[sizes > 0] = scores[starts[:-1][sizes > 0]]
    # shares of each example's whole, scaled first: confidences may be of any size
    scaled = np.divide(scores, best[example], out=np.zeros_like(scores), where=best[example] > 0)
    totals = np.bincount(example, weights=scaled, minlength=len(sizes))
    shares = np.divide(scaled, totals[example], out=np.zeros_like(scores), where=totals[example] > 0)
    covered = np.concatenate([[0.0], np.cumsum(shares)])
    before = covered[:-1] - covered[starts[:-1]][example]
    # a choice is needed as long as those before it fall short; the slack keeps rounding from asking for one more
    needed = (before < MASS - 1e-9) & (totals[example] > 0)
    negative = np.bincount(example[scores < 0], minlength=len(sizes)) > 0
    return np.where(negative, -1, np.bincount(example[needed], minlength=len(sizes)))


def _found(ranks: Ranks, k: int) -> Floats:
    return np.bincount(ranks.example[ranks.rank <= k], minlength=len(ranks.correct)).astype(np.float64)


def recall(ranks: Ranks, k: int) -> Floats:
    """Return the share of the correct options among the first k choices."""
    return _found(ranks, k) / ranks.correct


def hits(ranks: Ranks, k: int) -> Floats:
    """Return whether any correct option is among the first k choices."""
    return (_found(ranks, k) > 0).astype(np.float64)


def precision(ranks: Ranks, k: int) -> Floats:
    """Return the share of correct options among the first k choices."""
    return _found(ranks, k) / k


def reciprocal_rank(ranks: Ranks) -> Floats:
    """Return 1 / rank of the best ranked correct option."""
    scores = np.zeros(len(ranks.correct))
    np.maximum.at(scores, ranks.example, 1 / ranks.rank)
    return scores


def average_precision(ranks: Ranks) -> Floats:
    """Return the mean, over the correct options, of the precision at each one's rank."""
    first = np.searchsorted(ranks.example, ranks.example)
    place = np.arange(len(ranks.example)) - first + 1
    return np.bincount(ranks.example, weights=place / ranks.rank, minlength=len(ranks.correct)) / ranks.correct


def ranking_score(ranks: Ranks) -> Floats:
    """Return the mean of hits@10 and the reciprocal rank, by which the track ranked its teams.

    The paper says "Recall@10". For its subtask 3 that is hits@10: a random ranking (teams 11 and 12, table 4) gets
    0.334 there, not the 0.1 that the share of correct options would be.
    """
    return (hits(ranks, 10) + reciprocal_rank(ranks)) / 2


def f_over_mass(ranks: Ranks) -> Floats:
    """Return F of the choices that cover 90% of the confidence, pooled over the examples.

    Pooled F is a ratio of sums, so single examples have no F whose mean it is. Each gets F plus its influence on it
    (the delta method): the mean is F exactly, and the spread is what intervals and tests need.
    """
    selected = ranks.selected
    if (selected < 0).any():
        raise UnknownMeasureError("F90 needs confidences that are shares of a whole, and some are negative")
    doubled = 2 * np.bincount(
        ranks.example[ranks.rank <= selected[ranks.example]], minlength=len(ranks.correct)
    ).astype(np.float64)
    sizes = selected + ranks.correct
    f = doubled.sum() / sizes.sum()
    return np.asarray(f + (doubled - f * sizes) / sizes.mean())


Function = Callable[[Ranks], Floats]

_AT_K: dict[str, tuple[Callable[[Ranks, int], Floats], str, str]] = {
    "R": (recall, "share of the correct options in the top {k}", _LOWE),
    "hits": (hits, "whether any correct option is in the top {k}", _DODGE),
    "P": (precision, "share of correct options in the top {k}", "trec_eval"),
}
_WHOLE: dict[str, tuple[Function, str, str]] = {
    "MRR": (reciprocal_rank, "1 / rank of the best ranked correct option", _DSTC7),
    "MAP": (average_precision, "mean precision at the ranks of the correct options", _DSTC7),
    "DSTC7": (ranking_score, "mean of hits@10 and MRR, by which the track ranked its teams", _DSTC7),
    "F90": (f_over_mass, "F of the choices that cover 90% of the confidence, pooled", _TRACK),
}


def parse(name: str) -> tuple[Measure, Function]:
    """Return the measure of this name (`R@10`, `hits@1`, `P@5`, `MRR`, `MAP`, `DSTC7`, `F90`) and how to compute it."""
    if name in _WHOLE:
        function, sentence, citation = _WHOLE[name]
        return Measure(name, sentence, citation, higher_is_better=True), function
    matched = re.fullmatch(r"(R|hits|P)@([1-9]\d{0,8})", name)
    if not matched:
        known = [*_WHOLE, *(f"{family}@k" for family in _AT_K)]
        raise UnknownMeasureError(f"no measure {name!r} of ranking; there are {', '.join(known)}")
    at_k, sentence, citation = _AT_K[matched[1]]
    k = int(matched[2])
    return Measure(name, sentence.format(k=k), citation, higher_is_better=True), lambda ranks: at_k(ranks, k)


def default_names(truth: SelectionTruth) -> list[str]:
    """Return the measures that the papers report for this kind of truth; with one correct option MAP is MRR."""
    precision = ["MAP"] if truth.several_correct else []
    if truth.groups is not None and "response" in truth.groups.columns:
        return ["hits@1", "hits@10", "hits@100", "MRR", *precision]
    names = ["R@1", "R@10", "R@50", "MRR", *precision, "DSTC7"]
    return [*names, "hits@1", "hits@10", "hits@50"] if truth.several_correct else names


def score(
    run: SelectionRun, truth: SelectionTruth, names: list[str], chosen: NDArray[np.bool_] | None = None
) -> dict[str, Floats]:
    """Score a run by each measure, example by example, on all examples or on those chosen."""
    ranks = rank_correct(run, truth)
    ranks = ranks if chosen is None else ranks.of(chosen)
    return {name: parse(name)[1](ranks) for name in names}
