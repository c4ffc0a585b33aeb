"""Sample films: a knowledge base, ratings and discussions, in the formats of Movie Dialog, MovieLens and Reddit."""

import csv
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from itertools import chain, count, islice
from pathlib import Path

import msgspec

from rejoinder.files import write_atomically
from rejoinder.sample.films_facts import Film, real_films
from rejoinder.sample.films_invented import invent
from rejoinder.sample.films_ratings import Rating, ratings
from rejoinder.sample.films_threads import Comment, threads

__all__ = ["Comment", "Film", "Rating", "films", "ratings", "threads", "write"]

USERS_PER_FILM, COMMENTS_PER_FILM = 4, 20
MOVIELENS_GENRES = {
    "Family": "Children",
    "Music": "Musical",
    "History": "Drama",
    "Biography": "Drama",
    "Sport": "Drama",
}
ARTICLES = ("The", "A", "An")


def films(size: int, seed: int) -> Iterator[Film]:
    """Yield the packaged real films, then invented ones; no two have the same title."""
    return islice(chain(real_films(), (invent(index, seed) for index in count())), size)


def knowledge(film: Film) -> str:
    """Return a film's block of `movie_kb.txt`, with the empty line that ends it."""
    facts = [(relation, ", ".join(values)) for relation, values in film.facts()]
    facts.append(("has_plot", film.plot))
    lines = [f"{number} {film.title} {relation} {value}\n" for number, (relation, value) in enumerate(facts, 1)]
    return "".join(lines) + "\n"


def entities(known: Iterable[Film]) -> Iterator[str]:
    """Yield every title, person, year, genre, tag and other value once."""
    seen: set[str] = set()
    for film in known:
        values = (value for _, values in film.facts() for value in values)
        fresh = [entity for entity in dict.fromkeys((film.title, *values)) if entity not in seen]
        # titles never come again, so remembering the other, bounded, vocabulary is enough
        seen.update(entity for entity in fresh if entity != film.title)
        yield from fresh


def movielens_title(film: Film) -> str:
    """Return the title with its article at the end, and the year, as MovieLens writes it."""
    article, _, rest = film.title.partition(" ")
    return f"{rest}, {article} ({film.year})" if rest and article in ARTICLES else f"{film.title} ({film.year})"


def csv_line(*fields: object) -> str:
    """Return one line of CSV, quoted where needed."""
    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow(fields)
    return line.getvalue()


def movie_lines(known: Iterable[Film]) -> Iterator[str]:
    """Yield the lines of `movies.csv`."""
    yield "movieId,title,genres\n"
    for number, film in enumerate(known, 1):
        genres = dict.fromkeys(MOVIELENS_GENRES.get(genre, genre) for genre in film.genres)
        yield csv_line(number, movielens_title(film), "|".join(genres))


def rating_lines(given: Iterable[Rating]) -> Iterator[str]:
    """Yield the lines of `ratings.csv`."""
    yield "userId,movieId,rating,timestamp\n"
    for one in given:
        yield f"{one.user},{one.film},{one.stars},{one.timestamp}\n"


def write(out: Path, size: int, seed: int) -> None:
    """Write movie_kb.txt, entities.txt, movies.csv, ratings.csv and threads.jsonl about `size` films.

    There are 4 users with about 50 ratings each, and 20 comments, per film; only the first 20,000 films are rated and
    discussed, so that memory stays bounded while files grow.
    """
    encode = msgspec.json.encode
    parts: dict[str, Callable[[Iterator[Film]], Iterator[str]]] = {
        "movie_kb.txt": lambda known: map(knowledge, known),
        "entities.txt": lambda known: (f"{entity}\n" for entity in entities(known)),
        "movies.csv": movie_lines,
        "ratings.csv": lambda known: rating_lines(ratings(known, USERS_PER_FILM * size, seed)),
        "threads.jsonl": lambda known: (
            f"{encode(comment).decode()}\n" for comment in threads(known, COMMENTS_PER_FILM * size, seed)
        ),
    }
    for name, lines in parts.items():
        with write_atomically(out / name) as file:
            file.writelines(line.encode() for line in lines(films(size, seed)))
