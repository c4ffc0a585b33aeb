"""The films that a task is about: its knowledge base, and what its texts mention."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.film_table import read_films, write_films
from rejoinder.corpora.films import RELATIONS, KnowledgeBase
from rejoinder.corpora.ragged import Ints, Ragged, to_starts
from rejoinder.errors import UserError
from rejoinder.files import read_parquet, write_atomically
from rejoinder.tasks.selection import SelectionTask

Matrix = Any
"""A sparse matrix with rows in order (scipy.sparse.csr_matrix)."""
_FILMS, _ENTITIES = "films.parquet", "entities.parquet"


class FilmWorld:
    """A knowledge base with its parser; films are numbered by their titles, all of one title together."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.parser = kb, Parser(kb.entities, kb.rank)
        self.films: Ints = np.unique(kb.titles).astype(np.int64)
        """The entities that are titles."""
        self.film_of: Ints = np.full(len(kb), -1)
        """The place of each entity in `films`; -1: no title."""
        self.film_of[self.films] = np.arange(len(self.films))

    def having(self, entities: Ragged) -> Matrix:
        """Return examples x films: positive where a film has any of an example's entities as a fact."""
        shape = (len(entities), len(self.kb))
        wished = sparse.csr_matrix((np.ones(len(entities.values), np.float32), entities.values, entities.starts), shape)
        return wished @ self._facts

    @cached_property
    def _facts(self) -> Matrix:
        film = self.film_of[self.kb.titles[self.kb.film]]
        shape = (len(self.kb), len(self.films))
        return sparse.csr_matrix((np.ones(len(film), np.float32), (self.kb.value, film)), shape)

    @cached_property
    def namesakes(self) -> Ints:
        """How many films have each entity as their title."""
        return np.bincount(self.kb.titles, minlength=len(self.kb))

    @cached_property
    def agreement(self) -> Ragged:
        """For each value in the knowledge base's forward index, how many films of that title have it."""
        kb = self.kb
        rows = kb.titles[kb.film].astype(np.int64) * len(RELATIONS) + kb.relation
        facts, count = np.unique(rows * len(kb) + kb.value, return_counts=True)
        keys = kb.forward.owners() * len(kb) + kb.forward.values
        return Ragged(kb.forward.starts, count[np.searchsorted(facts, keys)].astype(np.int32))

    def rows_in(self, task: SelectionTask) -> Ints:
        """Return the row that each entity has among a task's options; -1: none."""
        options = task.options.select(name="id").with_row_index("row")
        names = pl.DataFrame({"name": self.kb.entities})
        return names.join(options, on="name", how="left", maintain_order="left")["row"].fill_null(-1).to_numpy()

    def save(self, folder: Path) -> None:
        """Write the knowledge base."""
        write_films(folder / _FILMS, self.kb)
        with write_atomically(folder / _ENTITIES) as file:
            pl.DataFrame({"name": self.kb.entities}).write_parquet(file)


def load_world(folder: Path) -> FilmWorld:
    """Read what `save` wrote."""
    return FilmWorld(KnowledgeBase(read_parquet(folder / _ENTITIES)["name"].to_list(), read_films(folder / _FILMS)))


def world_of(task: SelectionTask) -> FilmWorld:
    """Read the knowledge base that a task names."""
    if task.knowledge is None:
        raise UserError(
            "this system learns from film tasks, which name their knowledge base; see `rejoinder import mdd`"
        )
    return FilmWorld(KnowledgeBase(task.options["id"].to_list(), read_films(task.knowledge)))


def entities_of(world: FilmWorld, task: SelectionTask) -> NDArray[np.int32]:
    """Return the entity that each of a task's options is; -1: none."""
    rows = world.rows_in(task)
    entities = np.full(task.options.height, -1, np.int32)
    entities[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    return entities


def last_turns(task: SelectionTask) -> pl.Series:
    """Return the message that each example answers."""
    return task.examples["turns"].list.last().struct.field("text").fill_null("")


def mentions(world: FilmWorld, task: SelectionTask, *, own: bool, earlier: bool = False) -> Ragged:
    """Return the entities in each example's turns: the user's own, who speaks last, or the other's.

    With `earlier`, the last turn is left out.
    """
    turns = task.examples["turns"]
    sizes = turns.list.len().to_numpy().astype(np.int64)
    example = np.repeat(np.arange(len(sizes)), sizes)
    after = np.repeat(np.cumsum(sizes), sizes) - 1 - np.arange(len(example))
    kept = (after % 2 == 0 if own else after % 2 == 1) & (after >= earlier)
    texts = turns.explode(empty_as_null=False).struct.field("text").fill_null("").filter(pl.Series(kept))
    parsed = world.parser.parse(texts)
    known = parsed.entities >= 0
    owner = np.repeat(example[kept], np.diff(parsed.starts))[known]
    return Ragged(to_starts(np.bincount(owner, minlength=len(sizes))), parsed.entities[known])


def as_matrix(world: FilmWorld, entities: Ragged) -> Matrix:
    """Return examples x films: 1 where an example has the film."""
    film = world.film_of[entities.values]
    known = film >= 0
    shape = (len(entities), len(world.films))
    found = sparse.csr_matrix((np.ones(int(known.sum()), np.float32), (entities.owners()[known], film[known])), shape)
    found.data[:] = 1
    return found
