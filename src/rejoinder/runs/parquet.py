"""Runs as Parquet: `example, option, score`, or `example, question, turn, label, probability`."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from rejoinder.files import BadInputError, read_parquet, write_atomically
from rejoinder.runs.judgement import Judgement, JudgementRun
from rejoinder.runs.selection import LISTING_SCHEMA, Listing, SelectionRun
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.selection import SelectionTruth

SELECTION = pl.Schema({"example": pl.String(), "option": pl.String(), "score": pl.Float64()})
JUDGEMENT = pl.Schema(
    {
        "example": pl.String(),
        "question": pl.String(),
        "turn": pl.Int64(),
        "label": pl.String(),
        "probability": pl.Float64(),
    }
)
_TEXT = (pl.String, pl.Categorical, pl.Enum)
_FITTING: dict[pl.DataType, tuple[str, Callable[[pl.DataType], bool]]] = {
    pl.String(): ("text or whole numbers", lambda kind: kind.is_integer() or kind in _TEXT),
    pl.Int64(): ("whole numbers", lambda kind: kind.is_integer() or kind == pl.Null),
    pl.Float64(): ("numbers", lambda kind: kind.is_numeric()),
}


def _read(path: Path, schema: pl.Schema) -> pl.DataFrame:
    table = read_parquet(path)
    for name, kind in schema.items():
        if name not in table.columns:
            raise BadInputError(path, f"no such column; expected the columns {', '.join(schema)}", field=name)
        expected, fits = _FITTING[kind]
        if not fits(table.schema[name]):
            raise BadInputError(path, f"a column of {table.schema[name]}; expected {expected}", field=name)
    try:
        return table.select(pl.col(name).cast(kind) for name, kind in schema.items())
    except pl.exceptions.PolarsError as error:
        raise BadInputError(path, str(error).partition("\n")[0]) from None


def read_selection(path: Path) -> Listing:
    """Read a run of a selection task."""
    table = _read(path, SELECTION).rename({"example": "id"})
    incomplete = table.select(pl.any_horizontal(pl.all().is_null())).to_series().arg_true()
    if len(incomplete):
        raise BadInputError(path, "a value is missing", f"row {incomplete[0] + 1}")
    return Listing(path, table.cast(LISTING_SCHEMA), [])


def write_selection(path: Path, run: SelectionRun, truth: SelectionTruth) -> None:
    """Write a run of a selection task."""
    ids = truth.ids.gather(run.choices["example"]).alias("example")
    with write_atomically(path) as file:
        run.choices.select(ids, "option", "score").write_parquet(file)


def read_judgements(path: Path) -> list[Judgement]:
    """Read a run of a judgement task."""
    found: dict[str, dict[str, dict[int, dict[str, float]]]] = {}
    for number, (id_, question, turn, label, value) in enumerate(_read(path, JUDGEMENT).iter_rows(), 1):
        if None in (id_, question, label, value):
            raise BadInputError(path, "a value is missing", f"row {number}")
        labels = found.setdefault(id_, {}).setdefault(question, {}).setdefault(turn or 0, {})
        if label in labels:
            raise BadInputError(path, f"label {label!r} is given twice", f"row {number}", "label")
        labels[label] = value
    return [Judgement(id_, f"example {id_}", answers) for id_, answers in found.items()]


def write_judgements(path: Path, run: JudgementRun, truth: JudgementTruth) -> None:
    """Write a run of a judgement task."""
    with write_atomically(path) as file:
        pl.concat([_long(run, truth, name) for name in run.distributions]).write_parquet(file)


def _long(run: JudgementRun, truth: JudgementTruth, name: str) -> pl.DataFrame:
    answers = truth.answers[name]
    question = answers.question
    labels = [list(question.allowed(role)) for role in answers.role.tolist()]
    columns = [[question.labels.index(label) for label in allowed] for allowed in labels]
    values = [row[own].tolist() for row, own in zip(run.distributions[name], columns, strict=True)]
    table = pl.DataFrame(
        {
            "example": truth.ids.gather(answers.example),
            "question": name,
            "turn": answers.turn,
            "label": labels,
            "probability": values,
        }
    )
    return table.explode("label", "probability").cast(JUDGEMENT)
