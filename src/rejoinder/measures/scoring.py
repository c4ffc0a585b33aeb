"""Score runs against the truth, whichever kind it is: one matrix, runs x examples, for each measure."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.measures import judgement, selection
from rejoinder.measures.measure import Floats, Measure, Scores, UnknownMeasureError
from rejoinder.runs import JudgementRun, SelectionRun, read_judgement_run, read_selection_run
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.truth import Truth

Run = SelectionRun | JudgementRun
Chosen = NDArray[np.bool_]
"""Which examples to score."""


def read_run(path: Path, truth: Truth, format_: str | None = None, lenient: bool = False) -> Run:
    """Read a run of the truth's kind."""
    if isinstance(truth, JudgementTruth):
        return read_judgement_run(path, truth, format_, lenient)
    return read_selection_run(path, truth, format_, lenient)


def default_names(truth: Truth) -> list[str]:
    """Return the measures that the papers report for this truth."""
    return judgement.default_names(truth) if isinstance(truth, JudgementTruth) else selection.default_names(truth)


def find_measure(name: str, truth: Truth) -> Measure:
    """Return the measure of this name."""
    return judgement.parse(name, truth) if isinstance(truth, JudgementTruth) else selection.parse(name)[0]


def sentence_of(name: str) -> str:
    """Return what a measure of either kind measures, where there is no truth to ask; nothing of one unknown."""
    try:
        return selection.parse(name)[0].sentence
    except UnknownMeasureError:
        return judgement.sentence_of(name)


def score_run(
    run: Run, truth: Truth, names: list[str], alpha: float = judgement.ALPHA, chosen: Chosen | None = None
) -> dict[str, Floats]:
    """Score one run: name of measure -> score of each example, or of each chosen one."""
    if isinstance(truth, JudgementTruth):
        assert isinstance(run, JudgementRun)
        scores = judgement.score(run, truth, names, alpha)
        return scores if chosen is None else {name: values[chosen] for name, values in scores.items()}
    assert isinstance(run, SelectionRun)
    try:
        return selection.score(run, truth, names, chosen)
    except UnknownMeasureError as error:
        raise UnknownMeasureError(f"{run.name}: {error}") from None


def score_runs(
    runs: Sequence[Run],
    truth: Truth,
    names: list[str],
    alpha: float = judgement.ALPHA,
    chosen: Chosen | None = None,
) -> list[Scores]:
    """Score runs; a measure's matrix has the runs that answer its question, and is left out if none does."""
    measures = {name: find_measure(name, truth) for name in names}
    scored = {run.name: score_run(run, truth, names, alpha, chosen) for run in runs}
    matrices = []
    for name, measure in measures.items():
        rows = {run: scores[name] for run, scores in scored.items() if name in scores}
        if rows:
            matrices.append(Scores(measure, tuple(rows), np.array(list(rows.values()))))
    return matrices
