"""Write a task folder example by example, so that files of gigabytes pass through little memory."""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from rejoinder.files import file_to_write
from rejoinder.folders import new_folders
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, OPTION_SCHEMA, PROFILE_SCHEMA

_NEEDED = ("examples", "options")
_ROWS = 2_000  # examples of a hundred options each: some megabytes


class TaskWriter:
    """Collects examples in parts on disk; on leaving without an error they become the folder's tables.

    with TaskWriter(folder) as writer:
        writer.add("1", [("a", "hello")], options=[("X", "hi")], correct=[("X", "hi")])
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.examples = 0
        self.shared = 0
        """How many of the first options are offered to every example besides its own."""
        self.rows: dict[tuple[str, str], int] = {}
        self._tables: dict[str, tuple[pl.Schema, dict[str, list[object]]]] = {
            name: (schema, {column: [] for column in schema})
            for name, schema in (("examples", EXAMPLE_SCHEMA), ("options", OPTION_SCHEMA), ("profiles", PROFILE_SCHEMA))
        }
        self._parts = dict.fromkeys((*self._tables, "groups"), 0)

    def __enter__(self) -> "TaskWriter":
        self._passing = ExitStack()
        self._passing.enter_context(new_folders(self.folder))
        self._temporary = Path(self._passing.enter_context(TemporaryDirectory(dir=self.folder, prefix=".parts.")))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        with self._passing:
            if error is not None:
                raise error
            self._finish()

    def row(self, option: tuple[str, str]) -> int:
        """Return the row of an option (id, text), which is written once."""
        row = self.rows.get(option)
        if row is None:
            row = self.rows[option] = len(self.rows)
            self._append("options", option)
        return row

    def add(
        self,
        id_: str,
        turns: Sequence[tuple[str, str]],
        options: Sequence[tuple[str, str]] | None,
        correct: Sequence[tuple[str, str]] | None,
        profile: str | None = None,
    ) -> None:
        """Add an example; without options it chooses from the pool, without correct ones its answer is not known."""
        self.examples += 1
        self._append(
            "examples",
            (
                id_,
                turns,
                None if options is None else [self.row(option) for option in options],
                None if correct is None else [self.row(option) for option in correct],
            ),
        )
        if profile is not None:
            self._append("profiles", (id_, profile))

    def extend(self, examples: pl.DataFrame, groups: pl.DataFrame) -> None:
        """Add many examples that choose from the pool: turns and correct rows, and their columns to break down by."""
        numbers = pl.int_range(self.examples + 1, self.examples + 1 + examples.height, eager=True)
        self.examples += examples.height
        table = examples.select(id=numbers.cast(pl.String), turns="turns", options=None, correct="correct")
        self._store("examples", table.cast(EXAMPLE_SCHEMA))
        self.store_groups(groups)

    def store_groups(self, groups: pl.DataFrame) -> None:
        """Add columns to break down by, for all examples so far that have none yet."""
        self._store("groups", groups)

    def _append(self, name: str, values: Sequence[object]) -> None:
        _, columns = self._tables[name]
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        if len(column) == _ROWS:
            self._flush(name)

    def _flush(self, name: str) -> None:
        schema, columns = self._tables[name]
        made = {column: _series(values, schema[column]) for column, values in columns.items()}
        self._store(name, pl.DataFrame(made, schema=schema))
        for column in columns.values():
            column.clear()

    def _store(self, name: str, table: pl.DataFrame) -> None:
        table.write_parquet(self._temporary / f"{name}-{self._parts[name]:06}.parquet")
        self._parts[name] += 1

    def _finish(self) -> None:
        for name, (_, columns) in self._tables.items():
            if next(iter(columns.values())) or (name in _NEEDED and not self._parts[name]):
                self._flush(name)
        for name, parts in self._parts.items():
            table = pl.scan_parquet(self._temporary / f"{name}-*.parquet") if parts else None
            if table is not None and name == "options" and self.shared:
                table = table.with_columns(shared=pl.int_range(pl.len()) < self.shared)
            if table is not None:
                table.sink_parquet(self._temporary / f"{name}.parquet")
        for joined in self._temporary.glob("*s.parquet"):
            shutil.move(joined, file_to_write(self.folder / joined.name))


def _series(values: list[Any], kind: pl.DataType) -> pl.Series:
    """Return a column; lists by way of one flat column, many times quicker than polars puts nested ones together."""
    if not isinstance(kind, pl.List):
        return pl.Series(values, dtype=kind)
    flat = [item for row in values if row for item in row]
    if isinstance(kind.inner, pl.Struct):
        fields = {field.name: [item[place] for item in flat] for place, field in enumerate(kind.inner.fields)}
        items = pl.DataFrame(fields, schema=pl.Schema(kind.inner)).to_struct()
    else:
        items = pl.Series(flat, dtype=kind.inner)
    owner = pl.Series([number for number, row in enumerate(values) for _ in row or ()], dtype=pl.UInt32)
    lists = pl.DataFrame({"row": owner, "items": items}).group_by("row", maintain_order=True).agg("items")
    known = pl.Series("known", [row is not None for row in values], dtype=pl.Boolean)
    joined = known.to_frame().with_row_index("row").join(lists, on="row", how="left", maintain_order="left")
    filled = pl.when("known").then(pl.col("items").fill_null(pl.lit([], dtype=kind)))
    return joined.select(filled).to_series().cast(kind)
