"""Film tasks: parsing, memory look-up, generating a million dialogues, scoring 10,000 rankings of all entities.

The official knowledge base is found through REJOINDER_DATA (default ../shared/data): movies/mdd, and MovieLens in
movies/ml-latest-small; without them a generated world of about as many entities takes their place.
"""

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks.measuring import PYTHON, ROOT, in_child, interleave, run
from benchmarks.results import Goal, Section, Table, megabytes, ratio, seconds, timing
from rejoinder.corpora.dictionary import build_dictionary
from rejoinder.corpora.entities import Parser
from rejoinder.corpora.film_memory import FilmMemory
from rejoinder.corpora.films import KnowledgeBase, read_kb
from rejoinder.sample import films
from rejoinder.tasks.film_collection import FilmPlan, gather_sources, write_tasks
from rejoinder.tasks.selection import SelectionTask, load_selection_task

REJOINDER = Path(PYTHON).parent / "rejoinder"
PER_SECOND, LOOK_UP, BUILD, SCORE = 50_000, 0.01, 300, 10
TOP = 100


class World(NamedTuple):
    """Where the sources are, and what they are called."""

    name: str
    kb: Path
    ratings: Path


def find_world(folder: Path, quick: bool) -> World:
    data = Path(os.environ.get("REJOINDER_DATA", ROOT.parent / "shared" / "data")) / "movies"
    ratings = data / "ml-latest-small" / "ratings.csv.gz"
    if not quick and ratings.is_file():
        return World("official knowledge base and MovieLens latest-small", data / "mdd" / "movie_kb.txt.gz", ratings)
    films.write(folder, 60 if quick else 12_000, 0)
    return World("generated world", folder / "movie_kb.txt", folder / "ratings.csv")


def measure(quick: bool) -> Section:
    repetitions = 2 if quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = find_world(folder / "world", quick)
        tasks = folder / "movies"
        dialogues, questions = (100, 50) if quick else (1_000_000, 10_000)
        generated = generate(tasks, world, dialogues, questions)
        kb = read_kb(world.kb)
        texts = {f"task {n}": messages(load_selection_task(tasks / f"task_{n}" / "dev")) for n in (1, 2, 3)}
        parsed = parse(kb, texts, repetitions)
        found = [parsed, look_up(kb, texts["task 3"], repetitions), generated, score(folder, tasks / "task_1" / "dev")]
    note = f"On the {world.name}: {len(kb):,} entities."
    tables = [table._replace(notes=(note, *table.notes)) if table is parsed[0] else table for table, _ in found]
    return Section("Films: speed", tables, [goal for _, goal in found])


def messages(task: SelectionTask) -> list[str]:
    return task.examples.select(pl.col("turns").list.last().struct.field("text")).to_series().to_list()


def build(out: str, kb: str, ratings: str, dialogues: int, questions: int) -> int:
    """Build all but the third task small, and that one large."""
    sources = gather_sources(read_kb(Path(kb)), Path(ratings), None, None, None, ())
    sizes = {"questions": questions, "recommendations": questions, "evaluation": questions, "joint": 100}
    recipe = FilmPlan(dialogues=dialogues, **sizes)
    return sum(write_tasks(Path(out), sources, recipe, lambda _: None).values())


def generate(out: Path, world: World, dialogues: int, questions: int) -> tuple[Table, Goal]:
    usage = run(in_child("benchmarks.films", "build", out, world.kb, world.ratings, dialogues, questions))
    written = sum(path.stat().st_size for path in (out / "task_3").rglob("*")) / 1e6
    figures = [f"{dialogues:,}", seconds(usage.seconds), seconds(usage.processors), megabytes(usage.peak)]
    header = ("dialogues of task 3", "time", "processor time", "peak memory", "written")
    goal = Goal(f"{dialogues:,} dialogues of task 3 in {BUILD} s", figures[1], usage.seconds <= BUILD)
    return Table("Building the tasks in a process of its own, once", header, [[*figures, megabytes(written)]]), goal


