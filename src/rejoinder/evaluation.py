"""From files to a comparison: what `rejoinder score` and `rejoinder compare` have in common."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import polars as pl

from rejoinder import published
from rejoinder.comparison import Comparison, Settings, Watch, compare, unwatched
from rejoinder.files import BadInputError, open_binary
from rejoinder.measures import judgement
from rejoinder.measures.measure import Scores
from rejoinder.measures.scoring import default_names, read_run, score_runs
from rejoinder.runs.selection import TIE_RULE
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.truth import Truth, read_truth


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
    by: Mapping[str, Comparison]


def evaluate(request: Request, watch: Watch = unwatched) -> Evaluation:
    """Read, check, score and compare."""
    truth = read_truth(request.truth, request.truth_format, request.options, request.entities)
    group = None if request.by is None else _group_column(request, truth)
    names = list(dict.fromkeys(request.measures)) or default_names(truth)
    runs = []
    with watch("reading runs", len(request.runs)) as advance:
        for path in request.runs:
            runs.append(read_run(path, truth, request.run_format, request.lenient))
            advance(1)
    unique = unique_names([run.name for run in runs], request.runs)
    runs = [msgspec.structs.replace(run, name=name) for run, name in zip(runs, unique, strict=True)]
    scores = score_runs(runs, truth, names, request.alpha)
    if not scores:
        raise BadInputError(request.runs[0], f"answers nothing that {', '.join(names)} could score")
    parts = {"truth": fingerprint(request.truth), "measures": "+".join(names), **_options(request, truth)}
    whole = compare(scores, request.truth.name, request.settings, parts, watch)
    whole = msgspec.structs.replace(
        whole,
        references={run: row for name in request.references for run, row in published.reference(name).items()},
        notes=tuple(note for run in runs for note in run.notes),
    )
    return Evaluation(whole, {} if group is None else _compare_groups(scores, group, request, parts))


def _options(request: Request, truth: Truth) -> dict[str, object]:
    if isinstance(truth, JudgementTruth):
        options: dict[str, object] = {"alpha": request.alpha}
    else:
        options = {"ties": TIE_RULE}
    return options | ({"lenient": "yes"} if request.lenient else {})


def fingerprint(path: Path) -> str:
    """Return the first twelve digits of the content's SHA-256, files of a folder in order of their names."""
    digest = hashlib.sha256()
    for part in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        with open_binary(part) as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()[:12]


def unique_names(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Tell runs of the same name apart by their folders, or else by a number."""
    named = [
        f"{path.parent.name}/{name}" if names.count(name) > 1 else name for name, path in zip(names, paths, strict=True)
    ]
    return [
        f"{name}#{named[:place].count(name) + 1}" if named.count(name) > 1 else name for place, name in enumerate(named)
    ]


def _group_column(request: Request, truth: Truth) -> pl.Series:
    groups = truth.groups if request.groups is None else _read_groups(request.groups, truth)
    if groups is None or request.by not in groups.columns:
        known = ", ".join(groups.columns) if groups is not None else "none"
        raise BadInputError(
            request.groups or request.truth, f"no column {request.by!r} to break down by; there are {known}"
        )
    return groups[request.by].cast(pl.String).fill_null("(none)")


def _read_groups(path: Path, truth: Truth) -> pl.DataFrame:
    """Read a table with a column `id` and columns to break down by, in the truth's order."""
    try:
        separator = "\t" if ".tsv" in path.suffixes else ","
        table = (
            pl.read_parquet(path)
            if path.suffix == ".parquet"
            else pl.read_csv(path, separator=separator, infer_schema=False)
        )
    except FileNotFoundError:
        raise BadInputError(path, "no such file") from None
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


def _compare_groups(
    scores: list[Scores], group: pl.Series, request: Request, parts: Mapping[str, object]
) -> dict[str, Comparison]:
    comparisons = {}
    for value in sorted(group.unique().to_list(), key=_natural):
        chosen = (group == value).to_numpy()
        subset = [Scores(matrix.measure, matrix.runs, matrix.values[:, chosen]) for matrix in scores]
        comparisons[value] = compare(subset, f"{request.by} = {value}", request.settings, {**parts, "by": request.by})
    return comparisons


def _natural(value: str) -> tuple[int, float, str]:
    try:
        return 0, float(value), ""
    except ValueError:
        return 1, 0.0, value
