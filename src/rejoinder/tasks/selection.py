"""Selection tasks: a dialogue so far, options for the next reply, and which of them are correct.

A task is a folder of Parquet tables: `options.parquet` (every option once) and `examples.parquet`, whose rows refer
to options by their row. An example without options of its own chooses from the pool, which is all of them. Where the
options have a column `shared`, the first ones, marked there, are offered to every example besides its own.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.files import BadInputError, read_parquet, write_atomically
from rejoinder.tasks.card import read_card
from rejoinder.text import counted

NONE = "NONE"
"""The option that is correct when no other is (DSTC7, subtask 4)."""

EXAMPLE_SCHEMA = pl.Schema(
    {
        "id": pl.String(),
        "turns": pl.List(pl.Struct({"speaker": pl.String(), "text": pl.String()})),
        "options": pl.List(pl.UInt32()),
        "correct": pl.List(pl.UInt32()),
    }
)
OPTION_SCHEMA = pl.Schema({"id": pl.String(), "text": pl.String()})
SHARED_SCHEMA = pl.Schema({**OPTION_SCHEMA, "shared": pl.Boolean()})
PROFILE_SCHEMA = pl.Schema({"id": pl.String(), "profile": pl.String()})


def to_pairs(example: Sequence[int], option: Sequence[str]) -> pl.DataFrame:
    """Return the table of (example number, option id) that truths are made of."""
    return pl.DataFrame({"example": example, "option": option}, schema={"example": pl.UInt32, "option": pl.String})


class SelectionTruth(msgspec.Struct, frozen=True):
    """What is needed to score a run: the correct options of every example, and what else could have been chosen."""

    ids: pl.Series
    """Example ids; an example's number is its place here."""
    correct: pl.DataFrame
    """Columns `example` (number) and `option` (id): at least one row an example, NONE where no option is correct."""
    options: pl.DataFrame | None = None
    """The same columns for what an example may choose besides the pool; None: nothing, or not known."""
    pool: pl.Series | None = None
    """Option ids shared by all examples; None: not known, or each example has its own."""
    groups: pl.DataFrame | None = None
    """One row an example: columns for break-downs."""

    @property
    def several_correct(self) -> bool:
        """Whether any example has more than one correct option."""
        return self.correct.height > len(self.ids)


class SelectionTask(msgspec.Struct, frozen=True):
    """Examples and their options, as tables."""

    examples: pl.DataFrame
    options: pl.DataFrame
    profiles: pl.DataFrame | None = None
    """What is known of an example's speaker, as JSON (Advising); not every example need have one."""
    groups: pl.DataFrame | None = None
    """One row an example: columns for break-downs."""
    knowledge: Path | None = None
    """Where the pages or films are that may help to choose, if the task's folder names any."""

    @property
    def shared(self) -> int:
        """How many of the first options are offered to every example that has options of its own."""
        return int(self.options["shared"].sum()) if "shared" in self.options.columns else 0

    def candidates(self, example: int) -> NDArray[np.int64]:
        """Return the rows of the options that an example chooses from."""
        own = self.examples["options"][example]
        if own is None:
            return np.arange(self.options.height)
        return np.append(np.arange(self.shared), own.to_numpy().astype(np.int64))

    def contexts(self) -> list[str]:
        """Return each example's turns as one text."""
        joined = pl.col("turns").list.eval(pl.element().struct.field("text")).list.join(" ")
        return self.examples.select(joined).to_series().to_list()

    def truth(self) -> SelectionTruth:
        """Return what a run on this task is scored against."""
        if self.examples["correct"].null_count():
            raise ValueError("this task has no answers to score against")
        counts = self.examples.select(
            pl.col("turns").list.len().alias("turns"), pl.col("correct").list.len().alias("answers")
        )
        return msgspec.structs.replace(
            self.offer(),
            correct=self._pairs("correct").with_columns(pl.col("option").fill_null(NONE)),
            groups=counts if self.groups is None else counts.hstack(self.groups),
        )

    def offer(self) -> SelectionTruth:
        """Return what a run on this task may choose from, and no answers; if not all have own options, from any."""
        pooled = self.examples["options"].null_count() > 0
        offered = self.options.height if pooled else self.shared
        return msgspec.structs.replace(
            self.unanswered(),
            options=None if pooled else self._pairs("options"),
            pool=self.options["id"][:offered] if offered else None,
        )

    def unanswered(self) -> SelectionTruth:
        """Return what a run on this task is written by: its examples, and no answers."""
        return SelectionTruth(self.examples["id"], to_pairs([], []))

    def _pairs(self, column: str) -> pl.DataFrame:
        rows = self.examples.select(
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("example"), pl.col(column).alias("row")
        ).explode("row", empty_as_null=True)
        return rows.select("example", self.options["id"].gather(rows["row"]).alias("option"))

    def save(self, folder: Path) -> None:
        """Write the tables, each whole or not at all."""
        tables = {
            "options": self.options,
            "examples": self.examples,
            "profiles": self.profiles,
            "groups": self.groups,
        }
        for name, table in tables.items():
            if table is None:
                (folder / f"{name}.parquet").unlink(missing_ok=True)
                continue
            with write_atomically(folder / f"{name}.parquet") as file:
                table.write_parquet(file)


