"""Judges that need no text: uniform, popularity (an oracle) and the train-set mean (DialEval-1, section 2.5)."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.runs.judgement import JudgementRun, uniform
from rejoinder.tasks.judgement import Answers, JudgementTruth

Floats = NDArray[np.float64]


def judge_uniformly(truth: JudgementTruth) -> JudgementRun:
    """Give every label that a row can have the same probability (BL-uniform)."""
    return JudgementRun("uniform", {name: uniform(answers) for name, answers in truth.answers.items()})


def judge_by_popularity(truth: JudgementTruth) -> JudgementRun:
    """Give the annotators' most popular label probability one (BL-popularity).

    It looks at the truth: an upper bound of what a single label can do, not a system. Of equally popular labels, the
    first in the question's order is taken.
    """
    answers = {name: _one_hot(asked.votes) for name, asked in truth.answers.items()}
    return JudgementRun("popularity (oracle)", answers)


def _one_hot(votes: Floats) -> Floats:
    chosen = np.zeros_like(votes)
    chosen[np.arange(len(votes)), votes.argmax(axis=1)] = 1
    return chosen


def judge_by_mean(train: JudgementTruth, truth: JudgementTruth) -> JudgementRun:
    """Give every row the mean distribution of the training rows of the same role."""
    answers = {name: _role_means(train.answers[name], asked) for name, asked in truth.answers.items()}
    return JudgementRun("train mean", answers)


def _role_means(train: Answers, asked: Answers) -> Floats:
    found = uniform(asked)
    for role in np.unique(asked.role):
        rows = train.distribution[train.voted & (train.role == role)]
        if len(rows):
            found[asked.role == role] = rows.mean(axis=0)
    return found


def judge_by_position(train: JudgementTruth, truth: JudgementTruth) -> JudgementRun:
    """Give every turn the mean distribution of the training turns at its place in the dialogue, and of its role."""
    answers = {name: _position_means(train.answers[name], asked) for name, asked in truth.answers.items()}
    return JudgementRun("train mean by turn", answers)


def _position_means(train: Answers, asked: Answers) -> Floats:
    found = _role_means(train, asked)
    seen, here = train.turn, asked.turn
    for position in np.unique(here):
        for role in np.unique(asked.role):
            rows = train.distribution[train.voted & (seen == position) & (train.role == role)]
            if len(rows):
                found[(here == position) & (asked.role == role)] = rows.mean(axis=0)
    return found
