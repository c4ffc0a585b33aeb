"""Simulated users rate films: tastes and films share latent factors, and a few films are seen by nearly everybody."""

from collections.abc import Iterable, Iterator
from itertools import islice
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.sample.films_facts import Film

Floats = NDArray[np.float64]

CATALOGUE = 20_000  # only so many films are rated and talked about: memory stays bounded
FACTORS = 10
CIRCLES = 24
FEWEST, TYPICAL, MOST = 20, 40, 400
FIRST_SECOND, SPAN = 950_000_000, 600_000_000


class Rating(msgspec.Struct, frozen=True):
    """One user's stars, 0.5 to 5, for one film (by its place, counted from 1)."""

    user: int
    film: int
    stars: float
    timestamp: int


class Catalogue(msgspec.Struct, frozen=True):
    """What draws users to films: latent factors, quality, and how widely each is known."""

    factors: Floats
    quality: Floats
    known: Floats


def direction(key: str, seed: int) -> Floats:
    """Return the latent direction of a genre, a director or an era."""
    return np.random.default_rng([seed, crc32(key.encode())]).normal(size=FACTORS)


def factors(film: Film, seed: int, directions: dict[str, Floats]) -> Floats:
    """Place a film: by genre first, then by director and decade."""

    def of(key: str) -> Floats:
        if key not in directions:
            directions[key] = direction(key, seed)
        return directions[key]

    genre = np.mean([of(genre) for genre in film.genres], axis=0)
    placed = genre + 0.7 * of(film.directors[0]) + 0.5 * of(f"{film.year // 10}0s")
    return np.asarray(placed / np.linalg.norm(placed))


def catalogue(films: Iterable[Film], seed: int) -> Catalogue:
    """Place the films that can be rated."""
    directions: dict[str, Floats] = {}
    placed = np.array([factors(film, seed, directions) for film in islice(films, CATALOGUE)])
    rng = np.random.default_rng([seed, len(placed)])
    rank = np.argsort(np.argsort(np.arange(len(placed)) * rng.lognormal(0, 1.2, len(placed))))
    known = 1 / (rank + 12.0) ** 0.9
    return Catalogue(
        placed, rng.normal(0, 0.35, len(placed)) + 0.3 * known / known.max(initial=0.0), known.cumsum() / known.sum()
    )


def pick(offer: Catalogue, taste: Floats, wanted: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Choose what a user has seen: among films they came across, rather those to their taste."""
    met = np.unique(np.searchsorted(offer.known, rng.random(5 * wanted)))
    pull = 4.0 * offer.factors[met] @ taste + rng.gumbel(size=len(met))
    return np.sort(met[np.argsort(-pull)[:wanted]])


def stars(offer: Catalogue, seen: NDArray[np.int64], taste: Floats, rng: np.random.Generator) -> Floats:
    """Rate films by taste, quality, the user's mood and a little chance; some users give whole stars only."""
    value = 3.1 + rng.normal(0, 0.35) + 1.5 * offer.factors[seen] @ taste + offer.quality[seen]
    value = value + rng.normal(0, 0.5, len(seen))
    step = 1.0 if rng.random() < 0.5 else 0.5
    return np.asarray(np.clip(np.round(value / step) * step, step, 5.0))


def user_ratings(user: int, offer: Catalogue, seed: int) -> Iterator[Rating]:
    """Draw a user's taste, near that of their circle, and all their ratings."""
    rng = np.random.default_rng([seed, user, FACTORS])
    taste = direction(f"circle {rng.integers(CIRCLES)}", seed) + 0.4 * rng.normal(size=FACTORS)
    taste /= np.linalg.norm(taste)
    wanted = int(min(len(offer.known) // 2 + 1, np.clip(rng.lognormal(np.log(TYPICAL), 0.6), FEWEST, MOST)))
    seen = pick(offer, taste, wanted, rng)
    given = stars(offer, seen, taste, rng)
    times = FIRST_SECOND + int(rng.integers(SPAN)) + rng.integers(0, 86_400, len(seen)).cumsum()
    rows = zip(seen.tolist(), given.tolist(), times.tolist(), strict=True)
    return (Rating(user, film + 1, value, time) for film, value, time in rows)


def ratings(films: Iterable[Film], users: int, seed: int) -> Iterator[Rating]:
    """Yield every user's ratings of the first 20,000 films, user by user; users are numbered from 1."""
    offer = catalogue(films, seed)
    if len(offer.known):
        for user in range(1, users + 1):
            yield from user_ratings(user, offer, seed)
