"""Judgement tasks: dialogues, questions asked of many annotators, and their votes as distributions over labels."""

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.dialogue import Dialogue

Floats = NDArray[np.float64]


class Question(msgspec.Struct, frozen=True):
    """What annotators were asked of a dialogue, or of each of its turns."""

    name: str
    labels: tuple[str, ...]
    ordered: bool
    """Whether the labels are a scale, so that a near miss is better than a far one."""
    roles: dict[str, tuple[str, ...]] | None = None
    """For a question about turns: the labels that a turn of each speaker can have; None: asked of the dialogue."""

    def allowed(self, role: int) -> tuple[str, ...]:
        """Return the labels that a row of this role can have."""
        return self.labels if self.roles is None else tuple(self.roles.values())[role]


class Answers(msgspec.Struct, frozen=True):
    """The answers to one question: a row for each dialogue, or for each turn of each dialogue."""

    question: Question
    example: NDArray[np.intp]
    """The number of each row's dialogue."""
    role: NDArray[np.intp]
    """The speaker of each row's turn, as a place in the question's roles; 0 throughout for a dialogue's question."""
    votes: Floats
    """Rows x labels: how many annotators chose each label."""

    @property
    def distribution(self) -> Floats:
        """Rows x labels: the share of the votes."""
        return np.asarray(self.votes / self.votes.sum(axis=1, keepdims=True))


class JudgementTruth(msgspec.Struct, frozen=True):
    """What is needed to score a run: the annotators' votes on every dialogue."""

    ids: pl.Series
    answers: dict[str, Answers]
    groups: pl.DataFrame
    """One row a dialogue: columns for break-downs."""


class JudgementTask(msgspec.Struct, frozen=True):
    """Dialogues to judge, with the votes where they are known."""

    dialogues: tuple[Dialogue, ...]
    questions: tuple[Question, ...]
    answers: dict[str, Answers] | None = None

    def truth(self) -> JudgementTruth:
        """Return what a run on this task is scored against."""
        if self.answers is None:
            raise ValueError("this task has no annotations to score against")
        turns = [len(dialogue.turns) for dialogue in self.dialogues]
        return JudgementTruth(
            ids=pl.Series("id", [dialogue.id for dialogue in self.dialogues], dtype=pl.String),
            answers=self.answers,
            groups=pl.DataFrame({"turns": turns}),
        )

    def unanswered(self) -> JudgementTruth:
        """Return what a run on this task looks like: the rows of every question, and no votes."""
        sizes = np.array([len(dialogue.turns) for dialogue in self.dialogues])
        answers = {question.name: _rows(question, self.dialogues, sizes) for question in self.questions}
        ids = pl.Series("id", [dialogue.id for dialogue in self.dialogues], dtype=pl.String)
        return JudgementTruth(ids, answers, pl.DataFrame({"turns": sizes}))


def _rows(question: Question, dialogues: tuple[Dialogue, ...], sizes: NDArray[np.intp]) -> Answers:
    numbers = np.arange(len(dialogues))
    if question.roles is None:
        example, role = numbers, np.zeros_like(numbers)
    else:
        places = {speaker: place for place, speaker in enumerate(question.roles)}
        example = np.repeat(numbers, sizes)
        role = np.array([places[turn.speaker] for dialogue in dialogues for turn in dialogue.turns], dtype=np.intp)
    return Answers(question, example, role, np.zeros((len(example), len(question.labels))))
