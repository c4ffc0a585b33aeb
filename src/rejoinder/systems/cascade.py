"""A cascade for large pools (DSTC7, subtask 2): find options by words and by meaning, weigh both, rank the best anew.

rejoinder train cascade --task ubuntu/subtask_2 --out cascade.model
"""

from pathlib import Path

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.arrays import read_shaped, write_arrays
from rejoinder.errors import UserError, expect_least
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.index import Index
from rejoinder.systems.ranking import (
    KEPT,
    Pairs,
    draw_lists,
    first_best,
    join_pairs,
    narrowed,
    offered,
    pair_products,
    pools,
    same_columns,
)
from rejoinder.systems.retrieval import Bm25, said_already
from rejoinder.systems.role import Role
from rejoinder.systems.sentence_encoder import Encoder
from rejoinder.systems.stacking import is_correct, learn_order, scale_of, starts_of, strengths, with_shares
from rejoinder.systems.system import Lesson, SelectionSystem, expect_no_none
from rejoinder.systems.turns import Turns, turns_of
from rejoinder.systems.voice import Marks, Voice, marks_of
from rejoinder.systems.words import count_words
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float64]

_WEIGHTS, _INDEX = "weights.npz", "index"
FEATURES = 7
"""What is known of each candidate: by words, by meaning, and its looks."""
_SEARCHES, _LISTS = 1_000, 4_000
"""Examples whose candidates are held in memory together: those of a search, or lists, which may share options."""


class Texts(msgspec.Struct, frozen=True):
    """What a task's options look like in any context, by row."""

    looks: Floats
    """Whether each is a question, how long it is, and how much its words are those of a reply."""
    marks: Marks
    """How each is written."""

    @classmethod
    def of(cls, texts: pl.Series, role: Role) -> "Texts":
        """Look at texts."""
        asks, length = texts.str.contains(r"[?？]\s*$").to_numpy(), np.log1p(texts.str.len_chars().to_numpy())
        return cls(np.column_stack([asks, length, role.scores(texts)]), marks_of(texts))


class Pool(msgspec.Struct):
    """An index that holds a task's options, and where each of its rows is among them."""

    options: pl.DataFrame
    index: Index
    place: NDArray[np.intp]
    """By row of the index, the row of the task's option; -1: removed."""
    texts: Texts


