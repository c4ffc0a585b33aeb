"""Reading, writing and scoring run files of 20,000 examples with 100 candidates each."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import PYTHON, Usage, clock, in_child, interleave, run_in_turn, summarise
from benchmarks.results import Section, Table, megabytes, ratio, timing
from benchmarks.scoring import MEASURES, Data, draw, to_tables
from rejoinder.runs import dstc7, parquet, read_selection_run, trec
from rejoinder.tasks.dstc7 import read_answer_key, write_answer_key
from rejoinder.tasks.trec import write_qrels

OURS = "Rejoinder"


def read_checked(submission: str, key: str) -> float:
    truth = read_answer_key(Path(key))
    return clock(lambda: read_selection_run(Path(submission), truth))[0]


def read_unchecked(submission: str) -> float:
    def load() -> Any:
        with Path(submission).open(encoding="utf-8") as file:
            return json.load(file)

    return clock(load)[0]


def dump(path: Path, records: Sequence[object]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(records, file, indent=4)


def to_records(data: Data) -> list[dict[str, object]]:
    """Return a submission as the dictionaries that a participant's own script would write."""
    records = []
    for id_, options, scores in zip(data.ids, data.options, data.scores, strict=True):
        ranked = sorted(zip(scores, options, strict=True), reverse=True)
        ranking = [{"candidate-id": option, "confidence": score} for score, option in ranked]
        records.append({"example-id": int(id_), "candidate-ranking": ranking})
    return records


def measure(quick: bool) -> Section:
    data = draw(*((200, 20) if quick else (20_000, 100)), most=1)
    repetitions = 1 if quick else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run, truth = to_tables(data)
        write_answer_key(folder / "key.tsv", truth)
        write_qrels(folder / "qrels", truth)
        trec.write(folder / "run.trec", run, truth)
        parquet.write_selection(folder / "run.parquet", run, truth)
        writing = _write(folder, data, run, truth, 1 if quick else 2)
        reading = _read(folder, repetitions)
        scoring = _score(folder, repetitions)
    size = f"{len(data.ids):,} examples x {len(data.options[0])} candidates"
    header = ("what", "time", "ratio", "megabytes a second", "peak memory of the process")
    return Section("Run files", [Table(f"A DSTC7 submission, {size}", header, [*reading, *writing], NOTES), scoring])


NOTES = (
    "Rejoinder reads into checked tables, `json.load` into dictionaries with nothing checked. What the two write is "
    "the same, byte for byte (but for a line end after the last line).",
)


def _write(folder: Path, data: Data, run: Any, truth: Any, repetitions: int) -> list[list[str]]:
    records = to_records(data)
    paths = {OURS: folder / "run.json", "`json.dump(indent=4)`": folder / "dumped.json"}
    ours, peer = paths
    calls = {ours: partial(dstc7.write, paths[ours], run, truth), peer: partial(dump, paths[peer], records)}
    timings, _ = interleave(calls, repetitions)
    if paths[ours].read_bytes().rstrip() != paths[peer].read_bytes():
        raise ValueError("Rejoinder and json.dump wrote different submissions")
    size = paths[ours].stat().st_size / 1e6
    return [
        [f"writing, {name}", timing(taken), ratio(taken.median, timings[OURS].median), f"{size / taken.median:.0f}", ""]
        for name, taken in timings.items()
    ]


def _read(folder: Path, repetitions: int) -> list[list[str]]:
    path = folder / "run.json"
    commands = {
        OURS: in_child("benchmarks.files", "read_checked", path, folder / "key.tsv"),
        "`json.load`": in_child("benchmarks.files", "read_unchecked", path),
    }
    usages = run_in_turn(commands, repetitions)
    timings = {name: summarise([float(usage.output) for usage in taken]) for name, taken in usages.items()}
    size = path.stat().st_size / 1e6
    return [
        [
            f"reading {megabytes(size)}, {name}",
            timing(taken),
            ratio(taken.median, timings[OURS].median),
            f"{size / taken.median:.0f}",
            _peak(usages[name]),
        ]
        for name, taken in timings.items()
    ]


def _peak(usages: Sequence[Usage]) -> str:
    return megabytes(max(usage.peak for usage in usages))


def _score(folder: Path, repetitions: int) -> Table:
    """Time whole commands, from the files to the printed means."""
    scripts = Path(PYTHON).parent
    score = [scripts / "rejoinder", "score"]
    options = [f"--measure={name}" for name in MEASURES]
    peer = "`ir_measures`, TREC"
    commands: Mapping[str, Sequence[str | Path]] = {
        "`rejoinder score`, DSTC7": [*score, folder / "key.tsv", folder / "run.json", *options],
        "`rejoinder score`, Parquet": [*score, folder / "key.tsv", folder / "run.parquet", *options],
        "`rejoinder score`, TREC": [*score, "--truth-format=qrels", folder / "qrels", folder / "run.trec", *options],
        peer: [scripts / "ir_measures", folder / "qrels", folder / "run.trec", *(str(m[0]) for m in MEASURES.values())],
    }
    usages = run_in_turn(commands, repetitions)
    timings = {name: summarise([usage.seconds for usage in taken]) for name, taken in usages.items()}
    rows = [
        [name, timing(taken), ratio(timings[peer].median, taken.median), _peak(usages[name])]
        for name, taken in timings.items()
    ]
    note = "`rejoinder score` also checks the run and gives every mean its interval; `ir_measures` prints means only."
    header = ("command", "time", "ratio", "peak memory")
    return Table("Whole commands, on R@1, R@10, R@50, MRR and MAP of the same run", header, rows, [note])
