"""Supervised embeddings (Dodge et al. 2016, section 3.2): contexts and options as sums of symbols' learned vectors."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import torch

from rejoinder.corpora.dictionary import Dictionary, build_dictionary
from rejoinder.corpora.entities import Parsed
from rejoinder.corpora.ragged import Ints, Ragged, group
from rejoinder.errors import expect_least
from rejoinder.files import read_parquet, write_atomically
from rejoinder.nn.embeddings import Embeddings as Bags
from rejoinder.nn.embeddings import EmbeddingSettings, bags
from rejoinder.prepared import Training
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.film_world import FilmWorld, load_world, world_of
from rejoinder.systems.neural import Network, keep_trained, load_trained, train_networks
from rejoinder.systems.ranking import answers_of, blocks, rank_by_products
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

_WORDS = "words.parquet"
_BLOCK = 20_000


@dataclass(frozen=True)
class Settings:
    """The paper's parameters (appendix B), and those that it does not give."""

    dimension: int = 50
    dictionaries: int = 1
    """2: other vectors for what is replied than for what is said."""
    margin: float = 0.1
    negatives: int = 50
    """Wrong options drawn for each batch."""
    training: Training = field(default_factory=lambda: Training(optimizer="adagrad"))

    def __post_init__(self) -> None:
        """Refuse what nothing can be learned with; gradients are sparse, which only Adagrad takes here."""
        expect_least(self, dimension=1, dictionaries=1, margin=0, negatives=1)
        if self.dictionaries > 2:
            raise ValueError(f"dictionaries is {self.dictionaries}; expected 1 or 2")
        if self.training.optimizer != "adagrad":
            raise ValueError(f"optimizer is {self.training.optimizer}; expected adagrad")


class Embeddings(SelectionSystem):
    """Ranks options by the product of two sums of vectors."""

    Settings = Settings
    has_network = True
    world: FilmWorld
    dictionary: Dictionary
    trained: Path

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn the vectors."""
        self.world = world_of(lesson.train)
        texts = lesson.train.contexts()
        spoken = (texts[block] for block in blocks(len(texts), _BLOCK))
        self.dictionary = build_dictionary(self.world.parser, spoken)
        dev = lesson.train if lesson.dev is None else lesson.dev
        own, asked = _own_symbols(self.dictionary), self.dictionary.parse(dev.contexts())
        rows = {
            "contexts": _symbols(self.dictionary.parse(texts), own),
            "options": _symbols(self.dictionary.parse(lesson.train.options["text"]), own),
            "correct": answers_of(lesson.train),
            "dev_contexts": _symbols(asked, own),
            "dev_options": _symbols(self.dictionary.parse(dev.options["text"]), own),
            "dev_correct": answers_of(dev),
            "dev_named": self._named_rows(dev, asked),
        }
        arrays = {name: part.values for name, part in rows.items()} | {
            f"{name}_starts": part.starts for name, part in rows.items()
        }
        learner = "rejoinder.nn.embedding_learner:EmbeddingLearner"
        networks = {"embeddings": Network(self._network(own), arrays)}
        self.trained = train_networks(lesson, learner, self.settings.training, networks)["embeddings"]

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        own, asked = _own_symbols(self.dictionary), self.dictionary.parse(task.contexts())
        network = Bags(self._network(own))
        load_trained(network, self.trained)

        def laid(parsed: Parsed) -> tuple[torch.Tensor, torch.Tensor]:
            rows = _symbols(parsed, own)
            symbols, starts = bags(rows.values, rows.starts, np.arange(len(rows)))
            return torch.from_numpy(symbols), torch.from_numpy(starts)

        with torch.no_grad():
            said, replied = network(laid(asked), laid(self.dictionary.parse(task.options["text"])))
        run = rank_by_products(task, "supervised embeddings", said.numpy(), replied.numpy(), watch)
        choices = run.choices.join(self._named(asked), on=["example", "option"], how="anti", maintain_order="left")
        return msgspec.structs.replace(run, choices=choices)

    def _network(self, own: Ints) -> EmbeddingSettings:
        return EmbeddingSettings(
            symbols=len(self.dictionary) + int((own >= 0).sum()),
            dimension=self.settings.dimension,
            dictionaries=self.settings.dictionaries,
            margin=self.settings.margin,
            negatives=self.settings.negatives,
            batch=self.settings.training.batch,
        )

    def _named(self, contexts: Parsed) -> pl.DataFrame:
        """Return the entities that contexts name: with one dictionary these are nearest, and they are no answers.

        With two dictionaries this is learned (appendix A), and what is named may be an answer.
        """
        if self.settings.dictionaries > 1:
            return pl.DataFrame(schema={"example": pl.UInt32, "option": pl.String})
        parser = self.world.parser
        known = contexts.symbols < parser.symbols  # the others are words
        named = parser.members.take(contexts.symbols[known])
        owners = np.repeat(np.arange(len(contexts)), np.diff(contexts.starts))[known]
        names = pl.Series(self.world.kb.entities).gather(named.values)
        return pl.DataFrame({"example": np.repeat(owners, named.lengths).astype(np.uint32), "option": names})

    def _named_rows(self, task: SelectionTask, contexts: Parsed) -> Ragged:
        """Return the same as rows of the options."""
        rows = task.options.select(option="id").with_row_index("row")
        named = self._named(contexts).join(rows, on="option", maintain_order="left")
        return group(named["example"].to_numpy().astype(np.int64), named["row"].to_numpy(), task.examples.height)

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        self.world.save(folder)
        with write_atomically(folder / _WORDS) as file:
            pl.DataFrame({"word": self.dictionary.words}, schema={"word": pl.String}).write_parquet(file)
        keep_trained(self.trained, folder)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        self.world = load_world(folder)
        self.dictionary = Dictionary(self.world.parser, read_parquet(folder / _WORDS)["word"].to_list())
        self.trained = folder


def _own_symbols(dictionary: Dictionary) -> Ints:
    """Return a symbol for each entity that shares one with others (`Drama` and `drama`), after all others; else -1."""
    members = dictionary.parser.members
    shared = np.sort(members.values[np.repeat(members.lengths > 1, members.lengths)])
    own = np.full(len(dictionary.parser.symbol_of), -1)
    own[shared] = len(dictionary) + np.arange(len(shared))
    return own


def _symbols(parsed: Parsed, own: Ints) -> Ragged:
    """Return the symbols of texts; an entity that shares its symbol, if written exactly, adds its own."""
    symbols = np.column_stack([parsed.symbols, np.where(parsed.exact, own[parsed.entities], -1)]).ravel()
    kept = np.concatenate([[0], np.cumsum(symbols >= 0)])
    return Ragged(kept[2 * parsed.starts], symbols[symbols >= 0])
