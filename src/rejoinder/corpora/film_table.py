"""Film metadata as a CSV or Parquet table: one film a row, several values of a column parted by `|` (or a list)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from rejoinder.corpora.films import PLOT, RELATIONS, Film, KnowledgeBase
from rejoinder.files import BadInputError, open_binary, read_parquet, read_start, write_atomically

COLUMNS = {
    "directed_by": ("directors", "director"),
    "written_by": ("writers", "writer"),
    "starred_actors": ("actors", "actor", "cast", "stars"),
    "release_year": ("year", "release_date"),
    "has_genre": ("genres", "genre"),
    "has_tags": ("tags", "tag", "keywords"),
    "in_language": ("languages", "language"),
    "has_imdb_rating": ("rating", "imdb_rating"),
    "has_imdb_votes": ("votes", "imdb_votes"),
    PLOT: ("plot", "overview"),
}
"""The columns that are read; a relation's own name will do as well."""


def read_films(path: Path) -> Iterator[Film]:
    """Yield every film; columns that are not known are passed over."""
    table = _read(path)
    lower = {name.lower().replace(" ", "_"): name for name in table.columns}
    if "title" not in lower:
        raise BadInputError(path, f"no such column; found {', '.join(table.columns)}", field="title")
    chosen = {
        relation: lower[name]
        for relation, names in COLUMNS.items()
        if (name := next((name for name in (relation, *names) if name in lower), None))
    }
    if not chosen:
        known = ", ".join(names[0] for names in COLUMNS.values())
        raise BadInputError(path, f"no column of facts; expected some of {known}")
    for number, row in enumerate(table.iter_rows(named=True), 1):
        title = str(row[lower["title"]] or "").strip()
        if not title:
            raise BadInputError(path, "is empty", f"row {number}", "title")
        facts = {relation: _values(relation, row[column]) for relation, column in chosen.items()}
        yield title, {relation: values for relation, values in facts.items() if values}


def write_films(path: Path, kb: KnowledgeBase) -> None:
    """Write a knowledge base as a Parquet table that `read_films` reads."""
    plots = dict(kb.plots.iter_rows())
    columns: dict[str, list[object]] = {"title": [kb.entities[title] for title in kb.titles.tolist()]}
    for number, relation in enumerate(RELATIONS):
        rows = kb.by_film.take(np.arange(len(kb.titles)) * len(RELATIONS) + number)
        columns[relation] = [[kb.entities[value] for value in row] for row in rows.lists()]
    columns[PLOT] = [plots.get(film) for film in range(len(kb.titles))]
    schema = {name: pl.String if name in ("title", PLOT) else pl.List(pl.String) for name in columns}
    with write_atomically(path) as file:
        pl.DataFrame(columns, schema=schema).write_parquet(file)


def _read(path: Path) -> pl.DataFrame:
    if read_start(path, 4) == b"PAR1":
        return read_parquet(path)
    with open_binary(path) as file:
        try:
            return pl.read_csv(file.read(), infer_schema=False)
        except pl.exceptions.PolarsError as error:
            raise BadInputError(path, f"not a table ({str(error).splitlines()[0]})") from None


def _values(relation: str, field: object) -> tuple[str, ...]:
    if field is None:
        return ()
    parts = field if isinstance(field, list) else [field] if relation == PLOT else str(field).split("|")
    texts = (str(part).strip() for part in parts if part is not None)
    if relation == "release_year":
        texts = (text[:4] for text in texts)  # a date begins with its year
    return tuple(dict.fromkeys(text for text in texts if text))
