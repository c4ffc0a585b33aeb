"""DialEval submissions: for each dialogue, label -> probability; `quality` or `nugget` may be left out."""

from pathlib import Path

import msgspec
import numpy as np

from rejoinder.files import BadInputError
from rejoinder.records import read_json_records, write_json_list
from rejoinder.runs.judgement import Judgement, JudgementRun
from rejoinder.tasks.dialeval import NUGGET, QUALITY
from rejoinder.tasks.judgement import JudgementTruth


class Submission(msgspec.Struct, omit_defaults=True):
    """What a run says of one dialogue."""

    id: str | int
    quality: dict[str, dict[str, float]] | None = None
    nugget: list[dict[str, float]] | None = None


def read(path: Path) -> list[Judgement]:
    """Read a submission."""
    return [_judgement(path, number, record) for number, record in read_json_records(path, Submission)]


def _judgement(path: Path, number: int, record: Submission) -> Judgement:
    place = f"record {number} (id {record.id})"
    answers = {} if record.nugget is None else {NUGGET.name: dict(enumerate(record.nugget))}
    if record.quality is not None:
        names = {question.name for question in QUALITY}
        if record.quality.keys() != names:
            problem = f"criteria {', '.join(sorted(record.quality)) or 'none'}; expected A, S and E"
            raise BadInputError(path, problem, place, "quality")
        answers |= {name: {0: distribution} for name, distribution in record.quality.items()}
    if not answers:
        raise BadInputError(path, "neither quality nor nugget is given", place)
    return Judgement(str(record.id), place, answers)


def holds(run: JudgementRun, truth: JudgementTruth) -> bool:
    """Whether a submission can hold a run: DialEval's questions, of A, S and E all or none."""
    answered = [truth.answers[name].question for name in run.distributions]
    official = all(question in (*QUALITY, NUGGET) for question in answered)
    return official and sum(question in QUALITY for question in answered) in (0, len(QUALITY))


def write(path: Path, run: JudgementRun, truth: JudgementTruth) -> None:
    """Write a submission."""
    if not holds(run, truth):
        expected = "a DialEval submission holds A, S and E, or nugget, or all four; Parquet holds any"
        raise BadInputError(path, f"the run answers {', '.join(run.distributions)}; {expected}")
    write_json_list(path, iter([_record(run, truth, number, id_) for number, id_ in enumerate(truth.ids)]))


def _record(run: JudgementRun, truth: JudgementTruth, number: int, id_: str) -> Submission:
    quality = {
        question.name: dict(zip(question.labels, run.distributions[question.name][number].tolist(), strict=True))
        for question in QUALITY
        if question.name in run.distributions
    }
    return Submission(id_, quality or None, _nuggets(run, truth, number))


def _nuggets(run: JudgementRun, truth: JudgementTruth, number: int) -> list[dict[str, float]] | None:
    if NUGGET.name not in run.distributions:
        return None
    answers = truth.answers[NUGGET.name]
    rows = np.arange(*np.searchsorted(answers.example, [number, number + 1]))
    values = (dict(zip(NUGGET.labels, run.distributions[NUGGET.name][row].tolist(), strict=True)) for row in rows)
    allowed = (NUGGET.allowed(int(answers.role[row])) for row in rows)
    return [{label: turn[label] for label in labels} for turn, labels in zip(values, allowed, strict=True)]
