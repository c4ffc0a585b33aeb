"""Film systems on Movie Dialog's official development sets: tables 6, 8, 9 and 10 of Dodge et al. (2016) beside ours.

Training data is generated (`rejoinder build movies`) from the official knowledge base, MetaQA's annotated questions,
MovieLens latest-small and ReDial, all found through REJOINDER_DATA (default ../shared/data); the questions of the
official development set are kept out of it. Discussions have no official file here: they are scored on ReDial's.

Data and models are kept below REJOINDER_FILMS where that is set, and used again: remove a model to train it anew.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import polars as pl

from benchmarks.measuring import PYTHON, ROOT, run
from benchmarks.results import Goal, Section, Table, seconds
from rejoinder.model import Assignment, predict, train_model
from rejoinder.model import load_model as load
from rejoinder.published import find
from rejoinder.recipe import read_recipe
from rejoinder.sample import films
from rejoinder.tasks.selection import SelectionTask, load_selection_task

REJOINDER = Path(PYTHON).parent / "rejoinder"
RECS, DIALOGUES, JOINT = 100_000, 50_000, 100_000
QUESTIONS_AIM, EMBEDDINGS_AIM = 97.0, 50.9
OVER_SVD, OVER_POPULARITY = 1.2, 1.7
SYSTEMS = {
    1: ("films-questions", "films-embeddings-questions"),
    2: ("films-popularity", "films-svd", "films-ease", "films-tastes", "films-embeddings-recommendations"),
    3: ("films-guide", "films-embeddings-dialogues"),
    4: ("films-ir", "films-ir-context", "films-ir-feedback", "films-ir-message", "films-embeddings-talk"),
}
TOGETHER = "films-embeddings-joint"
"""Learns from task 5, and is asked all four others (table 6's joint rows)."""
MAIN = {"qa": (1, 1), "recs": (2, 100), "qa_recs": (3, 10), "reddit": (4, 10)}
"""The tasks as the paper's table 6 calls them, and how many choices count there."""


class Result(NamedTuple):
    """A system's hits on one task, an example a row, and how long it took to learn and to answer."""

    recipe: str
    hits: pl.DataFrame
    learning: float
    answering: float

    def share(self, k: int, **only: object) -> float:
        rows = self.hits.filter(*(pl.col(name) == value for name, value in only.items()))
        return 100 * float(rows[f"hits@{k}"].mean() or 0)  # type: ignore[arg-type]


def measure(quick: bool) -> Section:
    kept = None if quick else os.environ.get("REJOINDER_FILMS")
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        where, official = build(folder, quick)
        results = {
            number: [learn(recipe, number, number, folder, official) for recipe in recipes]
            for number, recipes in SYSTEMS.items()
        }
        for number, found in results.items():
            found.append(learn(TOGETHER, 5, number, folder, official))
    note = f"The paper's are hits on its test sets, ours on the development sets. Learned from {where}."
    main = ("system", *(f"{task}, hits@{k}" for task, (_, k) in MAIN.items()))
    classes = ("class", "paper: QA system", "paper: embeddings", "paper: MemN2N", *(r.recipe for r in results[1]))
    responses = ("system", "all", "1: recommendation", "2: question", "3: similar")
    talk = ("system", "all", "entities match", "response 1", "2", "3 and more")
    took = ("system", "asked", "learning", "answering")
    tables = [
        Table("Hits on all tasks, in percent (table 6)", main, list(main_rows(results)), [note]),
        Table("Questions by class, hits@1 / hits@10 (table 8)", classes, list(class_rows(results[1]))),
        Table("Dialogues by response, hits@10 (table 9)", responses, list(response_rows(results[3]))),
        Table("Discussions by response, hits@10 (table 10; ours: ReDial's)", talk, list(talk_rows(results[4]))),
        Table("Time to learn, and to answer", took, list(time_rows(results))),
    ]
    return Section("Films: systems", tables, [] if quick else list(goals(results)))


def build(folder: Path, quick: bool) -> tuple[str, Path]:
    """Generate the training data, and import the official files; without these, generated ones take their place."""
    data = Path(os.environ.get("REJOINDER_DATA", ROOT.parent / "shared" / "data")) / "movies"
    real = not quick and (data / "mdd").is_dir()
    if real:
        dev = [data / "mdd" / f"task{name}_dev.txt.gz" for name in ("1_qa", "2_recs", "3_qarecs")]
        kb = data / "mdd" / "movie_kb.txt.gz"
        sources: list[str | Path] = ["--ratings", data / "ml-latest-small" / "ratings.csv.gz"]
        sources += ["--questions", data / "metaqa" / "1-hop_dev.txt.gz"]
        sources += ["--threads", data / "redial" / "test_data.jsonl.gz"]
        sources += [part for file in dev for part in ("--official", file)]
        sizes = {"recs": RECS, "dialogue": DIALOGUES, "joint": JOINT, "eval": 5_000}
    else:
        films.write(folder / "world", 60, 0)
        kb = folder / "world" / "movie_kb.txt"
        sources = ["--ratings", folder / "world" / "ratings.csv", "--threads", folder / "world" / "threads.jsonl"]
        sizes = {"qa": 200, "recs": 200, "dialogue": 100, "talk": 200, "joint": 40, "eval": 40}
        sources += ["--candidates", "50"]
    options = [part for name, size in sizes.items() for part in (f"--{name}-size", str(size))]
    if not (folder / "movies").is_dir():
        run([REJOINDER, "build", "movies", "--kb", kb, *sources, *options, "--out", folder / "movies"])
    if not real:
        return "a generated world", folder / "movies"
    if not (folder / "mdd").is_dir():
        run([REJOINDER, "import", "mdd", *dev, "--kb", kb, "--out", folder / "mdd"])
    said = f"96,000 generated questions, {RECS:,} recommendations and {DIALOGUES:,} dialogues"
    joint = load_selection_task(folder / "movies" / "task_5" / "train").examples.height
    data = "(MetaQA's wording, MovieLens latest-small), and ReDial's discussions"
    return f"{said} {data}; the joint systems from {joint:,} exchanges of these", folder / "mdd"


def learn(recipe: str, taught: int, number: int, folder: Path, official: Path) -> Result:
    """Train a model on one task, unless there is one, and let it answer the same or another one."""
    own, model = folder / "movies" / f"task_{taught}", folder / f"{recipe}.model"
    asked = official / f"task_{number}" / "dev"
    asked = asked if asked.is_dir() else folder / "movies" / f"task_{number}" / "test"
    clock = folder / f"{recipe}.seconds"
    if not model.is_dir():
        train, dev = ((own / split, load_selection_task(own / split)) for split in ("train", "dev"))
        start = time.perf_counter()
        train_model(Assignment(recipe=read_recipe(recipe), train=train, dev=dev), model)
        clock.write_text(str(time.perf_counter() - start))
    task = load_selection_task(asked)
    start = time.perf_counter()
    answers = predict(*load(model), asked, task)
    took = time.perf_counter() - start
    return Result(recipe, hits(task, answers.choices), float(clock.read_text()), took)


def hits(task: SelectionTask, choices: pl.DataFrame) -> pl.DataFrame:
    """Say of each example whether a correct option is among the first 1, 10 and 100."""
    right = (
        choices.with_columns(rank=pl.int_range(pl.len()).over("example"))
        .join(task.truth().correct, on=["example", "option"], how="semi")
        .group_by("example").agg(pl.col("rank").min())
    )  # fmt: skip
    numbers = pl.DataFrame({"example": pl.int_range(task.examples.height, dtype=pl.UInt32, eager=True)})
    ranks = numbers.join(right, on="example", how="left", maintain_order="left")["rank"]
    found = pl.DataFrame({f"hits@{k}": (ranks < k).fill_null(False) for k in (1, 10, 100)})
    return found if task.groups is None else found.hstack(task.groups)


def main_rows(results: dict[int, list[Result]]) -> Iterator[list[str]]:
    rows: dict[str, dict[str, str]] = {}
    for row in find("moviedialog", "results").rows():
        rows.setdefault(f"paper: {row['method']}", {})[row["task"]] = row["value"]
    for task, (number, k) in MAIN.items():
        for result in results[number]:
            rows.setdefault(result.recipe, {})[task] = f"{result.share(k):.1f}"
    for name, values in rows.items():
        if any(values.values()):
            yield [name, *(values.get(task, "") for task in MAIN)]


def time_rows(results: dict[int, list[Result]]) -> Iterator[list[str]]:
    for number, found in results.items():
        for result in found:
            yield [result.recipe, f"task {number}", seconds(result.learning), seconds(result.answering)]


def class_rows(results: Sequence[Result]) -> Iterator[list[str]]:
    paper: dict[str, list[str]] = {}
    for row in find("moviedialog", "qa_by_type").rows():
        paper.setdefault(row["question_type"], []).append(f"{row['hits_1']} / {row['hits_10']}")
    for name, values in paper.items():
        only = {} if name == "total" else {"question": name}
        yield [name, *values, *(f"{r.share(1, **only):.1f} / {r.share(10, **only):.1f}" for r in results)]


def response_rows(results: Sequence[Result]) -> Iterator[list[str]]:
    for row in find("moviedialog", "qa_recs_by_response").rows():
        method, *values = row.values()
        yield [f"paper: {method}", *values]
    for result in results:
        yield [result.recipe, f"{result.share(10):.1f}", *(f"{result.share(10, response=n):.1f}" for n in (1, 2, 3))]


def talk_rows(results: Sequence[Result]) -> Iterator[list[str]]:
    for row in find("moviedialog", "reddit_by_response").rows():
        method, *values = row.values()
        yield [f"paper: {method}", *values]
    for result in results:
        shares = [result.share(10), result.share(10, entities="matched")]
        shares += [result.share(10, response=number) for number in (1, 2, 3)]
        yield [result.recipe, *(f"{share:.1f}" for share in shares)]


def goals(results: dict[int, list[Result]]) -> Iterator[Goal]:
    by_name = {result.recipe: result for found in results.values() for result in found}
    questions = by_name["films-questions"].share(1)
    yield Goal(f"questions about films: hits@1 of {QUESTIONS_AIM}", f"{questions:.1f}", questions >= QUESTIONS_AIM)
    learned = by_name["films-embeddings-questions"].share(1)
    aim = f"supervised embeddings on questions: hits@1 of {EMBEDDINGS_AIM}"
    yield Goal(aim, f"{learned:.1f}", learned >= EMBEDDINGS_AIM)
    tastes = by_name["films-tastes"].share(100)
    for name, aim in (("films-svd", OVER_SVD), ("films-popularity", OVER_POPULARITY)):
        times = tastes / max(by_name[name].share(100), 1e-9)
        yield Goal(f"films-tastes over {name}: {aim} times the hits@100", f"{times:.2f}", times >= aim)
