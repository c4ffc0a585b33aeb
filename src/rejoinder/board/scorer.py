"""The scorer: a process of its own that reads truths and runs, so that no file can take the server down with it.

It reads one request a line and answers each with one line; it ends when its input does. A mistake in a run is an
`error`, one in a truth a `fault`; whatever else goes wrong ends the process, and the server starts another.
"""

import base64
import gzip
import math
import os
import resource
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import replace

from rejoinder.board.vectors import choose_online, pack, pack_chosen, unpack, unpack_chosen
from rejoinder.comparison import Comparison, MeasureComparison, Settings, compare
from rejoinder.errors import UserError
from rejoinder.files import BadInputError, open_binary, printable
from rejoinder.measures.measure import Floats, Measure, Scores
from rejoinder.measures.scoring import Run, default_names, find_measure, read_run, score_run
from rejoinder.report.output import write_comparison
from rejoinder.report.tables import Table, correlation_table, significance_table
from rejoinder.runs.selection import SelectionRun
from rejoinder.statistics import mean_intervals
from rejoinder.tasks.judgement import JudgementTruth
from rejoinder.tasks.selection import SelectionTruth
from rejoinder.tasks.truth import Truth, read_truth

MOST_PACKED = 200
"""How many times its size a gzipped run may unpack to: JSON of one and the same distribution comes near to 100."""
SMALL = 16 << 20
"""Bytes that any gzipped run may unpack to."""
MOST_ROWS = 20_000_000
"""Of a Parquet run: a few packed kilobytes can claim to be billions."""
ONLINE = Settings(trials=2_000, resamples=1_000)
"""For what is computed anew with every run; a run's page and the leaderboard so show the same interval."""
MOST_PAIRS = 200
"""Rows of a significance table on a page: 150 runs have 8,000, which would take a second to show to each visitor."""
LONGEST_ERROR = 1000
"""Letters of what is said against a run: a message may quote from the file, where a name can be of megabytes."""


class Files(msgspec.Struct, frozen=True):
    """What a track is scored against."""

    truth: str
    options: str | None = None
    entities: str | None = None


class Describe(msgspec.Struct, frozen=True, tag="describe"):
    """Read a new track's truth and score the baselines."""

    files: Files
    measures: list[str]
    baselines: list[str]
    share: float
    secret: str


class Score(msgspec.Struct, frozen=True, tag="score"):
    """Check and score a run."""

    files: Files
    measures: list[str]
    online: bytes
    run: str
    name: str
    most_bytes: int


class Row(msgspec.Struct, frozen=True):
    """A run's scores in a comparison."""

    name: str
    content: bytes
    measures: list[str] | None = None
    """Only these of them; None: all."""


class Compare(msgspec.Struct, frozen=True, tag="compare"):
    """Compare runs; where `out` is given, thoroughly and with all reports."""

    title: str
    measures: list[dict[str, Any]]
    rows: list[Row]
    digits: int
    """What is written is rounded to; it is for everybody."""
    out: str | None = None


Request = Describe | Score | Compare


@lru_cache(maxsize=8)
def _truth(files: Files) -> Truth:
    paths = (None if path is None else Path(path) for path in (files.options, files.entities))
    return read_truth(Path(files.truth), None, *paths)


def describe(request: Describe) -> dict[str, Any]:
    """Return what the board needs to know of a truth."""
    truth = _truth(request.files)
    names = list(dict.fromkeys(request.measures)) or default_names(truth)
    measures = [find_measure(name, truth) for name in names]
    online = choose_online(truth.ids.to_list(), request.share, request.secret)
    return {
        "examples": len(truth.ids),
        "online": pack_chosen(online),
        "measures": [
            {"name": m.name, "sentence": m.sentence, "citation": m.citation, "higher": m.higher_is_better}
            for m in measures
        ],
        "baselines": {
            run.name: {"online": pack(score_run(run, truth, names, chosen=online)), "whole": pack(scores)}
            for run in _baselines(truth, request.baselines)
            if (scores := score_run(run, truth, names))
        },
    }


