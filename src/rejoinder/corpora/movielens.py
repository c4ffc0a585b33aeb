"""MovieLens: ratings and tags, of any release (`ratings.csv`, `ratings.dat`), tied to the films of a knowledge base."""

import re
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from rejoinder.corpora.films import RELATIONS, Film, KnowledgeBase
from rejoinder.corpora.ragged import Ints, Ragged, group
from rejoinder.files import BadInputError, is_gzip, open_binary

FULL = 5.0
"""The rating of a film that is liked (section 2.2)."""
FEWEST_RATINGS = 2

_TITLE = re.compile(r"(.*?)\s*(?:\((\d{4})(?:[-–]\d*)?\))?\s*", re.DOTALL)
_OTHER = re.compile(r"(.*?)\s*\((?:a\.k\.a\.\s*)?([^()]*)\)\s*")
_ARTICLE = re.compile(r"(.*), (The|A|An|Le|La|Les|L'|Il|Lo|El|Los|Las|Der|Die|Das|Un|Une|Det|Den|I)")


def spellings(title: str) -> tuple[list[str], str | None]:
    """Return the names in a MovieLens title, articles in their place, and its year.

    `City of Lost Children, The (Cité des enfants perdus, La) (1995)` has two names.
    """
    name, year = _TITLE.fullmatch(title.strip()).groups()  # type: ignore[union-attr]
    names = [name]
    while matched := _OTHER.fullmatch(names[0]):
        names[:1] = [matched[1], matched[2]]
    return [_with_article(one) for one in (*names[:1], name, *names[1:]) if one], year


def _with_article(name: str) -> str:
    moved = _ARTICLE.fullmatch(name)
    if not moved:
        return name
    return f"{moved[2]}{moved[1]}" if moved[2].endswith("'") else f"{moved[2]} {moved[1]}"


def tie_films(kb: KnowledgeBase, titles: Sequence[str]) -> Ints:
    """Return the film of the knowledge base that each MovieLens title means; -1: none.

    A film of the same name and year; else the only film of that name whose year is a year off at most, or not known.
    """
    year = RELATIONS.index("release_year")
    known: dict[str, list[tuple[int, str]]] = {}
    for film, number in enumerate(kb.titles.tolist()):
        own = kb.by_film[film * len(RELATIONS) + year]
        known.setdefault(_plain(kb.entities[number]), []).append((film, kb.entities[own[0]] if len(own) else ""))
    return np.array([_find(known, *spellings(title)) for title in titles], np.int64)


def _plain(name: str) -> str:
    return " ".join(re.findall(r"\w+", name.lower().replace("&", "and")))


def _find(known: dict[str, list[tuple[int, str]]], names: list[str], year: str | None) -> int:
    films = [film for name in names for film in known.get(_plain(name), [])]
    same = [film for film, made in films if made == year]
    near = [film for film, made in films if not made.isdecimal() or year is None or abs(int(made) - int(year)) <= 1]
    found = same or near
    return found[0] if same or len(set(near)) == 1 else -1


def beside(ratings: Path, name: str) -> Path:
    """Return the file of this name that belongs to a ratings file: `movies.csv` to `ratings.csv`, or to any other."""
    if "ratings" in ratings.name:
        return ratings.with_name(ratings.name.replace("ratings", name))
    return ratings.with_name(name + "".join(ratings.suffixes[-2 if ratings.suffix == ".gz" else -1 :]))


