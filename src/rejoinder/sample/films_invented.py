"""Films that do not exist, for knowledge bases larger than the real films that come with the package."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from random import Random

import msgspec

from rejoinder.sample.films_facts import Film, real_films

FIRST_YEAR, LAST_YEAR = 1925, 2019
FILMS_PER_DIRECTOR, ACTORS_PER_FILM = 2, 3
# people are numbered in fives: a director, a writer, three actors
GROUP = 5
MIDDLE_NAMES = ("", *(f"{letter}. " for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
# a prime shares no factor with a space that it is larger than, so multiplying by it visits every place once
STRIDE = 1_000_003


class Words(msgspec.Struct, frozen=True):
    """What titles, names and tags are made of."""

    adjectives: tuple[str, ...]
    nouns: tuple[str, ...]
    places: tuple[str, ...]
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]
    languages: dict[str, int]
    genres: dict[str, tuple[str, ...]]


@cache
def words() -> Words:
    """Return the words that come with the package."""
    return msgspec.json.decode(files("rejoinder.sample").joinpath("films_words.json").read_bytes(), type=Words)


@cache
def real_titles() -> frozenset[str]:
    """Return the titles that an invented film must not have."""
    return frozenset(film.title for film in real_films())


@cache
def patterns() -> tuple[tuple[Callable[[str, str], str], tuple[str, ...], tuple[str, ...]], ...]:
    """Return how titles are put together from two lists of words; no two patterns give the same title."""
    adjectives, nouns, places = words().adjectives, words().nouns, words().places
    return (
        (lambda one, other: f"The {one} {other}", adjectives, nouns),
        (lambda one, other: f"{one} of the {other}", nouns, nouns),
        (lambda one, other: f"{one} in {other}", nouns, places),
        (lambda one, other: f"{one} {other}", adjectives, nouns),
        (lambda one, other: f"{one}, My {other}", places, nouns),
        (lambda one, other: f"The {one} and the {other}", nouns, nouns),
        (lambda one, other: f"The {one}'s {other}", nouns, nouns),
    )


def title(index: int, seed: int) -> str:
    """Return the title of an invented film, another one for every index; when words run out, sequels are made."""
    place, kind = divmod(index, len(patterns()))
    build, ones, others = patterns()[kind]
    space = len(ones) * len(others)
    part, place = divmod(place, space)
    one, other = divmod((place * STRIDE + seed * 7919) % space, len(others))
    name = build(ones[one], others[other])
    name = f"{name} Revisited" if name in real_titles() else name
    return f"{name} Part {part + 1}" if part else name


def person(index: int) -> str:
    """Return the name of an invented person; names repeat only after some hundreds of thousands."""
    firsts, lasts = words().first_names, words().last_names
    middle, place = divmod(index, len(firsts) * len(lasts))
    first, last = divmod(place * STRIDE % (len(firsts) * len(lasts)), len(lasts))
    return f"{firsts[first]} {MIDDLE_NAMES[middle % len(MIDDLE_NAMES)]}{lasts[last]}"


class Director:
    """A director with a favourite genre, an era, a language and a troupe, all given by a number."""

    def __init__(self, number: int, seed: int) -> None:
        rng = Random(f"director {seed} {number}")
        self.number, self.name = number, person(GROUP * number)
        self.genre, self.other_genre = rng.sample(list(words().genres), 2)
        self.start = rng.randint(FIRST_YEAR, LAST_YEAR - 10)
        self.language = rng.choices(list(words().languages), list(words().languages.values()))[0]

    def genres(self, rng: Random) -> tuple[str, ...]:
        """Draw the genres of one of the director's films."""
        second = rng.choice((self.other_genre, *words().genres))
        chosen = (self.genre, second) if rng.random() < 0.8 else (second,)
        return tuple(dict.fromkeys(chosen))

    def actors(self, rng: Random, newest: int) -> tuple[str, ...]:
        """Draw a cast: some from the director's troupe, some from everywhere."""
        troupe = ACTORS_PER_FILM * FILMS_PER_DIRECTOR * self.number
        numbers = [troupe + rng.randrange(8) if rng.random() < 0.6 else rng.randrange(newest) for _ in range(4)]
        return tuple(dict.fromkeys(person(GROUP * (n // 3) + 2 + n % 3) for n in numbers[: rng.randint(2, 4)]))


def invent(index: int, seed: int) -> Film:
    """Make up a film; earlier ones lend it directors and actors, so that people have careers."""
    rng = Random(f"film {seed} {index}")
    director = Director(rng.randrange(index // FILMS_PER_DIRECTOR + 8), seed)
    genres = director.genres(rng)
    tags = rng.sample(sorted({tag for genre in genres for tag in words().genres[genre]}), rng.randint(2, 5))
    writers = [person(GROUP * rng.randrange(index + 8) + 1) for _ in range(rng.randint(1, 2))]
    writers = [director.name, *writers[1:]] if rng.random() < 0.4 else writers
    return Film(
        title=title(index, seed),
        year=min(LAST_YEAR, director.start + rng.randrange(25)),
        directors=(director.name,),
        writers=tuple(dict.fromkeys(writers)),
        actors=director.actors(rng, ACTORS_PER_FILM * index + 16),
        genres=genres,
        tags=tuple(tags),
        language=director.language if rng.random() < 0.9 else "English",
        rating=rng.choices(("bad", "ok", "good", "fantastic"), (15, 40, 38, 7))[0],
        votes=rng.choices(("unknown", "well known", "famous"), (60, 30, 10))[0],
    )
