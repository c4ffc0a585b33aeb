"""Runs of selection tasks: every example's ranking of options, checked against the truth.

The rules, strict first, then with `lenient`:

    unknown example     an error            left out
    missing example     an error            scored as if nothing had been chosen
    example given twice an error            the first is kept
    unknown option      an error            kept as a wrong choice
    option given twice  an error            the best ranked is kept
    NaN or infinite     an error            an error
    negative confidence an error (DSTC7)    a score to rank by; no F90
    over 100 choices    an error (DSTC7)    the best ranked 100 are kept

Choices are ranked by confidence; equal confidences keep the order in which the run lists them.
"""

from pathlib import Path

import msgspec
import polars as pl

from rejoinder.files import BadInputError
from rejoinder.runs.mending import shortened
from rejoinder.tasks.selection import NONE, SelectionTruth
from rejoinder.text import counted

TIE_RULE = "listed-order"


LISTING_SCHEMA = pl.Schema({"id": pl.String(), "option": pl.String(), "score": pl.Float64()})


class Listing(msgspec.Struct):
    """A run file as it was read: choices in the order of the file."""

    path: Path
    choices: pl.DataFrame
    """Columns `id` (of the example), `option`, `score`."""
    notes: list[str]
    """What lenient reading mended."""


class SelectionRun(msgspec.Struct, frozen=True):
    """A checked run: choices by example, best first."""

    name: str
    choices: pl.DataFrame
    """Columns `example` (its number in the truth), `option`, `score`."""
    notes: tuple[str, ...] = ()


def check(listing: Listing, truth: SelectionTruth, name: str, lenient: bool) -> SelectionRun:
    """Check a listing against the truth and rank its choices."""
    path, notes = listing.path, listing.notes
    numbers = pl.DataFrame({"id": truth.ids, "example": pl.int_range(len(truth.ids), dtype=pl.UInt32, eager=True)})
    choices = listing.choices.join(numbers, on="id", how="left", maintain_order="left")
    _check_values(path, choices)
    choices = _check_examples(path, choices, numbers, lenient, notes)
    choices = _ranked(choices.select("example", "option", "score"))
    choices = _check_duplicates(path, choices, truth, lenient, notes)
    _check_options(path, choices, truth, lenient, notes)
    return SelectionRun(name, choices, shortened(notes))


def _check_values(path: Path, choices: pl.DataFrame) -> None:
    bad = choices.filter(~pl.col("score").is_finite() | pl.col("score").is_null())
    if bad.height:
        id_, option, score = bad.select("id", "option", "score").row(0)
        raise BadInputError(path, f"{score} is not a finite number", f"example {id_}", f"confidence of {option!r}")
    nameless = choices.filter(pl.col("option") == "")["id"]
    if len(nameless):
        raise BadInputError(path, "is empty", f"example {nameless[0]}", "candidate-id")


def _ranked(choices: pl.DataFrame) -> pl.DataFrame:
    """Put choices in order, best first; most files list them so already."""
    same = pl.col("example") == pl.col("example").shift()
    falls = pl.col("score") <= pl.col("score").shift()
    rises = pl.col("example") > pl.col("example").shift()
    if choices.select(pl.when(same).then(falls).otherwise(rises).all()).item():
        return choices
    return choices.sort("example", "score", descending=[False, True], maintain_order=True)


def _check_examples(
    path: Path, choices: pl.DataFrame, numbers: pl.DataFrame, lenient: bool, notes: list[str]
) -> pl.DataFrame:
    unknown = choices.filter(pl.col("example").is_null())["id"].unique(maintain_order=True)
    missing = numbers.join(choices, on="id", how="anti", maintain_order="left")["id"]
    problems = (
        (unknown, "is not in the truth", "examples that the truth does not have were left out"),
        (missing, "missing: the truth has it and the run has not", "missing examples were scored as wrong"),
    )
    for ids, problem, mended in problems:
        if len(ids) and not lenient:
            more = f" (and {len(ids) - 1} more)" if len(ids) > 1 else ""
            raise BadInputError(path, problem + more, f"example {ids[0]}", "example-id")
        if len(ids):
            notes.append(f"{path}: {len(ids)} {mended}, first {ids[0]}")
    return choices.drop_nulls("example") if len(unknown) else choices


def _check_duplicates(
    path: Path, choices: pl.DataFrame, truth: SelectionTruth, lenient: bool, notes: list[str]
) -> pl.DataFrame:
    # no two equal pairs without two equal hashes, which are far quicker to count
    pairs = pl.struct("example", "option").hash()
    if choices.select(pairs.n_unique()).item() == choices.height:
        return choices
    repeated = ~choices.select(pl.struct("example", "option").is_first_distinct()).to_series()
    if not repeated.any():
        return choices
    example, option, _ = choices.filter(repeated).row(0)
    if not lenient:
        raise BadInputError(path, f"{option!r} is chosen twice", f"example {truth.ids[example]}", "candidate-id")
    notes.append(f"{path}: left out {counted(int(repeated.sum()), 'repeated choice')}: an option keeps its best rank")
    return choices.filter(~repeated)


def _check_options(path: Path, choices: pl.DataFrame, truth: SelectionTruth, lenient: bool, notes: list[str]) -> None:
    if truth.options is None and truth.pool is None:
        return
    unknown = choices.filter(pl.col("option") != NONE)
    if truth.pool is not None:
        unknown = unknown.join(truth.pool.to_frame("option"), on="option", how="anti", maintain_order="left")
    if truth.options is not None:
        unknown = unknown.join(truth.options, on=["example", "option"], how="anti", maintain_order="left")
    if unknown.height and not lenient:
        example, option, _ = unknown.row(0)
        raise BadInputError(
            path, f"{option!r} is not one of the example's options", f"example {truth.ids[example]}", "candidate-id"
        )
    if unknown.height:
        notes.append(f"{path}: {counted(unknown.height, 'choice')} outside the options, counted as wrong")
