"""The film knowledge base (Dodge et al. 2016, section 2.1): triples such as (Moonraker, has_tags, james bond).

kb = read_kb(Path("movie_kb.txt"), Path("entities.txt"))
kb.objects("Blade Runner", "directed_by")     # ["Ridley Scott"]
kb.subjects("Ridley Scott", "directed_by")    # ["Alien", "Blade Runner", ...]
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpora.ragged import Ints, Numbers, Ragged, group
from rejoinder.files import BadInputError, read_lines, read_start

RELATIONS = (
    "directed_by",
    "written_by",
    "starred_actors",
    "release_year",
    "has_genre",
    "has_tags",
    "in_language",
    "has_imdb_rating",
    "has_imdb_votes",
)
PLOT = "has_plot"
"""The one relation whose value is a text and no entity."""

_FACT = re.compile(rf"[1-9]\d* (.+?) ({'|'.join((*RELATIONS, PLOT))}) (.*\S)\s*")
# what an entity is, most telling first: a name that is several things is rather a film than a tag
KINDS = ("film", "directed_by", "starred_actors", "written_by", "has_genre", "in_language", "release_year", "has_tags")

Film = tuple[str, dict[str, tuple[str, ...]]]
"""A title, and the values of each relation."""


class KnowledgeBase:
    """Entities, films and facts by number: a film is one block of facts, several of which may share a title."""

    def __init__(self, entities: Sequence[str], films: Iterable[Film]) -> None:
        numbers = {name: number for number, name in enumerate(entities)}
        titles: list[int] = []
        film: list[int] = []
        relation: list[int] = []
        value: list[int] = []
        plots: list[tuple[int, str]] = []
        for title, facts in films:
            for name, values in facts.items():
                if name == PLOT:
                    plots.append((len(titles), values[0]))
                    continue
                film += [len(titles)] * len(values)
                relation += [RELATIONS.index(name)] * len(values)
                value += [numbers.setdefault(one, len(numbers)) for one in values]
            titles.append(numbers.setdefault(title, len(numbers)))
        self.numbers = numbers
        self.entities = list(numbers)
        self.titles: Numbers = np.array(titles, np.int32)
        """The entity that is the title of each film."""
        self.film: Numbers = np.array(film, np.int32)
        self.relation: NDArray[np.uint8] = np.array(relation, np.uint8)
        self.value: Numbers = np.array(value, np.int32)
        """The facts: of which film, what, and the entity."""
        self.plots = pl.DataFrame(plots, {"film": pl.Int32, "plot": pl.String}, orient="row")

    def __len__(self) -> int:
        return len(self.entities)

    @cached_property
    def forward(self) -> Ragged:
        """Rows `entity * len(RELATIONS) + relation`: the values of all films with that title."""
        return self._index(self.titles[self.film], self.value)

    @cached_property
    def backward(self) -> Ragged:
        """Rows `entity * len(RELATIONS) + relation`: the titles that have that value."""
        return self._index(self.value, self.titles[self.film])

    def _index(self, keys: Numbers, values: Numbers) -> Ragged:
        rows = keys.astype(np.int64) * len(RELATIONS) + self.relation
        _, first = np.unique(rows * len(self) + values, return_index=True)
        first.sort()  # films with one title may share a value, which counts once, in the order of the file
        return group(rows[first], values[first], len(self) * len(RELATIONS))

    @cached_property
    def by_film(self) -> Ragged:
        """Rows `film * len(RELATIONS) + relation`: the values of one film alone."""
        rows = self.film.astype(np.int64) * len(RELATIONS) + self.relation
        return group(rows, self.value, len(self.titles) * len(RELATIONS))

    @cached_property
    def rank(self) -> Ints:
        """What kind of thing each entity is, as a place in KINDS; len(KINDS) for anything else."""
        rank = np.full(len(self), len(KINDS))
        for place in range(len(KINDS) - 1, 0, -1):
            rank[self.value[self.relation == RELATIONS.index(KINDS[place])]] = place
        rank[self.titles] = 0
        return rank

    def films(self) -> Iterator[Film]:
        """Yield every film as it was given."""
        plots = dict(self.plots.iter_rows())
        starts, values = self.by_film.starts.tolist(), self.by_film.values.tolist()
        for film, title in enumerate(self.titles.tolist()):
            facts = {}
            for relation, row in zip(RELATIONS, range(film * len(RELATIONS), (film + 1) * len(RELATIONS)), strict=True):
                if starts[row] < starts[row + 1]:
                    facts[relation] = tuple(self.entities[value] for value in values[starts[row] : starts[row + 1]])
            yield self.entities[title], facts | ({PLOT: (plots[film],)} if film in plots else {})

    def objects(self, title: str, relation: str) -> list[str]:
        """Return what is known of the film or films of this title."""
        return self._names(self.forward, title, relation)

    def subjects(self, value: str, relation: str) -> list[str]:
        """Return the titles of which this is true."""
        return self._names(self.backward, value, relation)

    def _names(self, index: Ragged, name: str, relation: str) -> list[str]:
        row = self.numbers[name] * len(RELATIONS) + RELATIONS.index(relation)
        return [self.entities[number] for number in index[row].tolist()]


def read_entities(path: Path) -> list[str]:
    """Read an entity file, one name a line; a name that is listed twice is one entity."""
    names = list(dict.fromkeys(line for _, line in read_lines(path) if line))
    if not names:
        raise BadInputError(path, "holds no name; expected one a line")
    return names


def split_names(text: str, known: frozenset[str]) -> tuple[str, ...]:
    """Split at commas, but keep the longest stretch that is one known entity together ("Good Morning, Miss Dove")."""
    parts = text.split(", ")
    names = []
    while parts:
        lengths = range(len(parts), 1, -1)
        length = next((n for n in lengths if ", ".join(parts[:n]) in known), 1)
        names.append(", ".join(parts[:length]))
        parts = parts[length:]
    return tuple(dict.fromkeys(names))


def read_kb(path: Path, entities: Path | None = None) -> KnowledgeBase:
    """Read `movie_kb.txt`, or a CSV or Parquet table of films.

    Names in `movie_kb.txt` may contain commas, so that it needs the list of entities: given, or beside it.
    """
    if entities is None:
        beside = (path.with_name(f"entities.txt{ending}") for ending in ("", ".gz"))
        entities = next((file for file in beside if file.is_file()), None)
    names = [] if entities is None else read_entities(entities)
    start = read_start(path, 4096)
    if start.startswith(b"PAR1") or (b"," in start.partition(b"\n")[0] and not re.match(rb"\s*1 ", start)):
        from rejoinder.corpora.film_table import read_films

        kb = KnowledgeBase(names, read_films(path))
    else:
        kb = KnowledgeBase(names, _read_blocks(path, frozenset(names)))
    if not len(kb.titles):
        raise BadInputError(path, "holds no film")
    if entities is not None and kb.titles.min() >= len(names):
        raise BadInputError(entities, f"has none of the films of {path}")
    return kb


def _read_blocks(path: Path, known: frozenset[str]) -> Iterator[Film]:
    title, facts = None, {}
    for number, line in read_lines(path):
        matched = _FACT.fullmatch(line)
        if line.strip() and not matched:
            raise BadInputError(path, "expected a number, a title, a relation and its values", f"line {number}")
        if title is not None and (matched is None or matched[1] != title or line.startswith("1 ")):
            yield title, facts
            title, facts = None, {}
        if matched is None:
            continue
        title, relation, values = matched.groups()
        if relation in facts:
            raise BadInputError(path, f"{relation} of {title!r} is given twice", f"line {number}")
        facts[relation] = (values,) if relation == PLOT else split_names(values, known)
    if title is not None:
        yield title, facts
