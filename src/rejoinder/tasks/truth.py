"""Read what runs are scored against, from a file in any format or from a task folder."""

from pathlib import Path

import msgspec
import polars as pl

from rejoinder.corpora.films import read_entities
from rejoinder.files import BadInputError, read_start
from rejoinder.formats import recognise_truth
from rejoinder.tasks import dialeval, dstc7, moviedialog, trec
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.judgement_folder import is_judgement_folder, load_judgement_task
from rejoinder.tasks.selection import NONE, SelectionTruth, load_selection_task, to_pairs

Truth = SelectionTruth | JudgementTruth


def read_truth(
    path: Path, format_: str | None = None, options: Path | None = None, entities: Path | None = None
) -> Truth:
    """Read the truth; `options` is an examples or pool file that says what could be chosen."""
    format_ = format_ or recognise_truth(path)
    judged = format_ == "dialeval" or (format_ == "task" and is_judgement_folder(path))
    useless = options if judged else None
    useless = entities if format_ != "moviedialog" and entities else useless
    if useless:
        raise BadInputError(useless, f"has no use with a truth in the format {format_}")
    if judged:
        task = load_judgement_task(path) if format_ == "task" else dialeval.read_task(path)
        if task.votes is None:
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
        return moviedialog.read_truth(path, frozenset() if entities is None else frozenset(read_entities(entities)))
    task = load_selection_task(path) if format_ == "task" else dstc7.read_task(path)
    unanswered = task.examples.filter(pl.col("correct").is_null())["id"]
    if len(unanswered):
        raise BadInputError(
            path, "has no answers to score against", f"example-id {unanswered[0]}", "options-for-correct-answers"
        )
    dstc7.check_options(path, task.examples)
    truth = task.truth()
    # an examples file of subtask 2 does not hold its pool: only the correct options are known
    return msgspec.structs.replace(truth, pool=None) if format_ == "dstc7" else truth


def _with_options(truth: SelectionTruth, path: Path) -> SelectionTruth:
    if _recognise_options(path) == "pool":
        pool = pl.Series("option", [id_ for id_, _ in dstc7.read_pool(path)], dtype=pl.String)
        _refuse_missing(path, truth, truth.correct.join(pool.to_frame(), on="option", how="anti"))
        return msgspec.structs.replace(truth, pool=pool)
    numbers = {id_: number for number, id_ in enumerate(truth.ids)}
    pairs = [
        (numbers[str(example.example_id)], option.id)
        for example in dstc7.read_examples(path)
        for option in example.options
        if str(example.example_id) in numbers
    ]
    options = to_pairs([example for example, _ in pairs], [option for _, option in pairs])
    bare = set(numbers.values()) - set(options["example"])
    if bare:
        raise BadInputError(path, "has no options for it", f"example-id {truth.ids[min(bare)]}", "options-for-next")
    _refuse_missing(path, truth, truth.correct.join(options, on=["example", "option"], how="anti"))
    return msgspec.structs.replace(truth, options=options)


def _refuse_missing(path: Path, truth: SelectionTruth, missing: pl.DataFrame) -> None:
    for example, option in missing.filter(pl.col("option") != NONE).sort("example", "option").iter_rows():
        problem = f"the correct option {option!r} is not among the options"
        raise BadInputError(path, problem, f"example-id {truth.ids[example]}", "candidate-id")


def _recognise_options(path: Path) -> str:
    start = read_start(path, 4096).lstrip()
    return "examples" if start[:1] in (b"[", b"{") else "pool"