def _baselines(truth: Truth, wanted: list[str]) -> Sequence[Run]:
    if isinstance(truth, JudgementTruth):
        from rejoinder.systems.baselines import judge_by_popularity, judge_uniformly  # scipy, which scoring needs not

        judges = {"uniform": judge_uniformly, "popularity": judge_by_popularity}
        return [judge(truth) for name, judge in judges.items() if name in wanted]
    # a pool of thousands has no ranking by chance that is worth a row
    return [_rank_uniformly(truth)] if "uniform" in wanted and truth.options is not None else []


def _rank_uniformly(truth: SelectionTruth) -> SelectionRun:
    """Rank each example's options at random, all with the same confidence."""
    assert truth.options is not None
    shuffled = truth.options.sample(fraction=1, shuffle=True, seed=0).sort("example", maintain_order=True)
    return SelectionRun("uniform", shuffled.with_columns(score=pl.lit(1.0)))


def score(request: Score) -> dict[str, Any]:
    """Return a run's online means with intervals, and its scores by example."""
    truth = _truth(request.files)
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder) / Path(request.run).name
        try:
            path = _unpack(Path(request.run), unpacked, request.most_bytes)
            run = read_run(path, truth)
            scores = score_run(run, truth, request.measures)
        except UserError as error:
            return {"error": _named(error, request.name, (unpacked, Path(request.run)))}
    if not scores:
        return {"error": f"{request.name}: answers nothing that {', '.join(request.measures)} could score"}
    if not all(np.isfinite(values).all() for values in scores.values()):
        return {"error": f"{request.name}: its numbers are too large to be scored"}
    online = score_run(run, truth, request.measures, chosen=unpack_chosen(request.online, len(truth.ids)))
    return {"means": _means(online), "online": pack(online), "whole": pack(scores)}


def _unpack(path: Path, unpacked: Path, most: int) -> Path:
    """Decompress a gzip file, but not without end; look how much a Parquet table claims to hold."""
    most = min(most, max(SMALL, path.stat().st_size * MOST_PACKED))
    with open_binary(path) as file:
        if isinstance(file, gzip.GzipFile):
            with unpacked.open("wb") as copy:
                while chunk := file.read(1 << 20):
                    copy.write(chunk)
                    if copy.tell() > most:
                        raise BadInputError(path, f"unpacks to more than {most:,} bytes, which is the limit")
            path = unpacked
    with path.open("rb") as plain:
        start = plain.read(4)
    if start == b"\x1f\x8b" + start[2:]:
        raise BadInputError(path, "is packed twice; expected one layer of gzip")
    if start == b"PAR1":
        with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            rows = pl.scan_parquet(path, glob=False, hive_partitioning=False).select(pl.len()).collect().item()
            if rows > MOST_ROWS:
                raise BadInputError(path, f"{rows:,} rows; expected at most {MOST_ROWS:,}")
    return path


def _named(error: UserError, name: str, paths: tuple[Path, ...]) -> str:
    """Return what is wrong, with the name that the file had where it came from."""
    text = str(error)
    for path in paths:
        text = text.replace(str(path), name)
    return printable(text.replace(paths[0].name, name)[:LONGEST_ERROR])


def _means(scores: Mapping[str, Floats]) -> dict[str, dict[str, float | None]]:
    rows = np.array(list(scores.values()))
    low, high = (np.clip(end, 0, 1) for end in mean_intervals(rows, resamples=ONLINE.resamples, seed=ONLINE.seed))
    return {
        name: {"score": float(rows[place].mean()), "low": _end(low[place]), "high": _end(high[place])}
        for place, name in enumerate(scores)
    }


def _end(value: float) -> float | None:
    """Return an interval's end as databases and JSON can hold it, which know no NaN."""
    return None if math.isnan(value) else float(value)


