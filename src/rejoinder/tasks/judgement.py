"""Judgement tasks: dialogues, questions asked of many annotators, and every annotator's vote.

Votes stay votes: counts and distributions over labels are derived from them, never stored in their place.
"""

from collections.abc import Mapping

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.dialogue import Dialogue
from rejoinder.errors import UserError

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

VOTE_SCHEMA = pl.Schema(
    {
        "dialogue": pl.UInt32(),
        "question": pl.String(),
        "turn": pl.UInt32(),
        "annotator": pl.String(),
        "label": pl.String(),
    }
)
"""A vote: on which dialogue (by number) and turn (0 for a question about the dialogue), by whom, for which label."""


class Question(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What annotators were asked of a dialogue, or of its turns."""

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
    """The answers to one question: a row for each dialogue, or for each turn that the question is asked of."""

    question: Question
    example: Integers
    """The number of each row's dialogue."""
    turn: Integers
    """The place of each row's turn in its dialogue; 0 throughout for a dialogue's question."""
    role: Integers
    """The speaker of each row's turn, as a place in the question's roles; 0 throughout for a dialogue's question."""
    votes: Floats
    """Rows x labels: how many annotators chose each label; none at all where nobody was asked."""

    @property
    def voted(self) -> NDArray[np.bool_]:
        """Whether anybody voted on each row."""
        return np.asarray(self.votes.any(axis=1))

    @property
    def distribution(self) -> Floats:
        """Rows x labels: the share of the votes; zeros where there are none."""
        return np.asarray(self.votes / np.maximum(self.votes.sum(axis=1, keepdims=True), 1))


class JudgementTruth(msgspec.Struct, frozen=True):
    """What is needed to score a run: the annotators' votes on every dialogue."""

    ids: pl.Series
    answers: Mapping[str, Answers]
    groups: pl.DataFrame
    """One row a dialogue: columns for break-downs."""


class JudgementTask(msgspec.Struct, frozen=True):
    """Dialogues to judge, with the votes where they are known."""

    dialogues: tuple[Dialogue, ...]
    questions: tuple[Question, ...]
    votes: pl.DataFrame | None = None
    """Every annotator's votes (VOTE_SCHEMA)."""

    def truth(self) -> JudgementTruth:
        """Return what a run on this task is scored against."""
        if self.votes is None:
            raise ValueError("this task has no annotations to score against")
        return self._truth(self.votes)

    def unanswered(self) -> JudgementTruth:
        """Return what a run on this task looks like: the rows of every question, and no votes."""
        return self._truth(pl.DataFrame(schema=VOTE_SCHEMA))

    def _truth(self, votes: pl.DataFrame) -> JudgementTruth:
        ids = pl.Series("id", [dialogue.id for dialogue in self.dialogues], dtype=pl.String)
        answers = {question.name: self._answers(question, votes) for question in self.questions}
        turns = [len(dialogue.turns) for dialogue in self.dialogues]
        return JudgementTruth(ids, answers, pl.DataFrame({"turns": turns}))

    def pick(self, numbers: Integers) -> "JudgementTask":
        """Return the task with these dialogues only, in this order."""
        places = pl.DataFrame({"dialogue": numbers, "new": np.arange(len(numbers))}, schema_overrides=_NUMBERS)
        votes = None if self.votes is None else self.votes.join(places, on="dialogue", maintain_order="left")
        return JudgementTask(
            tuple(self.dialogues[number] for number in numbers.tolist()),
            self.questions,
            None if votes is None else votes.with_columns(dialogue="new").drop("new"),
        )

    def join(self, other: "JudgementTask") -> "JudgementTask":
        """Return both tasks' dialogues, with their votes, as one task to learn from.

        An id that both have stands twice: the same dialogue in two languages.
        """
        if self.questions != other.questions:
            raise UserError("tasks that are learned from together must ask the same questions")
        votes = None
        if self.votes is not None and other.votes is not None:
            moved = other.votes.with_columns(pl.col("dialogue") + pl.lit(len(self.dialogues), pl.UInt32))
            votes = pl.concat([self.votes, moved])
        return JudgementTask(self.dialogues + other.dialogues, self.questions, votes)

    def _answers(self, question: Question, votes: pl.DataFrame) -> Answers:
        rows = self._rows(question)
        example, turn, role = rows.T
        return Answers(question, example, turn, role, _count(question, rows, votes))

    def _rows(self, question: Question) -> Integers:
        """Return dialogue, turn and role of each row, as columns."""
        if question.roles is None:
            numbers = np.arange(len(self.dialogues))
            return np.stack([numbers, np.zeros_like(numbers), np.zeros_like(numbers)], axis=1)
        roles = {speaker: place for place, speaker in enumerate(question.roles)}
        rows = [
            (number, place, roles[turn.speaker])
            for number, dialogue in enumerate(self.dialogues)
            for place, turn in enumerate(dialogue.turns)
            if turn.speaker in roles
        ]
        return np.array(rows, dtype=np.intp).reshape(-1, 3)


_NUMBERS = {"dialogue": pl.UInt32, "new": pl.UInt32}


def _count(question: Question, rows: Integers, votes: pl.DataFrame) -> Floats:
    """Count the votes for each label of each row."""
    own = votes.filter(pl.col("question") == question.name)
    keys = rows[:, 0] << 32 | rows[:, 1]
    places = np.searchsorted(keys, own["dialogue"].to_numpy().astype(np.intp) << 32 | own["turn"].to_numpy())
    cells = places * len(question.labels) + own["label"].cast(pl.Enum(question.labels)).to_physical().to_numpy()
    counts = np.bincount(cells, minlength=len(rows) * len(question.labels))
    return counts.reshape(len(rows), len(question.labels)).astype(np.float64)
