"""Film discussions: replies speak of the film, the people and the matters of the comment they answer."""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from itertools import islice
from random import Random

import msgspec

from rejoinder.sample.films_facts import Film
from rejoinder.sample.films_ratings import CATALOGUE

OPENINGS = {
    "praise": 32,
    "pan": 20,
    "ask_director": 9,
    "ask_actor": 9,
    "ask_writer": 6,
    "ask_year": 6,
    "ask_similar": 18,
}
# what may follow a comment; a film is liked or disliked, and a reply agrees or not
REPLIES: dict[str, dict[str, int]] = {
    "praise": {"agree_good": 55, "disagree_bad": 30, "ask_director": 5, "ask_similar": 10},
    "pan": {"agree_bad": 45, "disagree_good": 55},
    "ask_director": {"answer_director": 100},
    "ask_actor": {"answer_actor": 100},
    "ask_writer": {"answer_writer": 100},
    "ask_year": {"answer_year": 100},
    "ask_similar": {"answer_similar": 100},
    "answer": {"thanks": 40, "agree_good": 40, "disagree_bad": 20},
    "thanks": {"agree_good": 70, "ask_similar": 30},
}
USERS = ("reel", "popcorn", "matinee", "cinephile", "projector", "celluloid", "frame", "cutaway", "montage", "dolly")
FOCUSES = ("actor", "actor", "director", "tag", "tag", "genre", "writer", "year")
FIRST_SECOND, FIRST_ID = 1_300_000_000, 36**5


class Comment(msgspec.Struct, frozen=True):
    """One comment of a discussion, as Reddit's dumps have it; the first of a thread has no parent."""

    id: str
    parent_id: str | None
    author: str
    body: str
    created_utc: int
    link_id: str


class Topic(msgspec.Struct, frozen=True):
    """What a comment is about: a film by its place, what is done, which fact gives the reason, words for all facts."""

    film: int
    kind: str
    focus: str
    slots: dict[str, str]


@cache
def talk() -> dict[str, tuple[str, ...]]:
    """Return the wording that comes with the package."""
    text = files("rejoinder.sample").joinpath("films_talk.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, tuple[str, ...]])


@cache
def reasons(stance: str, focus: str) -> tuple[str, ...]:
    """Return the reasons to like or dislike a film that lie in one kind of fact."""
    return tuple(reason for reason in talk()[stance] if f"{{{focus}}}" in reason)


def base36(number: int) -> str:
    """Write a number as Reddit does."""
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def follow_ups(kind: str) -> dict[str, int]:
    """Return what may follow a kind of comment."""
    stance = "praise" if kind.endswith("_good") else "pan" if kind.endswith("_bad") else kind
    return REPLIES["answer" if stance.startswith("answer") else stance]


class Forum:
    """Writes comments on the films it knows."""

    def __init__(self, films: Iterable[Film]) -> None:
        self.films = list(islice(films, CATALOGUE))
        self.kin: dict[str, list[int]] = {}
        for place, film in enumerate(self.films):
            for key in (film.directors[0], film.tags[0], film.genres[0]):
                self.kin.setdefault(key, []).append(place)

    def slots(self, place: int, rng: Random) -> dict[str, str]:
        """Draw which of a film's people and matters come up."""
        film = self.films[place]
        cast = rng.sample(film.actors, len(film.actors))
        return {
            "title": film.title,
            "year": str(film.year),
            "director": rng.choice(film.directors),
            "writer": rng.choice(film.writers),
            "actor": cast[0],
            "second": cast[-1] if len(cast) > 1 else film.directors[0],
            "cast": " and ".join((", ".join(cast[:-1]), cast[-1])) if len(cast) > 1 else cast[0],
            "genre": rng.choice(film.genres).lower(),
            "tag": rng.choice(film.tags),
        }

    def similar(self, place: int, rng: Random) -> tuple[int, dict[str, str]]:
        """Find another film by the same director, or on the same matter, and how to speak of it."""
        film = self.films[place]
        shared = rng.choice((film.directors[0], film.tags[0], film.genres[0]))
        others = [other for other in self.kin[shared][:200] if other != place]
        chosen = rng.choice(others) if others else rng.randrange(len(self.films))
        other = self.films[chosen]
        slots = {"other": other.title, "other_director": other.directors[0], "other_actor": other.actors[0]}
        return chosen, slots | {"shared": shared if shared in film.directors else shared.lower()}

    def opening(self, rng: Random) -> Topic:
        """Choose what a thread starts with; early films are talked about most."""
        place = int(len(self.films) * rng.random() ** 2)
        kind = rng.choices(list(OPENINGS), list(OPENINGS.values()))[0]
        return Topic(place, kind, rng.choice(FOCUSES), self.slots(place, rng))

    def reply(self, parent: Topic, rng: Random) -> Topic:
        """Choose how a comment is answered: mostly on the very people and matters that it named."""
        options = follow_ups(parent.kind)
        kind = rng.choices(list(options), list(options.values()))[0]
        if kind == "answer_similar":
            place, other = self.similar(parent.film, rng)
            return Topic(place, kind, rng.choice(FOCUSES), self.slots(place, rng) | other)
        kept = parent.slots if rng.random() < 0.8 else self.slots(parent.film, rng)
        focus = parent.focus if rng.random() < 0.6 else rng.choice(FOCUSES)
        return Topic(parent.film, kind, focus, kept)

    def body(self, topic: Topic, rng: Random) -> str:
        """Put a comment into words."""
        why = {stance: rng.choice(reasons(stance, topic.focus)) for stance in ("good", "bad")}
        reason = {stance: text.format_map(topic.slots) for stance, text in why.items()}
        return rng.choice(talk()[topic.kind]).format_map(topic.slots | reason)


def author(rng: Random, answered: str | None) -> str:
    """Draw a user's name, other than that of the user who is answered."""
    name = f"{rng.choice(USERS)}_{rng.choice(USERS)}{rng.randrange(100)}"
    return name if name != answered else f"{name}x"


def thread(forum: Forum, first: int, rng: Random) -> Iterator[Comment]:
    """Write one thread, numbering its comments from `first`: mostly short, now and then a long one."""
    length = min(12, 2 + int(rng.expovariate(0.9)))
    topics: list[Topic] = []
    comments: list[Comment] = []
    clock = FIRST_SECOND + 30 * first
    for place in range(length):
        parent = None if place == 0 else place - 1 if rng.random() < 0.6 else rng.randrange(place)
        topics.append(forum.opening(rng) if parent is None else forum.reply(topics[parent], rng))
        clock += rng.randrange(20, 3000)
        above = None if parent is None else comments[parent]
        name, link = base36(FIRST_ID + first + place), f"t3_{base36(FIRST_ID + first)}"
        writer, body = author(rng, above.author if above else None), forum.body(topics[place], rng)
        comments.append(Comment(name, above.id if above else None, writer, body, clock, link))
    return iter(comments)


def threads(films: Iterable[Film], size: int, seed: int) -> Iterator[Comment]:
    """Yield `size` comments on the first 20,000 films, thread by thread; the last thread may be cut short."""
    forum = Forum(films)
    made = 0
    while forum.films and made < size:
        for comment in islice(thread(forum, made, Random(f"thread {seed} {made}")), size - made):
            made += 1
            yield comment
