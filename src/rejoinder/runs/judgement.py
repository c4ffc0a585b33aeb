"""Runs of judgement tasks: a distribution over labels for every dialogue, or every turn, checked against the truth.

The rules, strict first, then with `lenient`:

    unknown dialogue       an error     left out
    missing dialogue       an error     judged by the uniform distribution
    dialogue given twice   an error     the first is kept
    unknown label          an error     an error
    label left out         has probability 0
    negative or NaN        an error     an error
    sum other than one     an error     divided by the sum (a sum of 0 stays an error)
    wrong number of turns  an error     an error
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.files import BadInputError
from rejoinder.runs.mending import mend, shortened
from rejoinder.tasks.judgement import Answers, JudgementTruth
from rejoinder.text import counted

Floats = NDArray[np.float64]

TOLERANCE = 1e-3
"""How far from one probabilities may sum: rounding to three digits is no mistake. Within it, they are divided by it."""


class JudgementRun(msgspec.Struct, frozen=True):
    """A checked run: for each question that it answers, rows x labels as in the truth's answers."""

    name: str
    distributions: dict[str, Floats]
    notes: tuple[str, ...] = ()


class Judgement(msgspec.Struct, frozen=True):
    """What a run says of one dialogue."""

    id: str
    place: str
    """Where it stands in the file, for messages."""
    answers: Mapping[str, Mapping[int, Mapping[str, float]]]
    """For each question, the distribution of each turn that it is asked of; of turn 0 for a dialogue's question."""


def check(path: Path, judgements: list[Judgement], truth: JudgementTruth, name: str, lenient: bool) -> JudgementRun:
    """Check what a file says of each dialogue against the truth and lay it out as arrays."""
    notes: list[str] = []
    known = _by_id(path, judgements, truth, lenient, notes)
    asked = {question for judgement in known.values() for question in judgement.answers}
    for judgement in known.values():
        for question in sorted(judgement.answers.keys() - truth.answers.keys()):
            problem = f"question {question!r}; expected one of {', '.join(truth.answers)}"
            raise BadInputError(path, problem, judgement.place, "question")
    for judgement in known.values():
        for question in sorted(asked - judgement.answers.keys()):
            raise BadInputError(path, "left out here, but not in other records", judgement.place, question)
    distributions = {
        question: _lay_out(path, truth, answers, known, lenient, notes)
        for question, answers in truth.answers.items()
        if question in asked
    }
    return JudgementRun(name, distributions, shortened(notes))


def _by_id(
    path: Path, judgements: list[Judgement], truth: JudgementTruth, lenient: bool, notes: list[str]
) -> dict[str, Judgement]:
    ids = set(truth.ids)
    known: dict[str, Judgement] = {}
    for judgement in judgements:
        if judgement.id in known:
            mend(lenient, notes, BadInputError(path, "duplicate id", judgement.place, "id"), "the first is kept")
        elif judgement.id not in ids:
            mend(lenient, notes, BadInputError(path, "id is not in the truth", judgement.place, "id"), "left out")
        else:
            known[judgement.id] = judgement
    missing = [id_ for id_ in truth.ids if id_ not in known]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        error = BadInputError(path, f"missing: the truth has it and the run has not{more}", f"id {missing[0]}")
        mend(lenient, notes, error, "judged by the uniform distribution")
    return known


def _lay_out(
    path: Path, truth: JudgementTruth, answers: Answers, known: dict[str, Judgement], lenient: bool, notes: list[str]
) -> Floats:
    """Fill rows x labels, first with the uniform distribution over the labels that each row can have."""
    question = answers.question
    labels = {label: place for place, label in enumerate(question.labels)}
    table = uniform(answers)
    rows = np.split(np.arange(len(table)), np.flatnonzero(np.diff(answers.example)) + 1)
    for id_, own in zip(truth.ids, rows, strict=True):
        if id_ not in known:
            continue
        judgement = known[id_]
        given = judgement.answers[question.name]
        turns = answers.turn[own].tolist()
        if sorted(given) != turns:
            raise _wrong_turns(path, judgement.place, question.name, sorted(given), turns)
        for turn, row in zip(turns, own, strict=True):
            field = question.name if question.roles is None else f"{question.name}[{turn}]"
            allowed = question.allowed(int(answers.role[row]))
            values = _normalised(path, judgement.place, field, given[turn], allowed, lenient, notes)
            table[row] = 0
            for label, value in values.items():
                table[row, labels[label]] = value
    return table


def _wrong_turns(path: Path, place: str, question: str, given: list[int], asked: list[int]) -> BadInputError:
    if given == list(range(len(given))) and len(given) != len(asked):
        problem = f"{counted(len(given), 'distribution')}; expected {len(asked)}, one a turn"
    else:
        problem = f"turns {given}; expected {asked}"
    return BadInputError(path, problem, place, question)


def uniform(answers: Answers) -> Floats:
    """Return the uniform distribution over the labels that each row can have."""
    question = answers.question
    allowed = [question.allowed(role) for role in range(len(question.roles or (0,)))]
    by_role = [[1 / len(labels) if label in labels else 0.0 for label in question.labels] for labels in allowed]
    return np.array(by_role)[answers.role]


def _normalised(
    path: Path,
    place: str,
    field: str,
    distribution: Mapping[str, float],
    allowed: tuple[str, ...],
    lenient: bool,
    notes: list[str],
) -> dict[str, float]:
    for label, value in distribution.items():
        if label not in allowed:
            raise BadInputError(path, f"label {label!r}; expected one of {', '.join(allowed)}", place, field)
        if not 0 <= value < float("inf"):
            raise BadInputError(path, f"probability {value} of {label!r}; expected 0 to 1", place, field)
    total = sum(distribution.values())
    if abs(total - 1) > TOLERANCE:
        error = BadInputError(path, f"probabilities sum to {total:.6g}; expected 1", place, field)
        mend(lenient and 0 < total < float("inf"), notes, error, "divided by their sum")
    return {label: value / total for label, value in distribution.items()}
