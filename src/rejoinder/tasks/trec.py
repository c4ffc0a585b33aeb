"""TREC qrels: `topic 0 option relevance`. Runs in TREC's format are read and written in `rejoinder.runs`."""

import re
from operator import itemgetter
from pathlib import Path

import polars as pl

from rejoinder.files import BadInputError, read_lines, write_atomically
from rejoinder.tasks.selection import NONE, SelectionTruth, to_pairs
from rejoinder.text import counted

_ESCAPES = {" ": "%20", "\t": "%09", "\n": "%0A", "\v": "%0B", "\f": "%0C", "\r": "%0D", "%": "%25"}
"""What separates fields, and the sign that marks it; in this order they can be undone one after the other."""
_TABLE = {ord(character): code for character, code in _ESCAPES.items()}


def escape(name: str) -> str:
    """Write a name that may hold spaces (a film's title) as one TREC field."""
    return name.translate(_TABLE)


def unescape(field: str) -> str:
    """Read such a field back."""
    if "%" not in field:
        return field
    for character, code in _ESCAPES.items():
        field = field.replace(code, character)
    return field


def split_fields(line: str) -> list[str]:
    """Split a line at ASCII white space only, as trec_eval does: names may hold other kinds."""
    return re.findall(r"\S+", line, re.ASCII)


def read_qrels(path: Path) -> SelectionTruth:
    """Read judgements; relevance above 0 is correct, and a topic with none such has NONE as its answer."""
    ids: dict[str, int] = {}
    judged: set[tuple[int, str]] = set()
    correct: list[tuple[int, str]] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = split_fields(line)
        if len(fields) != 4:
            problem = f"{counted(len(fields), 'field')}; expected topic 0 option relevance"
            raise BadInputError(path, problem, f"line {number}")
        if not re.fullmatch(r"-?[0-9]{1,9}", fields[3]):
            raise BadInputError(path, f"{fields[3]!r} is not a whole number", f"line {number}", "relevance")
        pair = ids.setdefault(unescape(fields[0]), len(ids)), unescape(fields[2])
        if pair in judged:
            problem = f"{fields[2]!r} is judged twice for topic {fields[0]!r}"
            raise BadInputError(path, problem, f"line {number}", "option")
        judged.add(pair)
        if int(fields[3]) > 0:
            correct.append(pair)
    if not ids:
        raise BadInputError(path, "holds no judgement")
    answered = {example for example, _ in correct}
    correct += [(example, NONE) for example in ids.values() if example not in answered]
    correct.sort(key=itemgetter(0))
    return SelectionTruth(pl.Series("id", list(ids)), to_pairs(*zip(*correct, strict=True)))


def write_qrels(path: Path, truth: SelectionTruth) -> None:
    """Write the correct options as relevant."""
    with write_atomically(path) as file:
        for example, option in truth.correct.iter_rows():
            file.write(f"{escape(truth.ids[example])} 0 {escape(option)} 1\n".encode())
