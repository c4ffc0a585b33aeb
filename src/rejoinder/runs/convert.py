"""Write a run in any format that fits its kind."""

from pathlib import Path

import polars as pl

from rejoinder.files import BadInputError
from rejoinder.formats import RUN_FORMATS
from rejoinder.runs import dialeval, dstc7, parquet, trec
from rejoinder.runs.judgement import JudgementRun
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.selection import NONE, SelectionTruth
from rejoinder.tasks.trec import write_qrels
from rejoinder.text import counted


def write_run(
    path: Path, run: SelectionRun | JudgementRun, truth: SelectionTruth | JudgementTruth, format_: str
) -> list[str]:
    """Write a run, and return what the format could not hold."""
    if isinstance(run, JudgementRun) and isinstance(truth, JudgementTruth):
        judgement_writers = {"dialeval": dialeval.write, "parquet": parquet.write_judgements}
        if format_ in judgement_writers:
            judgement_writers[format_](path, run, truth)
            return []
    if isinstance(run, SelectionRun) and isinstance(truth, SelectionTruth):
        selection_writers = {"dstc7": dstc7.write, "trec": trec.write, "parquet": parquet.write_selection}
        if format_ in selection_writers:
            notes = _check_dstc7(path, run) if format_ == "dstc7" else []
            selection_writers[format_](path, run, truth)
            return notes
    raise BadInputError(path, f"{RUN_FORMATS[format_]}: not a format for this kind of run")


def default_format(
    run: SelectionRun | JudgementRun, truth: SelectionTruth | JudgementTruth, path: Path | None = None
) -> str:
    """Return Parquet if the path says so, else the official format that holds the run, or Parquet, which holds all."""
    if path is not None and path.suffix == ".parquet":
        return "parquet"
    if isinstance(run, SelectionRun):
        return "parquet" if (run.choices["score"] < 0).any() else "dstc7"
    return "dialeval" if isinstance(truth, JudgementTruth) and dialeval.holds(run, truth) else "parquet"


def _check_dstc7(path: Path, run: SelectionRun) -> list[str]:
    if (run.choices["score"] < 0).any():
        raise BadInputError(path, "a DSTC7 submission cannot hold negative confidences", run.name)
    options = run.choices.filter(pl.col("option") != NONE)  # beside a hundred options, the last makes room for it
    long = options.group_by("example").len().filter(pl.col("len") > dstc7.LIMIT).height
    return [f"{path}: {counted(long, 'ranking')} cut to the best {dstc7.LIMIT} choices"] if long else []


def write_truth_as_qrels(path: Path, truth: SelectionTruth | JudgementTruth) -> None:
    """Write the correct options as TREC judgements."""
    if isinstance(truth, JudgementTruth):
        raise BadInputError(path, "votes on labels are no TREC judgements")
    write_qrels(path, truth)
