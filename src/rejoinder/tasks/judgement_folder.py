"""A judgement task as a folder: `task.yaml`, `dialogues.parquet` and, where they are known, `votes.parquet`."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from rejoinder import __version__
from rejoinder.dialogue import Dialogue, Turn
from rejoinder.files import BadInputError, read_parquet
from rejoinder.folders import staged_folder
from rejoinder.records import read_yaml, write_yaml
from rejoinder.tasks.dialeval import Layout
from rejoinder.tasks.judgement import VOTE_SCHEMA, JudgementTask, Question

DIALOGUE_SCHEMA = pl.Schema(
    {
        "id": pl.String(),
        "time": pl.Datetime("us"),
        "turns": pl.List(pl.Struct({"speaker": pl.String(), "posts": pl.List(pl.String())})),
    }
)


class JudgementCard(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a judgement task's `task.yaml` says: the questions, and where the dialogues are from."""

    dataset: str
    """dialeval, dbdc3, helpdesk, ..."""
    questions: tuple[Question, ...]
    dialogues: int
    sources: dict[str, str] = {}
    """Names of source files and their fingerprints."""
    masked: bool = False
    """Whether what looked like personal data was replaced."""
    layout: Layout | None = None
    """How an official file was laid out."""
    rejoinder: str = ""


def is_judgement_folder(folder: Path) -> bool:
    """Whether a folder holds a judgement task."""
    return (folder / "dialogues.parquet").is_file()


def save_judgement_task(
    folder: Path,
    task: JudgementTask,
    dataset: str,
    sources: dict[str, str],
    masked: bool = False,
    layout: Layout | None = None,
) -> None:
    """Write the folder, whole or not at all."""
    card = JudgementCard(dataset, task.questions, len(task.dialogues), sources, masked, layout, __version__)
    with staged_folder(folder, mark="task.yaml", kept="") as stage:
        _dialogues_table(task).write_parquet(stage / "dialogues.parquet")
        if task.votes is not None:
            task.votes.write_parquet(stage / "votes.parquet")
        write_yaml(stage / "task.yaml", card)


def _dialogues_table(task: JudgementTask) -> pl.DataFrame:
    said = [
        [{"speaker": turn.speaker, "posts": list(turn.posts)} for turn in dialogue.turns] for dialogue in task.dialogues
    ]
    columns = {"id": [d.id for d in task.dialogues], "time": [d.time for d in task.dialogues], "turns": said}
    return pl.DataFrame(columns, schema=DIALOGUE_SCHEMA)


def read_judgement_card(folder: Path) -> JudgementCard:
    """Read `task.yaml`."""
    card = read_yaml(folder / "task.yaml", JudgementCard)
    check_questions(folder / "task.yaml", card.questions)
    return card


def check_questions(path: Path, questions: Sequence[Question]) -> None:
    """Refuse questions that cannot be told apart, or that leave no choice."""
    if not questions:
        raise BadInputError(path, "asks nothing", field="questions")
    names = [question.name for question in questions]
    for number, question in enumerate(questions, 1):
        roles = {} if question.roles is None else question.roles
        unknown = {label for labels in roles.values() for label in labels} - {*question.labels}
        checks = (
            ("name", re.fullmatch(r"\w[\w -]*", question.name), "expected letters, digits, spaces, - or _"),
            ("name", question.name not in names[: number - 1], f"{question.name!r} is given twice"),
            ("labels", len({*question.labels}) >= max(2, len(question.labels)), "expected two or more, each once"),
            ("roles", not unknown, f"{min(unknown, default='')!r} is not among the labels"),
            ("roles", question.roles is None or (roles and all(roles.values())), "expected speakers with their labels"),
        )
        for field, good, problem in checks:
            if not good:
                raise BadInputError(path, problem, f"question {number}", field)


def load_judgement_task(folder: Path) -> JudgementTask:
    """Read a task folder, and check that its parts fit together."""
    card = read_judgement_card(folder)
    dialogues = _read(folder / "dialogues.parquet", DIALOGUE_SCHEMA)
    _refuse(folder / "dialogues.parquet", dialogues["id"].is_null() | ~dialogues["id"].is_first_distinct(), "id")
    _refuse(folder / "dialogues.parquet", dialogues["turns"].is_null(), "turns")
    if not dialogues.height:
        raise BadInputError(folder / "dialogues.parquet", "holds no dialogue")
    votes = folder / "votes.parquet"
    task = JudgementTask(
        tuple(
            Dialogue(id_, tuple(Turn(turn["speaker"], tuple(turn["posts"])) for turn in turns), time)
            for id_, time, turns in dialogues.iter_rows()
        ),
        card.questions,
        _read(votes, VOTE_SCHEMA) if votes.is_file() else None,
    )
    if task.votes is not None:
        check_votes(votes, task)
    return task


def _read(path: Path, schema: pl.Schema) -> pl.DataFrame:
    table = read_parquet(path)
    if table.schema != schema:
        raise BadInputError(path, f"expected the columns {dict(schema)}, found {dict(table.schema)}")
    return table


def _refuse(path: Path, bad: pl.Series, field: str, problem: str = "is empty, or given twice") -> None:
    if bad.any():
        raise BadInputError(path, problem, f"row {bad.arg_true()[0] + 1}", field)


def check_votes(path: Path, task: JudgementTask) -> None:
    """Refuse votes on what is not asked, for labels that are not there, given twice; and dialogues without any."""
    assert task.votes is not None
    votes = task.votes.with_columns(pl.col("dialogue", "turn").cast(pl.Int64))
    asked = task.unanswered().answers
    _refuse(path, ~votes["question"].is_in(list(asked)), "question", f"expected one of {', '.join(asked)}")
    rows = pl.concat(
        [
            pl.DataFrame(
                {
                    "question": name,
                    "dialogue": answers.example,
                    "turn": answers.turn,
                    "allowed": [list(answers.question.allowed(role)) for role in answers.role.tolist()],
                }
            )
            for name, answers in asked.items()
        ]
    )
    joined = votes.join(rows, on=["question", "dialogue", "turn"], how="left", maintain_order="left")
    _refuse(path, joined["allowed"].is_null(), "turn", "the question is not asked of this turn, or there is none")
    fitting = joined.select(pl.col("label").is_in(pl.col("allowed"))).to_series()
    _refuse(path, ~fitting.fill_null(False), "label", "is not among the question's labels for this turn")
    twice = votes.select(pl.struct("question", "dialogue", "turn", "annotator").is_first_distinct()).to_series()
    _refuse(path, ~twice, "annotator", "has voted on this already")
    for name in asked:
        bare = np.setdiff1d(
            np.arange(len(task.dialogues)), votes.filter(pl.col("question") == name)["dialogue"].to_numpy()
        )
        if len(bare):
            raise BadInputError(path, "nobody voted on it", f"dialogue {task.dialogues[bare[0]].id}", name)
