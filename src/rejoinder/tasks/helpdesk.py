"""A support team's own dialogues, and a judgement task of them, with or without votes: `rejoinder import helpdesk`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from rejoinder.corpora.helpdesk import Columns, Roles, read_dialogues, read_rows
from rejoinder.corpora.masking import mask as masked
from rejoinder.dialogue import Dialogue, Turn
from rejoinder.files import BadInputError
from rejoinder.formats import first_keys
from rejoinder.records import read_yaml
from rejoinder.tasks.dialeval import NUGGET, QUALITY
from rejoinder.tasks.judgement import VOTE_SCHEMA, JudgementTask, Question
from rejoinder.tasks.judgement_folder import check_questions, check_votes
from rejoinder.tasks.load import load_task

QUESTIONS = (*QUALITY, NUGGET)


def read_questions(path: Path) -> tuple[Question, ...]:
    """Read questions from YAML: a list of name, labels, ordered and, for questions about turns, roles."""
    questions = read_yaml(path, tuple[Question, ...])
    check_questions(path, questions)
    return questions


def read_chats(path: Path, columns: Columns, roles: Roles, mask: bool) -> Sequence[Dialogue]:
    """Read dialogues from posts, a judgement task folder or DialEval data."""
    if not path.is_dir() and "turns" not in first_keys(path):
        return read_dialogues(path, columns, roles, masked if mask else str)
    if roles.customers or roles.helpdesks:
        raise BadInputError(path, "says itself who is who; --customer and --helpdesk are for posts")
    task = load_task(path)
    if not isinstance(task, JudgementTask):
        raise BadInputError(path, "holds no dialogues between a customer and a helpdesk")
    if not mask:
        return task.dialogues
    return [
        Dialogue(d.id, tuple(Turn(turn.speaker, tuple(map(masked, turn.posts))) for turn in d.turns), d.time)
        for d in task.dialogues
    ]


def make_task(
    dialogues: Sequence[Dialogue], votes: Path | None = None, questions: tuple[Question, ...] = QUESTIONS
) -> JudgementTask:
    """Ask the questions of the dialogues; with votes, dialogues on which nobody voted are left out."""
    if votes is None:
        return JudgementTask(tuple(dialogues), questions)
    table = _read_votes(votes, dialogues, questions)
    asked = tuple(question for question in questions if question.name in set(table["question"]))
    task = JudgementTask(tuple(dialogues), asked or questions, table)
    task = task.pick(np.unique(table["dialogue"].to_numpy()))
    check_votes(votes, task)
    return task


def _read_votes(path: Path, dialogues: Sequence[Dialogue], questions: Sequence[Question]) -> pl.DataFrame:
    numbers = {dialogue.id: number for number, dialogue in enumerate(dialogues)}
    about_turns = {question.name: question.roles is not None for question in questions}
    rows = []
    for place, row in read_rows(path, ("conversation", "annotator", "question", "label"), ("turn",)):
        id_, turn = row["conversation"].strip(), row["turn"].strip()
        if id_ not in numbers:
            raise BadInputError(path, f"no such conversation: {id_!r}", place, "conversation")
        if turn and not (turn.isdecimal() and len(turn) < 10 and int(turn)):
            problem = f"{turn!r}; expected a number from 1, or nothing for a question about the dialogue"
            raise BadInputError(path, problem, place, "turn")
        if about_turns.get(row["question"], bool(turn)) != bool(turn):
            expected = "nothing" if turn else "the turn's number"
            raise BadInputError(path, f"{turn!r}; {row['question']} expects {expected}", place, "turn")
        rows.append((numbers[id_], row["question"], int(turn or 1) - 1, row["annotator"], row["label"].strip()))
    if not rows:
        raise BadInputError(path, "holds no vote")
    return pl.DataFrame(rows, schema=VOTE_SCHEMA, orient="row")
