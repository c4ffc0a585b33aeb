"""DSTC7 submissions: `[{"example-id", "candidate-ranking": [{"candidate-id", "confidence"}]}]`, at most 100 choices."""

from pathlib import Path

import msgspec
import polars as pl

from rejoinder.files import BadInputError
from rejoinder.records import read_json_records, write_json_list
from rejoinder.runs.mending import mend
from rejoinder.runs.selection import LISTING_SCHEMA, Listing, SelectionRun
from rejoinder.tasks.dstc7 import official_id
from rejoinder.tasks.selection import SelectionTruth

LIMIT = 100


class Choice(msgspec.Struct, rename={"id": "candidate-id"}, gc=False):
    """One option and how sure the system is of it."""

    id: str
    confidence: float


class Ranking(msgspec.Struct, rename="kebab"):
    """One example's choices, best first."""

    example_id: int | str
    candidate_ranking: list[Choice]


def read(path: Path, lenient: bool) -> Listing:
    """Read a submission."""
    ids: list[str] = []
    options: list[str] = []
    scores: list[float] = []
    notes: list[str] = []
    seen: dict[str, int] = {}
    for number, ranking in read_json_records(path, Ranking):
        id_ = str(ranking.example_id)
        place = f"record {number} (example-id {id_})"
        if seen.setdefault(id_, number) != number:
            error = BadInputError(path, f"duplicate id, first in record {seen[id_]}", place, "example-id")
            mend(lenient, notes, error, "the first is kept")
            continue
        choices = _checked(path, place, ranking.candidate_ranking, lenient, notes)
        ids += [id_] * len(choices)
        options += [choice.id for choice in choices]
        scores += [choice.confidence for choice in choices]
    table = pl.DataFrame({"id": ids, "option": options, "score": scores}, schema=LISTING_SCHEMA)
    return Listing(path, table, notes)


def _checked(path: Path, place: str, choices: list[Choice], lenient: bool, notes: list[str]) -> list[Choice]:
    if not choices:
        raise BadInputError(path, "no choice; expected at least one", place, "candidate-ranking")
    if min(choice.confidence for choice in choices) < 0:
        number, choice = next((n, c) for n, c in enumerate(choices) if c.confidence < 0)
        field = f"candidate-ranking[{number}].confidence"
        error = BadInputError(path, f"{choice.confidence} is negative", place, field)
        mend(lenient, notes, error, "kept as a score to rank by")
    if len(choices) > LIMIT:
        error = BadInputError(path, f"{len(choices)} choices; expected at most {LIMIT}", place, "candidate-ranking")
        mend(lenient, notes, error, f"the best ranked {LIMIT} are kept")
        return sorted(choices, key=lambda choice: -choice.confidence)[:LIMIT]
    return choices


def write(path: Path, run: SelectionRun, truth: SelectionTruth) -> None:
    """Write a submission: each example's best 100 choices."""
    rankings = (
        Ranking(official_id(truth.ids[example]), [Choice(*choice) for choice in zip(options, scores, strict=True)])
        for example, options, scores in run.choices.group_by("example", maintain_order=True)
        .agg(pl.col("option").head(LIMIT), pl.col("score").head(LIMIT))
        .iter_rows()
    )
    write_json_list(path, rankings)