def compare_rows(request: Compare) -> dict[str, Any]:
    """Return the comparison of the rows by every measure, and write the reports if asked for."""
    scores = [matrix for measure in request.measures if (matrix := _matrix(measure, request.rows))]
    if not scores:
        return {"measures": []}
    settings = Settings() if request.out else ONLINE
    comparison = _public(compare(scores, request.title, settings), request.digits)
    if request.out is None:
        return _standings(comparison)
    write_comparison(comparison, Path(request.out))
    return {**_standings(comparison), **_tables(comparison)}


def _public(comparison: Comparison, digits: int) -> Comparison:
    """Return what everybody may know of it: rounded figures, in their order, and nothing by example."""

    def rounded(by: MeasureComparison) -> MeasureComparison:
        means = _rounded(by.scores.means, digits)
        return replace(
            by,
            scores=replace(by.scores, values=means[:, None]),
            low=_rounded(by.low, digits),
            high=_rounded(by.high, digits),
            test=replace(by.test, means=means, effect_size=_rounded(by.test.effect_size, digits)),
        )

    return replace(comparison, measures=[rounded(by) for by in comparison.measures])


def _rounded(values: Floats, digits: int) -> Floats:
    """Round as Python does, and so as a run's page; NumPy makes .0012 of .00125, which is a little more."""
    return np.array([round(value, digits) for value in values.ravel().tolist()]).reshape(values.shape)


def _matrix(measure: dict[str, Any], rows: list[Row]) -> Scores | None:
    name = measure["name"]
    found = {}
    for row in rows:
        scores = unpack(row.content)
        if name in scores and (row.measures is None or name in row.measures):
            found[row.name] = scores[name]
    declared = Measure(name, measure["sentence"], measure["citation"], measure["higher"])
    return Scores(declared, tuple(found), np.array(list(found.values()))) if found else None


def _standings(comparison: Comparison) -> dict[str, Any]:
    return {
        "examples": comparison.examples,
        "measures": [
            {
                "name": by.measure.name,
                "rows": {
                    by.scores.runs[place]: {
                        "score": float(by.scores.means[place]),
                        "low": _end(by.low[place]),
                        "high": _end(by.high[place]),
                        "group": by.groups[place],
                        "best": by.is_best(place),
                    }
                    for place in by.order
                },
            }
            for by in comparison.measures
        ],
    }


def _tables(comparison: Comparison) -> dict[str, Any]:
    correlations = correlation_table(comparison.correlations) if comparison.correlations else None
    return {
        "signature": comparison.signature,
        "significance": [msgspec.to_builtins(_shortened(significance_table(by))) for by in comparison.measures],
        "correlations": msgspec.to_builtins(correlations),
    }


def _shortened(table: Table) -> Table:
    pairs = len(table.rows)
    if pairs <= MOST_PAIRS:
        return table
    note = f"The first {MOST_PAIRS} of {pairs:,} pairs; the report and the tables to take along have them all."
    return replace(table, rows=table.rows[:MOST_PAIRS], note=note)


def answer(line: bytes) -> dict[str, Any]:
    """Answer one request."""
    request = msgspec.msgpack.decode(base64.b64decode(line), type=Request)
    try:
        if isinstance(request, Describe):
            return describe(request)
        return score(request) if isinstance(request, Score) else compare_rows(request)
    except UserError as error:
        # of the truth, not of the run: for organisers only
        return {"fault": str(error)}


def main() -> None:
    """Answer requests until there are no more."""
    if memory := int(sys.argv[1]):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not be taken for an answer
    try:
        for line in sys.stdin.buffer:
            answers.write(base64.b64encode(msgspec.msgpack.encode(answer(line))) + b"\n")
            answers.flush()
    except (MemoryError, BrokenPipeError):
        os._exit(1)  # too large a run, or a server that is gone: nothing to tell


if __name__ == "__main__":
    main()
