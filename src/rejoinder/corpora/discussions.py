"""Discussions as dialogues of two: Reddit-style dumps of comments, or ReDial conversations, one JSON record a line."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rejoinder.dialogue import merge_posts
from rejoinder.files import BadInputError, read_start
from rejoinder.records import read_json_records

_GONE = ("[deleted]", "[removed]", "")
_YEAR = re.compile(r"\s*\(\d{4}\)\s*$")


class Comment(msgspec.Struct):
    """A comment of a Reddit dump; the kinds of ids have prefixes there (`t1_` a comment, `t3_` a thread)."""

    id: str
    body: str
    parent_id: str | None = None


class Message(msgspec.Struct, rename="camel"):
    """One message of a ReDial conversation; `@123` is a film."""

    text: str
    sender_worker_id: int


class Conversation(msgspec.Struct, rename="camel"):
    """A ReDial conversation."""

    messages: list[Message]
    movie_mentions: dict[str, str | None] | list[None] = {}


def read_discussions(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield dialogues as their messages, the two speakers in turn, two messages or more each."""
    if b'"messages"' in read_start(path):
        for _, conversation in read_json_records(path, Conversation):
            messages = _messages(conversation)
            if len(messages) > 1:
                yield messages
    else:
        yield from _chains(path)


def _messages(conversation: Conversation) -> tuple[str, ...]:
    """Name the films, and join what one of the two says in a row."""
    films = conversation.movie_mentions if isinstance(conversation.movie_mentions, dict) else {}

    def named(matched: re.Match[str]) -> str:
        return _YEAR.sub("", films.get(matched[1]) or matched[0])

    posts = [
        (str(message.sender_worker_id), " ".join(re.sub(r"@(\d+)", named, message.text).split()))
        for message in conversation.messages
    ]
    return tuple(turn.text for turn in merge_posts(post for post in posts if post[1]))


def _chains(path: Path) -> Iterator[tuple[str, ...]]:
    """Cut trees of comments into chains from parent to comment (section 2.4): every comment replies once.

    The first reply to a comment goes on with its chain; each further one starts another, with the comment it replies
    to. Whoever wrote them, the speakers are two: the one who was answered and the one who answers, in turn.
    """
    bodies: dict[str, str] = {}
    parents: dict[str, str] = {}
    for number, comment in read_json_records(path, Comment):
        if comment.id in bodies:
            raise BadInputError(path, f"{comment.id!r} is given twice", f"record {number}", "id")
        body = " ".join(comment.body.split())
        if body not in _GONE:
            bodies[comment.id] = body
            parents[comment.id] = (comment.parent_id or "").removeprefix("t1_")
    following: dict[str, str] = {}
    starts: list[tuple[str, ...]] = []
    for id_, parent in parents.items():
        if parent not in bodies:
            starts.append((id_,))
        elif parent in following:
            starts.append((parent, id_))
        else:
            following[parent] = id_
    for chain in starts:
        ids = [*chain]
        while (after := following.get(ids[-1])) is not None:
            ids.append(after)
        if len(ids) > 1:
            yield tuple(bodies[id_] for id_ in ids)
