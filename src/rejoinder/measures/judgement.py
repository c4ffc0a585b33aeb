"""Measures of judgement: how far an estimated distribution p is from the annotators' distribution p* (0: equal).

Equation numbers are DialEval-1's (Zeng et al. 2020, section 3). All functions take arrays of shape (..., labels).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rejoinder.measures.measure import Floats, Measure, UnknownMeasureError
from rejoinder.runs.judgement import JudgementRun
from rejoinder.tasks.judgement import Answers, JudgementTruth, Question

ALPHA = 0.5
"""The weight of the customer's turns against the helpdesk's (section 3.2)."""


def nmd(p: Floats, truth: Floats) -> Floats:
    """Return the Normalised Match Distance, equations 1 and 2."""
    distance = np.abs(np.cumsum(p, axis=-1) - np.cumsum(truth, axis=-1)).sum(axis=-1)
    return np.asarray(distance / (p.shape[-1] - 1))


def rsnod(p: Floats, truth: Floats) -> Floats:
    """Return the Root Symmetric Normalised Order-aware Divergence, equations 3 to 6."""
    places = np.arange(p.shape[-1])
    apart = np.abs(places[:, None] - places[None, :]).astype(np.float64)
    weighted = (p - truth) ** 2 @ apart
    both = (_mean_over_support(weighted, truth) + _mean_over_support(weighted, p)) / 2
    return np.asarray(np.sqrt(both / (p.shape[-1] - 1)))


def _mean_over_support(weighted: Floats, distribution: Floats) -> Floats:
    """Average the distance-weighted squares over the bins that the distribution does not leave empty (equation 4)."""
    support = distribution > 0
    return np.asarray((weighted * support).sum(axis=-1) / support.sum(axis=-1))


def jsd(p: Floats, truth: Floats) -> Floats:
    """Return the Jensen-Shannon divergence with base 2.

    Equation 8 prints its second term as KLD(p_M || p*), which is not symmetric and infinite where p* has an empty bin;
    this is the standard form, KLD(p* || p_M).
    """
    middle = (p + truth) / 2
    return np.asarray(np.maximum((_kld(p, middle) + _kld(truth, middle)) / 2, 0))


def _kld(p: Floats, q: Floats) -> Floats:
    """Return equation 9; bins where p is empty add nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log2(p / q), 0.0)
    return np.asarray(terms.sum(axis=-1))


def rnss(p: Floats, truth: Floats) -> Floats:
    """Return the Root Normalised Sum of Squares, equation 7."""
    return np.asarray(np.sqrt(((p - truth) ** 2).sum(axis=-1) / 2))


Distance = Callable[[Floats, Floats], Floats]

_ORDERED: dict[str, tuple[Distance, str, str]] = {
    "NMD": (nmd, "normalised match distance", "Zeng et al. 2020, equations 1-2"),
    "RSNOD": (rsnod, "root symmetric normalised order-aware divergence", "Zeng et al. 2020, equations 3-6"),
}
_NOMINAL: dict[str, tuple[Distance, str, str]] = {
    "JSD": (jsd, "Jensen-Shannon divergence, base 2", "Zeng et al. 2020, equations 8-9, in the standard form"),
    "RNSS": (rnss, "root normalised sum of squares", "Zeng et al. 2020, equation 7"),
}


def _named(truth: JudgementTruth) -> dict[str, tuple[Distance, Question, Measure]]:
    """Return every measure of this truth by name: NMD(A), but JSD where only one question's labels are no scale.

    A scale's labels can also be taken as mere names: JSD(A).
    """
    questions = [answers.question for answers in truth.answers.values()]
    alone = sum(not question.ordered for question in questions) == 1
    named = {}
    for question in questions:
        measures = _ORDERED | _NOMINAL if question.ordered else _NOMINAL
        for measure, (distance, sentence, citation) in measures.items():
            name = measure if alone and not question.ordered else f"{measure}({question.name})"
            declared = Measure(name, f"{sentence}, {question.name}", citation, higher_is_better=False)
            named[name] = distance, question, declared
    return named


def parse(name: str, truth: JudgementTruth) -> Measure:
    """Return the measure of this name, such as NMD(A) or JSD."""
    named = _named(truth)
    if name not in named:
        raise UnknownMeasureError(f"no measure {name!r} of these judgements; there are {', '.join(named)}")
    return named[name][2]


def sentence_of(name: str) -> str:
    """Return what the measure of this name measures, whatever the question; nothing where there is none."""
    _, sentence, _ = (_ORDERED | _NOMINAL).get(name.partition("(")[0], (None, "", ""))
    return sentence


def default_names(truth: JudgementTruth) -> list[str]:
    """Return the measures that fit this truth's questions: across bins for scales, bin by bin for the others."""
    chosen = {distance for distance, _, _ in _ORDERED.values()}
    return [name for name, (distance, question, _) in _named(truth).items() if question.ordered == (distance in chosen)]


def score(run: JudgementRun, truth: JudgementTruth, names: list[str], alpha: float = ALPHA) -> dict[str, Floats]:
    """Score a run by each measure whose question it answers, dialogue by dialogue."""
    named = _named(truth)
    return {
        name: _score(distance, run.distributions[question.name], truth, truth.answers[question.name], alpha)
        for name, (distance, question, _) in named.items()
        if name in names and question.name in run.distributions
    }


def _score(distance: Distance, p: Floats, truth: JudgementTruth, answers: Answers, alpha: float) -> Floats:
    voted = answers.voted  # nobody was asked of the other rows, so there is nothing to score
    distances = distance(p[voted], answers.distribution[voted])
    example, role = answers.example[voted], answers.role[voted]
    roles = len(answers.question.roles or (0,))
    if roles == 1:
        return _mean_by(example, distances, len(truth.ids))[0]
    if roles != 2:
        raise ValueError(f"turns have {roles} roles; expected one or two")
    (first, some), (second, others) = (
        _mean_by(example[role == place], distances[role == place], len(truth.ids)) for place in range(2)
    )
    # in a dialogue with one speaker only, that speaker's turns are all there is to score
    weight = np.where(some & others, alpha, some.astype(np.float64))
    return np.asarray(weight * first + (1 - weight) * second)


def _mean_by(example: NDArray[np.intp], values: Floats, examples: int) -> tuple[Floats, NDArray[np.bool_]]:
    counts = np.bincount(example, minlength=examples)
    sums = np.bincount(example, weights=values, minlength=examples)
    return sums / np.maximum(counts, 1), counts > 0
