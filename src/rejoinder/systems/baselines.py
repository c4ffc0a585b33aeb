"""Judges that need no text: uniform, popularity (an oracle) and the train-set mean (DialEval-1, section 2.5)."""

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.arrays import read_arrays, write_arrays
from rejoinder.errors import UserError
from rejoinder.runs.judgement import JudgementRun, uniform
from rejoinder.systems.system import JudgementSystem, Lesson
from rejoinder.tasks.judgement import Answers, JudgementTask, JudgementTruth
from rejoinder.watch import Watch, unwatched

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


def judge_by_mean(train: JudgementTruth, truth: JudgementTruth, by_turn: bool = False) -> JudgementRun:
    """Give every row the mean distribution of the training rows of its role and, if wished, at its place."""
    found = {name: look_up(mean_table(train.answers[name], by_turn), asked) for name, asked in truth.answers.items()}
    return JudgementRun("train mean by turn" if by_turn else "train mean", found)


def mean_table(answers: Answers, by_turn: bool) -> Floats:
    """Return roles x places x labels: the mean over all places first, then that of each place; NaN where no row is."""
    role, turn = answers.role[answers.voted], answers.turn[answers.voted]
    rows = answers.distribution[answers.voted]
    places = int(turn.max(initial=-1)) + 1 if by_turn else 0
    table = np.full((len(answers.question.roles or (0,)), 1 + places, rows.shape[1]), np.nan)
    for speaker in range(len(table)):
        for place in range(1 + places):
            own = rows[(role == speaker) & ((place == 0) | (turn == place - 1))]
            if len(own):
                table[speaker, place] = own.mean(axis=0)
    return table


def look_up(table: Floats, asked: Answers) -> Floats:
    """Return each row's mean: that of its place, else that of its role, else the uniform distribution."""
    found = uniform(asked)
    place = np.where(asked.turn + 1 < table.shape[1], asked.turn + 1, 0)
    for means in (table[asked.role, 0], table[asked.role, place]):
        known = ~np.isnan(means).any(axis=1)
        found[known] = means[known]
    return found


class Uniform(JudgementSystem):
    """Gives every label the same probability (BL-uniform)."""

    def predict(self, task: JudgementTask, watch: Watch = unwatched) -> JudgementRun:
        """Judge every dialogue."""
        return judge_uniformly(task.unanswered())


class Popularity(JudgementSystem):
    """Looks at the votes and takes the most popular label (BL-popularity): an oracle, for a bound."""

    def predict(self, task: JudgementTask, watch: Watch = unwatched) -> JudgementRun:
        """Judge every dialogue of a task whose votes are known."""
        if task.votes is None:
            raise UserError("popularity is an oracle: it looks at the votes, and this task has none")
        return judge_by_popularity(task.truth())


class Mean(JudgementSystem):
    """Gives the mean distribution of the training votes, for each role."""

    class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        """What to take the mean over."""

        by_turn: bool = False
        """Whether each place in the dialogue has a mean of its own."""

    tables: dict[str, Floats]

    def fit(self, lesson: Lesson[JudgementTask]) -> None:
        """Learn the means."""
        self.questions = lesson.train.questions
        answers = lesson.train.truth().answers
        self.tables = {name: mean_table(own, self.settings.by_turn) for name, own in answers.items()}

    def predict(self, task: JudgementTask, watch: Watch = unwatched) -> JudgementRun:
        """Judge every dialogue; questions that it did not learn stay without an answer."""
        asked = task.unanswered().answers
        known = [name for name, answers in asked.items() if answers.question in self.questions]
        return JudgementRun("mean", {name: look_up(self.tables[name], asked[name]) for name in known})

    def save(self, folder: Path) -> None:
        """Write the means."""
        write_arrays(folder / "means.npz", self.tables)

    def load(self, folder: Path) -> None:
        """Read the means."""
        self.tables = read_arrays(folder / "means.npz")
