"""From files to a comparison: what `rejoinder score` and `rejoinder compare` have in common."""

import math
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

import msgspec
import polars as pl

from rejoinder import published
from rejoinder.comparison import Comparison, Settings, compare
from rejoinder.errors import UserError
from rejoinder.files import BadInputError, fingerprint, open_binary, read_parquet
from rejoinder.measures import judgement
from rejoinder.measures.scoring import Chosen, Run, default_names, find_measure, read_run, score_runs
from rejoinder.runs.selection import TIE_RULE
from rejoinder.tasks.card import title_of
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.truth import Truth, read_truth
from rejoinder.watch import Watch, unwatched


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to score, and how."""

    truth: Path
    runs: Sequence[Path]
    measures: Sequence[str] = ()
    truth_format: str | None = None
    run_format: str | None = None
    options: Path | None = None
    entities: Path | None = None
    groups: Path | None = None
    by: str | None = None
    alpha: float = judgement.ALPHA
    lenient: bool = False
    references: Sequence[str] = ()
    settings: Settings = Settings()


class Evaluation(msgspec.Struct, frozen=True):
    """Scored runs, compared as a whole and, if asked for, by group."""

    comparison: Comparison
    column: str | None = None
    by: Mapping[str, Comparison] = {}
    """The same for each value of the column."""


def evaluate(request: Request, watch: Watch = unwatched) -> Evaluation:
    """Read, check, score and compare."""
    truth = read_truth(request.truth, request.truth_format, request.options, request.entities)
    group = None if request.by is None else _group_column(request, truth)
    names = list(dict.fromkeys(request.measures)) or default_names(truth)
    for name in names:
        find_measure(name, truth)
    runs = _read_runs(request, truth, watch)
    options = _options(request, truth)

    def compared(title: str, more: Mapping[str, object], chosen: Chosen | None = None) -> Comparison:
        scores = score_runs(runs, truth, names, request.alpha, chosen)
        for run, path in zip(runs, request.runs, strict=True):
            if not any(run.name in matrix.runs for matrix in scores):
                raise BadInputError(path, f"answers nothing that {', '.join(names)} could score")
        parts = {"measures": "+".join(matrix.measure.name for matrix in scores), **options, **more}
        return compare(scores, title, request.settings, parts, watch)

    whole = msgspec.structs.replace(
        compared(title_of(request.truth), {}),
        references=_references(request.references, names),
        notes=tuple(note for run in runs for note in run.notes),
    )
    if group is None:
        return Evaluation(whole)
    groups = {value: (group == value).to_numpy() for value in sorted(group.unique().to_list(), key=_natural)}
    by = {value: compared(f"{request.by} = {value}", {"by": request.by}, chosen) for value, chosen in groups.items()}
    return Evaluation(whole, request.by, by)


def _read_runs(request: Request, truth: Truth, watch: Watch) -> list[Run]:
    runs = []
    with watch("reading runs", len(request.runs)) as advance:
        for path in request.runs:
            runs.append(read_run(path, truth, request.run_format, request.lenient))
            advance(1)
    unique = unique_names([run.name for run in runs], request.runs)
    return [msgspec.structs.replace(run, name=name) for run, name in zip(runs, unique, strict=True)]


def _references(sources: Sequence[str], names: list[str]) -> dict[str, Mapping[str, float]]:
    """Return published rows, named with where they are from."""
    rows: dict[str, Mapping[str, float]] = {}
    for source in sources:
        found = published.reference(source)
        if not any(name in means for means in found.values() for name in names):
            raise UserError(f"the published rows {source!r} have none of the measures {', '.join(names)}")
        rows |= {f"{run} ({source})": means for run, means in found.items()}
    return rows


def _options(request: Request, truth: Truth) -> dict[str, object]:
    """Return what else the figures depend on, for the signature."""
    options: dict[str, object] = {"truth": fingerprint(request.truth)}
    options |= {"alpha": request.alpha} if isinstance(truth, JudgementTruth) else {"ties": TIE_RULE}
    if request.entities is not None:
        options["entities"] = fingerprint(request.entities)
    return options | ({"lenient": "yes"} if request.lenient else {})


def unique_names(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Tell runs of the same name apart by their folders, or else by a number."""
    unique: list[str] = []
    for name, path in zip(names, paths, strict=True):
        wanted = f"{path.resolve().parent.name}/{name}" if names.count(name) > 1 else name
        numbered = (f"{wanted}#{number}" for number in count(2))
        unique.append(wanted if wanted not in unique else next(other for other in numbered if other not in unique))
    return unique


def _group_column(request: Request, truth: Truth) -> pl.Series:
    groups = truth.groups if request.groups is None else _read_groups(request.groups, truth)
    if groups is None or request.by not in groups.columns:
        known = ", ".join(groups.columns) if groups is not None else "none"
        raise BadInputError(
            request.groups or request.truth, f"no column {request.by!r} to break down by; there are {known}"
        )
    try:
        values = groups[request.by].cast(pl.String).fill_null("(none)")
    except pl.exceptions.PolarsError:
        raise BadInputError(request.groups or request.truth, "holds no plain values", field=request.by) from None
    return values.replace("", "(empty)")


def _read_groups(path: Path, truth: Truth) -> pl.DataFrame:
    """Read a table with a column `id` and columns to break down by, in the truth's order."""
    if path.suffix == ".parquet":
        table = read_parquet(path)
    else:
        with open_binary(path) as file:
            try:
                separator = "\t" if ".tsv" in path.suffixes else ","
                table = pl.read_csv(file.read(), separator=separator, infer_schema=False)
            except pl.exceptions.PolarsError as error:
                raise BadInputError(path, f"not a table ({str(error).splitlines()[0]})") from None
    if "id" not in table.columns:
        raise BadInputError(path, "no column `id`", field="id")
    table = table.with_columns(pl.col("id").cast(pl.String))
    if table["id"].is_duplicated().any():
        raise BadInputError(path, f"id {table.filter(table['id'].is_duplicated())['id'][0]} is given twice", field="id")
    joined = truth.ids.to_frame("id").join(table, on="id", how="left", maintain_order="left")
    missing = truth.ids.to_frame("id").join(table, on="id", how="anti")["id"]
    if len(missing):
        raise BadInputError(path, f"id {missing[0]} of the truth is missing", field="id")
    return joined.drop("id")


def _natural(value: str) -> tuple[bool, float, str]:
    """Return a key that puts numbers first and in order, then texts."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    return (False, number, value) if math.isfinite(number) else (True, 0.0, value)
