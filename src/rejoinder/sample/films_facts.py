"""What is known about a film, and the well-known real films that come with the package."""

import csv
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import msgspec


class Film(msgspec.Struct, frozen=True):
    """The facts about one film."""

    title: str
    year: int
    directors: tuple[str, ...]
    writers: tuple[str, ...]
    actors: tuple[str, ...]
    genres: tuple[str, ...]
    tags: tuple[str, ...]
    language: str
    rating: str
    votes: str

    @property
    def plot(self) -> str:
        """One sentence on what it is about."""
        *first, last = self.tags or self.genres
        matters = f"{', '.join(first)} and {last}" if first else last
        return f"The {self.genres[0].lower()} film of {self.year} deals with {matters}."

    def facts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield (relation, values) with the names of `movie_kb.txt`; relations with no value are left out."""
        known = {
            "directed_by": self.directors,
            "written_by": self.writers,
            "starred_actors": self.actors,
            "release_year": (str(self.year),),
            "in_language": (self.language,),
            "has_genre": self.genres,
            "has_imdb_rating": (self.rating,),
            "has_imdb_votes": (self.votes,),
            "has_tags": self.tags,
        }
        return ((relation, values) for relation, values in known.items() if values)


def split(field: str) -> tuple[str, ...]:
    """Split a field of the packaged table."""
    return tuple(field.split("|"))


def from_row(row: dict[str, str]) -> Film:
    """Read one row of the packaged table; its films are all famous, and a few famously bad."""
    tags = split(row["tags"])
    rating = "bad" if "notoriously bad" in tags else "fantastic" if "masterpiece" in tags else "good"
    directors, writers, actors, genres = (split(row[field]) for field in ("directors", "writers", "actors", "genres"))
    facts = (directors, writers, actors, genres, tags)
    return Film(row["title"], int(row["year"]), *facts, row["language"], rating, "famous")


@cache
def real_films() -> tuple[Film, ...]:
    """Return the packaged films; those with a title that is hard to find in a text come first."""
    text = files("rejoinder.sample").joinpath("films.csv").read_text("utf-8")
    return tuple(from_row(row) for row in csv.DictReader(text.splitlines()))
