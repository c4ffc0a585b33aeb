"""Read what runs are scored against, from a file in any format or from a task folder."""

from pathlib import Path

import msgspec
import polars as pl

from rejoinder.files import BadInputError, read_start
from rejoinder.formats import recognise_truth
from rejoinder.tasks import dialeval, dstc7, moviedialog, trec
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.selection import SelectionTruth, load_selection_task, to_pairs

Truth = SelectionTruth | JudgementTruth


def read_truth(
    path: Path, format_: str | None = None, options: Path | None = None, entities: Path | None = None
) -> Truth:
    """Read the truth; `options` is an examples or pool file that says what could be chosen."""
    format_ = format_ or recognise_truth(path)
    if format_ == "dialeval":
        task = dialeval.read_task(path)
        if task.answers is None:
            raise BadInputError(path, "has no annotations to score against", field="annotations")
        return task.truth()
    truth = _read_selection(path, format_, entities)
    return truth if options is None else _with_options(truth, options)


def _read_selection(path: Path, format_: str, entities: Path | None) -> SelectionTruth:
    if format_ == "key":
        return dstc7.read_answer_key(path)
    if format_ == "qrels":
        return trec.read_qrels(path)
    if format_ == "moviedialog":
        return moviedialog.read_truth(path, frozenset() if entities is None else moviedialog.read_entities(entities))
    task = load_selection_task(path) if format_ == "task" else dstc7.read_task(path)
    unanswered = task.examples.filter(pl.col("correct").is_null())["id"]
    if len(unanswered):
        raise BadInputError(
            path, "has no answers to score against", f"example-id {unanswered[0]}", "options-for-correct-answers"
        )
    truth = task.truth()
    # an examples file of subtask 2 does not hold its pool: only the correct options are known
    return msgspec.structs.replace(truth, pool=None) if format_ == "dstc7" else truth


def _with_options(truth: SelectionTruth, path: Path) -> SelectionTruth:
    if _recognise_options(path) == "pool":
        return msgspec.structs.replace(truth, pool=pl.Series("option", [id_ for id_, _ in dstc7.read_pool(path)]))
    numbers = {id_: number for number, id_ in enumerate(truth.ids)}
    pairs = [
        (numbers[str(example.example_id)], option.id)
        for example in dstc7.read_examples(path)
        for option in example.options
        if str(example.example_id) in numbers
    ]
    if not pairs:
        raise BadInputError(path, "has no options for any example of the truth", field="options-for-next")
    return msgspec.structs.replace(truth, options=to_pairs(*zip(*pairs, strict=True)))


def _recognise_options(path: Path) -> str:
    return "examples" if read_start(path, 4096).lstrip()[:1] in (b"[", b"{") else "pool"
