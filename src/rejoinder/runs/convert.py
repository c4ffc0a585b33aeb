"""Write a run in any format that fits its kind."""

from pathlib import Path

from rejoinder.files import BadInputError
from rejoinder.formats import RUN_FORMATS
from rejoinder.runs import dialeval, dstc7, parquet, trec
from rejoinder.runs.judgement import JudgementRun
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.selection import SelectionTruth
from rejoinder.tasks.trec import write_qrels


def write_run(
    path: Path, run: SelectionRun | JudgementRun, truth: SelectionTruth | JudgementTruth, format_: str
) -> None:
    """Write a run."""
    if isinstance(run, JudgementRun) and isinstance(truth, JudgementTruth):
        judgement_writers = {"dialeval": dialeval.write, "parquet": parquet.write_judgements}
        if format_ in judgement_writers:
            return judgement_writers[format_](path, run, truth)
    if isinstance(run, SelectionRun) and isinstance(truth, SelectionTruth):
        selection_writers = {"dstc7": dstc7.write, "trec": trec.write, "parquet": parquet.write_selection}
        if format_ in selection_writers:
            return selection_writers[format_](path, run, truth)
    raise BadInputError(path, f"{RUN_FORMATS[format_]}: not a format for this kind of run")


def write_truth_as_qrels(path: Path, truth: SelectionTruth | JudgementTruth) -> None:
    """Write the correct options as TREC judgements."""
    if isinstance(truth, JudgementTruth):
        raise BadInputError(path, "votes on labels are no TREC judgements")
    write_qrels(path, truth)
