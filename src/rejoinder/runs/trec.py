"""TREC runs: lines `topic Q0 option rank score name`; the score ranks, the rank column is not used."""

import re
from pathlib import Path

import polars as pl

from rejoinder.files import BadInputError, read_lines, write_atomically
from rejoinder.runs.selection import LISTING_SCHEMA, Listing, SelectionRun
from rejoinder.tasks.selection import SelectionTruth
from rejoinder.tasks.trec import escape, split_fields, unescape
from rejoinder.text import counted

# one match a line takes two thirds of the time of splitting it and looking at the fields
_LINE = re.compile(
    r"\s*(\S+)\s+\S+\s+(\S+)\s+\S+\s+([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s+\S+\s*", re.ASCII
)


def read(path: Path) -> Listing:
    """Read a run."""
    ids: list[str] = []
    options: list[str] = []
    scores: list[float] = []
    for number, line in read_lines(path):
        fields = _LINE.fullmatch(line)
        if fields:
            ids.append(unescape(fields[1]))
            options.append(unescape(fields[2]))
            scores.append(float(fields[3]))
        elif line.strip():
            raise _malformed(path, number, line)
    table = pl.DataFrame({"id": ids, "option": options, "score": scores}, schema=LISTING_SCHEMA)
    return Listing(path, table, [])


def _malformed(path: Path, number: int, line: str) -> BadInputError:
    fields = split_fields(line)
    if len(fields) != 6:
        problem = f"{counted(len(fields), 'field')}; expected topic Q0 option rank score name"
        return BadInputError(path, problem, f"line {number}")
    return BadInputError(path, f"{fields[4]!r} is not a number", f"line {number}", "score")


def write(path: Path, run: SelectionRun, truth: SelectionTruth) -> None:
    """Write a run."""
    name = escape(run.name)
    previous, rank = -1, 0
    with write_atomically(path) as file:
        for example, option, score in run.choices.iter_rows():
            rank = rank + 1 if example == previous else 1
            previous = example
            file.write(f"{escape(truth.ids[example])} Q0 {escape(option)} {rank} {score!r} {name}\n".encode())
