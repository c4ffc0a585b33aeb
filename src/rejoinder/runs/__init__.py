"""Runs: what a system answered, read from files and checked against the truth, and written."""

from pathlib import Path

from rejoinder.files import BadInputError, printable
from rejoinder.formats import RUN_FORMATS, recognise_run
from rejoinder.runs import dialeval, dstc7, judgement, parquet, selection, trec
from rejoinder.runs.judgement import JudgementRun
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.selection import SelectionTruth

__all__ = ["JudgementRun", "SelectionRun", "read_judgement_run", "read_selection_run", "run_name"]


def run_name(path: Path) -> str:
    """Return the file's name without its endings, and with a mark for what cannot be printed."""
    name = path.name.removesuffix(".gz")
    known = (".json", ".jsonl", ".parquet", ".run", ".trec", ".txt")
    stem = Path(name).stem if Path(name).suffix in known else name
    return printable(stem)


def read_selection_run(
    path: Path, truth: SelectionTruth, format_: str | None = None, lenient: bool = False
) -> SelectionRun:
    """Read a run in any format and check it against the truth."""
    format_ = format_ or recognise_run(path)
    if format_ == "dstc7":
        listing = dstc7.read(path, lenient)
    elif format_ == "trec":
        listing = trec.read(path)
    elif format_ == "parquet":
        listing = parquet.read_selection(path)
    else:
        raise BadInputError(path, f"{RUN_FORMATS[format_]}, which does not rank options as the truth asks")
    return selection.check(listing, truth, run_name(path), lenient)


def read_judgement_run(
    path: Path, truth: JudgementTruth, format_: str | None = None, lenient: bool = False
) -> JudgementRun:
    """Read a run in any format and check it against the truth."""
    format_ = format_ or recognise_run(path)
    if format_ == "dialeval":
        judgements = dialeval.read(path)
    elif format_ == "parquet":
        judgements = parquet.read_judgements(path)
    else:
        raise BadInputError(path, f"{RUN_FORMATS[format_]}, which does not judge dialogues as the truth asks")
    return judgement.check(path, judgements, truth, run_name(path), lenient)