class Cascade(SelectionSystem):
    """Finds by words and by meaning, then ranks by learned weights, and the best of those by other rankers."""

    class Settings(msgspec.Struct, frozen=True):
        """What it is made of."""

        encoder: str = "minilm"
        """A recipe or model that turns contexts and options into vectors."""
        rankers: dict[str, int] = {}
        """Recipes or models that rank the best anew, one after the other, and of how many each does so."""
        found: int = 200
        """Options found by words, and as many by meaning."""
        words: Bm25.Settings = Bm25.Settings()

        def __post_init__(self) -> None:
            """Refuse to look at nothing."""
            expect_least(self, found=1)
            left = None
            for name, count in self.rankers.items():
                if count < 2:
                    raise ValueError(f"rankers: {name} is to rank {count}; expected 2 or more")
                if left is not None and count > left:
                    raise ValueError(f"rankers: {name} is to rank {count} of {left}; expected no more than those")
                left = count

    words: Bm25
    voice: Voice
    role: Role
    weights: Floats
    rank_scales: Floats
    """By ranker, the scale of its scores."""
    rank_weights: Floats
    """By ranker, what all that is known of the best weighs: their features, and what each ranker up to it says."""
    index: Index
    pool: Pool | None = None

    def part_sources(self) -> tuple[str, ...]:
        """Return the encoder and the rankers."""
        return (self.settings.encoder, *self.settings.rankers)

    def dev_of_parts(self, dev: SelectionTask, seed: int) -> SelectionTask:
        """Let the parts learn from lists: rankers will never see a pool, and networks are checked on lists."""
        return draw_lists(dev, seed)

    def expect_part(self, source: str, part: SelectionSystem) -> None:
        """Refuse an encoder that has no vectors, and a ranker that says NONE, which the search would drop."""
        if source == self.settings.encoder and not part.can_encode:
            raise UserError(f"{source} has no vectors to search by; a bi-encoder or minilm has")
        expect_no_none(source, part)

    @property
    def encoder(self) -> Encoder:
        """The part that encodes."""
        encoder: Encoder = self.parts[0]
        return encoder

    def check(self, lesson: Lesson[SelectionTask]) -> None:
        """Ask for dev."""
        if lesson.dev is None:
            raise UserError("a cascade learns on dev how much words and meaning weigh: name a task by --dev")

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Index the pool, and learn on dev how much words, meaning and the rankers weigh."""
        assert lesson.dev is not None
        self.words, self.voice = Bm25(self.settings.words), Voice(None)
        self.words.fit(lesson)
        self.voice.fit(lesson)
        self.role = Role.learn(lesson.train, lesson.dev)
        self.index = Index()
        for task in (lesson.train, lesson.dev) if pools(lesson.dev) else ():
            if pools(task):
                self._add_missing(self.index, task, lesson.watch)
        rankers = len(self.settings.rankers)
        self.rank_scales, self.rank_weights = np.zeros(rankers), np.zeros((rankers, FEATURES + rankers))
        self._rank(lesson.dev, *self._candidates(lesson.dev, lesson.watch), lesson.watch, lesson.dev.truth().correct)

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        parts, size = [], _LISTS
        if pools(task):
            self._pool(task, watch)  # of the whole task: some of its examples may know but a part of the pool
            size = _SEARCHES
        for start in range(0, task.examples.height, size):
            few = msgspec.structs.replace(task, examples=task.examples.slice(start, size))
            answers = self._answer(few, watch)
            parts.append(answers.with_columns(pl.col("example") + pl.lit(start, pl.UInt32)) if start else answers)
        return SelectionRun("cascade", pl.concat(parts))

    def _answer(self, task: SelectionTask, watch: Watch) -> pl.DataFrame:
        ranked = self._rank(task, *self._candidates(task, watch), watch)
        return ranked[_best(ranked, KEPT if task.examples["options"].null_count() else len(ranked))]

    def _rank(
        self,
        task: SelectionTask,
        pairs: Pairs,
        features: Floats,
        watch: Watch,
        correct: pl.DataFrame | None = None,
    ) -> pl.DataFrame:
        """Share out by what is known of candidates, then among the best by what one ranker after the other adds to it.

        Where the correct options are told, what this weighs is learned first: the best differ by other things than all.
        """
        table = _table(task, pairs)
        if correct is not None:
            right = is_correct(table, correct)
            if not right.any():
                raise UserError("the search finds no right option of dev: set `found` higher, or name another encoder")
            self.weights = learn_order(features, pairs.example, right)
        ranked = with_shares(table, features @ self.weights)
        rows, known = np.arange(len(table)), features
        for number, (name, count) in enumerate(self.settings.rankers.items()):
            best = _best(ranked[rows], count, equals=True)
            rows, known = rows[best], known[best]
            run = self.ask(1 + number, narrowed(task, Pairs(pairs.example[rows], pairs.row[rows])), watch)
            if correct is not None:
                self.rank_scales[number] = scale_of(run)
            known = np.column_stack([known, _opinion(table[rows], run, self.rank_scales[number])])
            weights = self.rank_weights[number, : known.shape[1]]
            if correct is not None:
                right = is_correct(table[rows], correct)
                if not right.any():
                    raise UserError(
                        f"none of the best {count} on dev, which {name} is to rank, is right: let it rank more"
                    )
                weights[:] = learn_order(known, pairs.example[rows], right)
            ranked = _redistributed(ranked, with_shares(table[rows], known @ weights))
        return ranked

    def update_index(self, task: SelectionTask, watch: Watch = unwatched) -> tuple[int, int]:
        """Bring the index to what a task's pool holds; return how many options were added and removed.

        An option whose text has changed is both.
        """
        if not pools(task):
            raise UserError("this task has no pool; its examples have options of their own, which are not indexed")
        before = len(self.index)
        added = self._fit_to(self.index, task, watch)
        self.pool = None
        return added, before + added - len(self.index)

    def _candidates(self, task: SelectionTask, watch: Watch) -> tuple[Pairs, Floats]:
        """Return the options worth a look, by example, and what is known of each."""
        vectors = self.encoder.encode_contexts(task, watch)
        turns = turns_of(task)
        words = self.words.weigh_contexts(turns)
        parts: list[tuple[Pairs, Floats]] = []
        for examples, size in pools(task):
            pool = self._pool(task, watch)
            with watch("searching", len(examples)) as advance:
                for example in examples:
                    rows, scores = self._search(pool, vectors[example], words[int(example)], size)
                    parts.append((Pairs(np.full(len(rows), example), rows), scores))
                    advance(1)
        own = offered(task)
        parts.append((own, self._offered_features(task, own, vectors, words, watch)))
        pairs = join_pairs([pairs for pairs, _ in parts])
        scores = np.concatenate([scores for _, scores in parts])
        order = np.argsort(pairs.example, kind="stable")
        pairs = Pairs(pairs.example[order], pairs.row[order])
        return pairs, np.column_stack([scores[order], self._looks(task, turns, pairs)])

    def _search(
        self, pool: Pool, vector: NDArray[np.float32], words: sparse.csr_matrix, size: int
    ) -> tuple[NDArray[np.intp], Floats]:
        """Return the rows of a task's options that are found, and both products of each."""
        by_word = pool.index.word_scores(words)
        named = np.flatnonzero(by_word)
        named = named[first_best(by_word[named], pool.place[named], self.settings.found)]
        rows = np.union1d(named, pool.index.nearest(vector, self.settings.found, place=pool.place))
        rows = rows[(pool.place[rows] >= 0) & (pool.place[rows] < size)]
        rows = rows[np.argsort(pool.place[rows])]  # of equals the pool's first comes first, however the index grew
        return pool.place[rows], np.column_stack([by_word[rows], pool.index.products(vector, rows)])

    def _offered_features(
        self, task: SelectionTask, pairs: Pairs, vectors: NDArray[np.float32], words: sparse.csr_matrix, watch: Watch
    ) -> Floats:
        if not len(pairs.row):
            return np.zeros((0, 2))
        used, row = np.unique(pairs.row, return_inverse=True)
        texts = task.options["text"].gather(used).to_list()
        local = Pairs(pairs.example, row)
        weights = self.words.weigh_options(count_words(texts, self.settings.words.stem))
        by_word = pair_products(*same_columns(words, weights), local)
        return np.column_stack([by_word, pair_products(vectors, self.encoder.encode_replies(texts, watch), local)])

    def _looks(self, task: SelectionTask, turns: Turns, pairs: Pairs) -> Floats:
        """Return what options look like: said already in the context, as `Texts` has it, in the replier's voice."""
        if self.pool is not None and self.pool.options is task.options:
            place, texts = pairs.row, self.pool.texts
        else:
            used, place = np.unique(pairs.row, return_inverse=True)
            texts = Texts.of(task.options["text"].gather(used), self.role)
        voice = pair_products(self.voice.weigh_contexts(turns), texts.marks, Pairs(pairs.example, place))
        return np.column_stack([said_already(turns, task.options["text"], pairs), texts.looks[place], voice])

    def _pool(self, task: SelectionTask, watch: Watch) -> Pool:
        """Return an index of the task's options; it is kept for the next task with the same ones."""
        if self.pool is None or self.pool.options is not task.options:
            held = self.index.copy()
            self._fit_to(held, task, watch)
            rows = _pooled(task).select("id").with_row_index("place")
            place = held.options().join(rows, on="id", how="left", maintain_order="left")["place"].fill_null(-1)
            places = place.to_numpy().astype(np.intp)
            places[held.removed()] = -1
            self.pool = Pool(task.options, held, places, Texts.of(task.options["text"], self.role))
        return self.pool

    def _fit_to(self, index: Index, task: SelectionTask, watch: Watch) -> int:
        """Add what a task has and the index has not, and return how many; remove what only the index has."""
        added = self._add_missing(index, task, watch)
        gone = index.options()[index.kept()].join(_pooled(task), on="id", how="anti")["id"]
        index.remove(gone.to_list())
        return added

    def _add_missing(self, index: Index, task: SelectionTask, watch: Watch) -> int:
        """Encode and add the options that an index has not, or under another text; return how many."""
        held = index.options()[index.kept()]
        options = _pooled(task).join(held, on=["id", "text"], how="anti", maintain_order="left")
        if options.height:
            texts = options["text"].to_list()
            vectors = self.encoder.encode_replies(texts, watch)
            weights = self.words.weigh_options(count_words(texts, self.settings.words.stem))
            index.add(options, vectors, weights, instead=True)  # the text of an id may have changed
        return options.height

    def save(self, folder: Path) -> None:
        """Write the index and what was learned."""
        self.words.save(folder)
        self.voice.save(folder)
        self.role.save(folder)
        self.index.save(folder / _INDEX)
        write_arrays(
            folder / _WEIGHTS,
            {"weights": self.weights, "rank_weights": self.rank_weights, "rank_scales": self.rank_scales},
        )

    def load(self, folder: Path) -> None:
        """Map the index and read what was learned."""
        self.words, self.voice = Bm25(self.settings.words), Voice(None)
        self.words.load(folder)
        self.voice.load(folder)
        self.role = Role.load(folder)
        self.index = Index.open(folder / _INDEX)
        rankers = len(self.settings.rankers)
        shapes = {"weights": (FEATURES,), "rank_weights": (rankers, FEATURES + rankers), "rank_scales": (rankers,)}
        learned = read_shaped(folder / _WEIGHTS, shapes)
        self.weights, self.rank_weights = learned["weights"], learned["rank_weights"]
        self.rank_scales = learned["rank_scales"]