def parse(kb: KnowledgeBase, texts: Mapping[str, Sequence[str]], repetitions: int) -> tuple[Table, Goal]:
    parser = Parser(kb.entities, kb.rank)
    peer = flashtext(kb.entities)
    rows, slowest = [], float("inf")
    for name, said in texts.items():
        calls: dict[str, Callable[[], Any]] = {"Rejoinder": lambda said=said: parser.parse(said)}
        if peer:
            calls["flashtext"] = lambda said=said: [peer.extract_keywords(text) for text in said]
        timings, _ = interleave(calls, repetitions)
        ours = timings["Rejoinder"]
        others = [timing(timings["flashtext"]), ratio(timings["flashtext"].median, ours.median)] if peer else ["", ""]
        used = processor(calls["Rejoinder"], repetitions)
        slowest = min(slowest, len(said) / ours.median)
        speeds = [f"{len(said) / taken:,.0f}" for taken in (ours.median, used)]
        rows.append([f"{len(said):,} messages of {name}", timing(ours), *speeds, *others])
    header = ("texts", "Rejoinder", "per second", "per second of a processor", "flashtext", "ratio")
    notes = () if peer else ("flashtext is left out: it is not installed.",)
    goal = Goal(
        f"at least {PER_SECOND:,} utterances parsed in a second",
        f"{slowest:,.0f}",
        slowest >= PER_SECOND,
    )
    return Table("Finding the longest entities", header, rows, notes), goal


def processor(call: Callable[[], Any], repetitions: int) -> float:
    """Return the least processor time of a call, which what else the machine does adds little to."""
    taken = []
    for _ in range(repetitions):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


def flashtext(names: Sequence[str]) -> Any:
    if importlib.util.find_spec("flashtext") is None:
        return None
    from flashtext import KeywordProcessor

    processor = KeywordProcessor(case_sensitive=False)
    for name in names:
        if name.strip():
            processor.add_keyword(name)
    return processor


def look_up(kb: KnowledgeBase, texts: Sequence[str], repetitions: int) -> tuple[Table, Goal]:
    dictionary = build_dictionary(Parser(kb.entities, kb.rank), [texts])
    memory = FilmMemory(kb, dictionary)
    rows = dictionary.parse(texts).rows()
    few = [rows.take(np.array([number])) for number in range(min(200, len(rows)))]
    calls: dict[str, Callable[[], Any]] = {
        "all at once": lambda: memory.look_up(rows),
        "one by one": lambda: [memory.look_up(one) for one in few],
    }
    timings, results = interleave(calls, repetitions)
    each = {"all at once": len(rows), "one by one": len(few)}
    figures = [
        [name, f"{count:,}", timing(timings[name]), seconds(timings[name].median / count)]
        for name, count in each.items()
    ]
    found = len(results["all at once"].values) / len(rows)
    notes = (f"{len(memory):,} memories; {found:.0f} found for a message on average.",)
    alone = timings["one by one"].median / len(few)
    goal = Goal(f"memories of a dialogue in {seconds(LOOK_UP)}", seconds(alone), alone <= LOOK_UP)
    return Table("Looking up memories", ("way", "messages", "time", "each"), figures, notes), goal


def score(folder: Path, task: Path) -> tuple[Table, Goal]:
    """Score a run of random choices, the best hundred of all entities for every question."""
    loaded = load_selection_task(task)
    count, top = loaded.examples.height, min(TOP, loaded.options.height)
    rng = np.random.default_rng(0)
    chosen = np.stack([rng.choice(loaded.options.height, top, replace=False) for _ in range(count)])
    table = {
        "example": np.repeat(loaded.examples["id"].to_numpy(), top),
        "option": loaded.options["id"].gather(chosen.ravel()),
        "score": np.tile(np.arange(top, 0, -1.0), count),
    }
    pl.DataFrame(table).write_parquet(folder / "run.parquet")
    hits = [part for k in (1, 10, 100) for part in ("--measure", f"hits@{k}")]
    rows, worst = [], 0.0
    for by in ((), ("--by", "question")):
        usage = run([REJOINDER, "score", task, folder / "run.parquet", *hits, *by])
        worst = max(worst, usage.seconds)
        rows.append([" ".join(by) or "whole", seconds(usage.seconds), megabytes(usage.peak)])
    goal = Goal(f"{count:,} rankings scored in {SCORE} s", seconds(worst), worst <= SCORE)
    title = f"`rejoinder score`: {count:,} questions, the best {top} of {loaded.options.height:,} entities"
    return Table(title, ("break-down", "time", "peak memory"), rows), goal
