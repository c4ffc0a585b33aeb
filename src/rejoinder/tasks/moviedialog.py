"""Movie Dialog files (Dodge et al. 2016): lines `N message TAB answer, answer`; 1 starts a dialogue."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import polars as pl

from rejoinder.corpora.films import split_names
from rejoinder.files import BadInputError, read_lines
from rejoinder.tasks.selection import SelectionTruth, to_pairs


class Exchange(msgspec.Struct, frozen=True):
    """One message and its answers, with the exchanges before it in the same dialogue."""

    id: str
    response: int
    context: tuple[str, ...]
    message: str
    answers: tuple[str, ...]


def read_exchanges(path: Path, entities: frozenset[str] = frozenset(), *, whole: bool = False) -> Iterator[Exchange]:
    """Yield the exchanges; ids count them from 1. The answers of discussions are one reply as a whole."""
    context: list[str] = []
    count, previous, response = 0, 0, 0
    for number, line in read_lines(path):
        if not line.strip():
            previous = 0
            continue
        position, message, answer = _parse(path, number, line)
        if position not in (1, previous + 1):
            raise BadInputError(path, f"number {position} after {previous}", f"line {number}", "line number")
        if position == 1:
            context, response = [], 0
        previous = position
        count += 1
        response += 1
        answers = (answer,) if whole else split_names(answer, entities)
        if not all(answers):
            raise BadInputError(path, f"an answer is empty in {answer!r}", f"line {number}", "answer")
        yield Exchange(str(count), response, tuple(context), message, answers)
        context += [message, answer]


def _parse(path: Path, number: int, line: str) -> tuple[int, str, str]:
    matched = re.fullmatch(r"([1-9]\d{0,8}) ([^\t]*)\t([^\t]*)(?:\t.*)?", line)
    if not matched:
        raise BadInputError(path, "expected a number, a space, a message, a TAB and the answers", f"line {number}")
    return int(matched[1]), matched[2], matched[3]


def read_truth(path: Path, entities: frozenset[str] = frozenset()) -> SelectionTruth:
    """Read a file as what runs are scored against; an example's id is the number of its exchange."""
    ids: list[str] = []
    responses: list[int] = []
    example: list[int] = []
    option: list[str] = []
    for number, exchange in enumerate(read_exchanges(path, entities)):
        ids.append(exchange.id)
        responses.append(exchange.response)
        example += [number] * len(exchange.answers)
        option += exchange.answers
    if not ids:
        raise BadInputError(path, "holds no exchange with an answer")
    return SelectionTruth(
        ids=pl.Series("id", ids),
        correct=to_pairs(example, option),
        groups=pl.DataFrame({"response": responses}),
    )