def load_selection_task(folder: Path) -> SelectionTask:
    """Read a task folder."""
    if not any((folder / name).exists() for name in ("options.parquet", "examples.parquet")):
        inside = {path.parent.name for name in ("examples", "dialogues") for path in folder.glob(f"*/{name}.parquet")}
        if inside:
            raise BadInputError(folder, f"is no task but holds such ({', '.join(sorted(inside))}); name one of them")
        raise BadInputError(folder, "is no task; expected options.parquet and examples.parquet, or dialogues.parquet")
    tables = {}
    for name, schema in (("options", OPTION_SCHEMA), ("examples", EXAMPLE_SCHEMA)):
        path = folder / f"{name}.parquet"
        if not path.is_file():
            raise BadInputError(path, "no such file; a task has options.parquet and examples.parquet")
        tables[name] = read_parquet(path)
        if tables[name].schema != schema and (name, tables[name].schema) != ("options", SHARED_SCHEMA):
            raise BadInputError(path, f"expected the columns {dict(schema)}, found {dict(tables[name].schema)}")
        _refuse(path, tables[name]["id"].is_null() | (tables[name]["id"] == ""), "id", "is empty")
    _refuse(folder / "options.parquet", tables["options"]["text"].is_null(), "text", "is missing")
    _refuse(folder / "options.parquet", tables["options"]["id"] == NONE, "id", f"is {NONE}, which means no option")
    more = {name: folder / f"{name}.parquet" for name in ("profiles", "groups")}
    found = {name: read_parquet(path) for name, path in more.items() if path.is_file()}
    task = SelectionTask(**tables, **found, knowledge=_knowledge(folder))
    _check_examples(folder / "examples.parquet", task)
    _check_more(folder, task)
    return task


def _knowledge(folder: Path) -> Path | None:
    named = read_card(folder).knowledge if (folder / "task.yaml").is_file() else None
    return None if named is None else folder / named


def _check_more(folder: Path, task: SelectionTask) -> None:
    if task.groups is not None and task.groups.height != task.examples.height:
        problem = f"{counted(task.groups.height, 'row')} for {counted(task.examples.height, 'example')}"
        raise BadInputError(folder / "groups.parquet", problem)
    if task.profiles is not None:
        path = folder / "profiles.parquet"
        if task.profiles.schema != PROFILE_SCHEMA:
            found = dict(task.profiles.schema)
            raise BadInputError(path, f"expected the columns {dict(PROFILE_SCHEMA)}, found {found}")
        _refuse(path, task.profiles["profile"].is_null(), "profile", "is missing")
    if task.shared and not task.options["shared"][: task.shared].all():
        raise BadInputError(folder / "options.parquet", "options that are shared must come first", field="shared")
    pool = task.options["id"] if task.examples["options"].null_count() else task.options["id"][: task.shared]
    _refuse(folder / "options.parquet", ~pool.is_first_distinct(), "id", "stands in an earlier row of the pool too")


def _check_examples(path: Path, task: SelectionTask) -> None:
    examples = task.examples
    if not examples.height:
        raise BadInputError(path, "holds no example")
    _refuse(path, ~examples["id"].is_first_distinct(), "id", "stands in an earlier row too")
    _refuse(path, examples["turns"].is_null(), "turns", "is empty")
    wordless = pl.col("turns").list.eval(pl.element().struct.field("text").is_null()).list.any()
    _refuse(path, examples.select(wordless).to_series(), "turns", "holds a turn without text")
    if not task.shared:
        _refuse(path, examples["options"].list.len() == 0, "options", "holds no option")
    for column in ("options", "correct"):
        rows = pl.element()
        wrong = pl.col(column).list.eval(rows.is_null() | (rows >= task.options.height)).list.any()
        _refuse(path, examples.select(wrong).to_series(), column, "refers to a row that options.parquet has not")
        repeated = pl.col(column).list.n_unique() < pl.col(column).list.len()
        _refuse(path, examples.select(repeated).to_series(), column, "holds an option twice")
    shared = pl.col("options").list.eval(pl.element() < task.shared).list.any()
    _refuse(path, examples.select(shared).to_series(), "options", "holds an option that is shared")
    if task.options["id"].is_duplicated().any():  # by several examples, perhaps
        own = task._pairs("options").drop_nulls()
        pooled = own["option"].is_in(task.options["id"][: task.shared].implode())
        twice = own.filter(own.is_duplicated() | pooled)["example"]
        named_twice = examples.with_row_index()["index"].is_in(twice.implode())
        _refuse(path, named_twice, "options", "holds two options of one id")
    others = pl.col("correct").list.set_difference("options")
    other = others.list.eval(pl.element() >= task.shared).list.any()
    _refuse(path, examples.select(other).to_series(), "correct", "is not among the options")


def _refuse(path: Path, bad: pl.Series, field: str, problem: str) -> None:
    if bad.any():
        raise BadInputError(path, problem, f"row {bad.arg_true()[0] + 1}", field)