def read_movies(path: Path) -> pl.DataFrame:
    """Read `movies.csv` or `movies.dat`: columns movie, title."""
    if ".dat" in path.suffixes:
        with open_binary(path) as file:
            rows = [line.decode("utf-8" if _is_utf8(line) else "latin-1").split("::") for line in file if line.strip()]
        wrong = next((number for number, row in enumerate(rows, 1) if len(row) != 3 or not row[0].isdecimal()), None)
        if wrong:
            raise BadInputError(path, "expected number::title::genres", f"line {wrong}")
        return pl.DataFrame({"movie": [int(row[0]) for row in rows], "title": [row[1] for row in rows]})
    table = _collect(path, _scan(path, {"movieId": pl.Int64, "title": pl.String}))
    return table.rename({"movieId": "movie"}).drop_nulls()


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _scan(path: Path, columns: Mapping[str, type[pl.DataType]]) -> pl.LazyFrame:
    """Return columns of a CSV file, or of a `.dat` file, whose separator `::` leaves an empty column in between."""
    with open_binary(path) as file:
        source = BytesIO(file.read()) if is_gzip(path) else path
    dat = ".dat" in path.suffixes
    separator, quote = (":", None) if dat else (",", '"')
    table = pl.scan_csv(source, separator=separator, quote_char=quote, has_header=not dat, infer_schema=False)
    try:
        names = table.collect_schema().names()
    except pl.exceptions.PolarsError as error:
        raise BadInputError(path, f"not a table ({str(error).splitlines()[0]})") from None
    chosen = dict(zip(columns, names[::2], strict=False)) if dat else {name: name for name in columns}
    missing = next((name for name in columns if chosen.get(name) not in names), None)
    if missing:
        raise BadInputError(path, f"no such column; found {', '.join(names)}", field=missing)
    return table.select(pl.col(chosen[name]).cast(kind).alias(name) for name, kind in columns.items())


def _collect(path: Path, table: pl.LazyFrame) -> pl.DataFrame:
    try:
        return table.collect(engine="streaming")
    except pl.exceptions.PolarsError as error:
        raise BadInputError(path, str(error).splitlines()[0]) from None


def read_likes(path: Path, kb: KnowledgeBase, movies: Path | None = None) -> Ragged:
    """Return the titles that each user gave five stars, of films in the knowledge base with two ratings or more.

    The films are in `movies.csv` or `movies.dat`, beside the ratings unless given. Users who like fewer than two are
    left out.
    """
    films = read_movies(movies or beside(path, "movies"))
    film = tie_films(kb, films["title"].to_list())
    title = pl.Series(np.where(film >= 0, kb.titles[film], -1), dtype=pl.Int32)
    tied = films.select("movie", title=title).filter(pl.col("title") >= 0)
    columns = {"userId": pl.Int64, "movieId": pl.Int64, "rating": pl.Float64}
    ratings = _scan(path, columns).rename({"userId": "user", "movieId": "movie"})
    rated = ratings.join(tied.lazy(), on="movie")
    known = rated.group_by("title").len().filter(pl.col("len") >= FEWEST_RATINGS)
    full = rated.filter(pl.col("rating") == FULL).join(known, on="title", how="semi")
    likes = _collect(path, full.select("user", "title").unique()).filter(pl.len().over("user") > 1)
    likes = likes.sort("user", "title")
    if not likes.height:
        raise BadInputError(path, "no user gave five stars to two films of the knowledge base")
    number = likes["user"].rank("dense").to_numpy().astype(np.int64) - 1
    return group(number, likes["title"].to_numpy(), int(number[-1]) + 1)


def read_tags(path: Path, kb: KnowledgeBase, movies: Path | None = None) -> dict[int, tuple[str, ...]]:
    """Return the tags that people gave to films of the knowledge base, in lower case."""
    films = read_movies(movies or path.with_name(path.name.replace("tags", "movies")))
    tied = films.select("movie", film=pl.Series(tie_films(kb, films["title"].to_list()))).filter(pl.col("film") >= 0)
    table = _scan(path, {"userId": pl.Int64, "movieId": pl.Int64, "tag": pl.String})
    tags = _collect(path, table.join(tied.lazy(), left_on="movieId", right_on="movie"))
    plain = tags.select("film", tag=pl.col("tag").str.to_lowercase().str.strip_chars()).filter(pl.col("tag") != "")
    found = plain.unique().sort("film", "tag").group_by("film", maintain_order=True).agg("tag")
    return {film: tuple(given) for film, given in found.iter_rows()}


def with_tags(kb: KnowledgeBase, tags: dict[int, tuple[str, ...]]) -> KnowledgeBase:
    """Return the knowledge base with more tags (section 2.1)."""

    def films() -> Iterator[Film]:
        for number, (title, facts) in enumerate(kb.films()):
            more = dict.fromkeys((*facts.get("has_tags", ()), *tags.get(number, ())))
            yield title, facts | ({"has_tags": tuple(more)} if more else {})

    return KnowledgeBase(kb.entities, films())