def _pooled(task: SelectionTask) -> pl.DataFrame:
    """Return the options that are in the pool; others are some example's own, and no other's."""
    return task.options.select("id", "text").head(max(size for _, size in pools(task)))


def _table(task: SelectionTask, pairs: Pairs) -> pl.DataFrame:
    return pl.DataFrame({"example": pairs.example.astype(np.uint32), "option": task.options["id"].gather(pairs.row)})


def _opinion(best: pl.DataFrame, run: SelectionRun, scale: float) -> Floats:
    """Return what a ranker thinks of the best, all of which it ranked."""
    scored = run.choices.select("example", "option", again=pl.Series(strengths(run, scale)))
    joined = best.join(scored, on=["example", "option"], how="left", maintain_order="left")
    return joined.select("again").to_numpy()


def _best(ranked: pl.DataFrame, most: int, equals: bool = False) -> NDArray[np.intp]:
    """Return the rows of each example's best options, so many of them, in their order; and those equal to the last."""
    example, score = ranked["example"].to_numpy(), ranked["score"].to_numpy()
    order = np.lexsort((-score, example))
    starts = starts_of(example[order])
    sizes = np.diff(starts, append=len(order))
    kept = np.arange(len(order)) - np.repeat(starts, sizes) < most
    if equals:  # of two options with one text either both are ranked anew, or neither
        last = score[order[starts + np.minimum(most, sizes) - 1]]
        kept |= score[order] == np.repeat(last, sizes)
    return order[kept]


def _redistributed(ranked: pl.DataFrame, again: pl.DataFrame) -> pl.DataFrame:
    """Give what the best have together to each of them as the rankers would."""
    joined = ranked.join(again.rename({"score": "part"}), on=["example", "option"], how="left", maintain_order="left")
    whole = pl.col("score").filter(pl.col("part").is_not_null()).sum().over("example")
    return joined.select("example", "option", score=(pl.col("part") * whole).fill_null(pl.col("score")))
