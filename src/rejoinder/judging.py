"""Judge dialogues with a trained model, and find the turn at which a dialogue went wrong."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.dialogue import Dialogue
from rejoinder.errors import UserError
from rejoinder.statistics import mean_intervals
from rejoinder.systems.system import JudgementSystem
from rejoinder.tasks.judgement import Answers, JudgementTask, Question
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float64]
CHUNK = 1_000
"""Dialogues judged at a time, so that any number of them takes little memory."""
FEWEST = 5
"""Dialogues that the interval of a mean needs, and with it a point of a trend: of fewer it says nothing."""

MOST_POINTS = 40
STRETCHES = {"day": "1d", "week": "1w", "month": "1mo"}
"""Times that a point of a trend can stand for, in the words of polars."""


class Judgements(msgspec.Struct, frozen=True):
    """What a model says of dialogues: for each question rows (dialogues, or their turns) and distributions."""

    dialogues: tuple[Dialogue, ...]
    answers: Mapping[str, Answers]
    """The rows; their votes are none."""
    distributions: Mapping[str, Floats]

    @property
    def scales(self) -> list[Question]:
        """Questions whose labels are an order, those about whole dialogues first."""
        asked = [
            answers.question
            for name, answers in self.answers.items()
            if name in self.distributions and len(answers.example)
        ]
        return sorted(
            (question for question in asked if question.ordered), key=lambda question: question.roles is not None
        )

    def scores(self, question: Question) -> Floats:
        """Return each dialogue's expected label; for a question about turns, the mean over them (NaN: none)."""
        expected = self.distributions[question.name] @ values_of(question)
        example = self.answers[question.name].example
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.bincount(example, expected, len(self.dialogues))
                / np.bincount(example, minlength=len(self.dialogues))
            )

    def overall(self) -> Floats:
        """Return each dialogue's mean expected label over all scales, each stretched to -1 (worst) to 1.

        A dialogue that no scale says anything of has NaN.
        """
        scaled = np.empty((len(self.scales), len(self.dialogues)))
        for place, question in enumerate(self.scales):
            values = values_of(question)
            middle, half = (values.max() + values.min()) / 2, (values.max() - values.min()) / 2
            scaled[place] = (self.scores(question) - middle) / half
        known = ~np.isnan(scaled)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(known, scaled, 0).sum(axis=0) / known.sum(axis=0))

    def spread(self, question: Question) -> Floats:
        """Return the standard deviation of the votes to be expected: how far people would differ."""
        values, p = values_of(question), self.distributions[question.name]
        return np.asarray(np.sqrt(np.maximum(p @ values**2 - (p @ values) ** 2, 0)))

    def of_dialogue(self, name: str, number: int) -> slice:
        """Return the rows of a question that belong to a dialogue."""
        start, end = np.searchsorted(self.answers[name].example, [number, number + 1])
        return slice(int(start), int(end))


def values_of(question: Question) -> Floats:
    """Return what each label of a scale is worth: its number if all are numbers, else places from 1 down to -1."""
    try:
        return np.array([float(label) for label in question.labels])
    except ValueError:
        return np.linspace(1, -1, len(question.labels))


def judge(system: JudgementSystem, dialogues: Sequence[Dialogue], watch: Watch = unwatched) -> Judgements:
    """Judge dialogues, some at a time."""
    task = JudgementTask(tuple(dialogues), system.questions)
    answers = task.unanswered().answers
    if not any(len(own.example) for own in answers.values()):
        speakers = sorted({speaker for question in system.questions for speaker in question.roles or ()})
        raise UserError(f"nothing to judge: the model judges turns of {', '.join(speakers)}, and there are none")
    found: dict[str, list[Floats]] = {}
    with watch("judging", len(dialogues)) as advance:
        for start in range(0, len(dialogues), CHUNK):
            part = JudgementTask(task.dialogues[start : start + CHUNK], task.questions)
            for name, distribution in system.predict(part).distributions.items():
                found.setdefault(name, []).append(distribution)
            advance(len(part.dialogues))
    return Judgements(task.dialogues, answers, {name: np.concatenate(parts) for name, parts in found.items()})


LEAST_FALL = 0.05
"""How far the overall score, of -1 to 1, falls at least where a dialogue is said to have gone wrong."""


class Course(msgspec.Struct, frozen=True):
    """How a dialogue would have been judged had it ended after each of its turns."""

    scores: tuple[float, ...]
    """The overall score after each turn, -1 to 1 (NaN: none)."""
    wrong: int | None
    """The turn after which the score fell most; None: it never fell by as much as would be worth a look."""


def follow(system: JudgementSystem, dialogues: Sequence[Dialogue], watch: Watch = unwatched) -> list[Course]:
    """Judge every beginning of each dialogue."""
    beginnings = [
        Dialogue(f"{number}", dialogue.turns[: end + 1], dialogue.time)
        for number, dialogue in enumerate(dialogues)
        for end in range(len(dialogue.turns))
    ]
    overall = judge(system, beginnings, watch).overall()
    courses, start = [], 0
    for dialogue in dialogues:
        scores = overall[start : start + len(dialogue.turns)]
        start += len(dialogue.turns)
        steps = np.diff(scores)
        fell = bool((steps <= -LEAST_FALL).any())
        courses.append(Course(tuple(scores.tolist()), int(np.nanargmin(steps)) + 1 if fell else None))
    return courses


def unknown_course(dialogue: Dialogue) -> Course:
    """Return the course of a dialogue that no scale says anything of."""
    return Course((np.nan,) * len(dialogue.turns), None)


class TrendPoint(msgspec.Struct, frozen=True):
    """The mean of a stretch of time, with a 95% interval that tells chance from change."""

    time: datetime
    stretch: str
    """What begins at that time: a day, week or month."""
    question: str
    dialogues: int
    mean: float
    low: float
    high: float


def trend(found: Judgements, seed: int = 0, resamples: int = 1_000) -> list[TrendPoint]:
    """Return the means by day, week or month: the shortest that gives few points with enough dialogues each."""
    times = pl.Series("time", [dialogue.time for dialogue in found.dialogues], dtype=pl.Datetime("us"))
    if times.n_unique() < 2:
        return []
    stretch, starts = _stretches(times)
    points = []
    for question in found.scales:
        scores = found.scores(question)
        for start in starts.drop_nulls().unique().sort():
            own = scores[(starts == start).fill_null(False).to_numpy()]
            own = own[~np.isnan(own)]
            if len(own) >= FEWEST:
                low, high = mean_intervals(own[None], resamples=resamples, seed=seed)
                of = (start, stretch, question.name, len(own))
                points.append(TrendPoint(*of, float(own.mean()), float(low[0]), float(high[0])))
    return points


def _stretches(times: pl.Series) -> tuple[str, pl.Series]:
    """Choose days, weeks or months, and return when that of each time began."""
    for stretch in STRETCHES:
        starts = times.dt.truncate(STRETCHES[stretch])
        count = starts.drop_nulls().n_unique()
        if count <= MOST_POINTS and len(times) >= FEWEST * count:
            break
    return stretch, starts
