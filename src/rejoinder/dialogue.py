"""A dialogue is a sequence of turns; a turn is one speaker's consecutive posts."""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from operator import itemgetter

import msgspec


class Turn(msgspec.Struct, frozen=True):
    """One speaker's posts, uninterrupted by anybody else."""

    speaker: str
    posts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All posts as one utterance."""
        return " ".join(self.posts)


class Dialogue(msgspec.Struct, frozen=True):
    """Turns in the order in which they were made."""

    id: str
    turns: tuple[Turn, ...]
    time: datetime | None = None
    """When it began, where that is known."""


def merge_posts(posts: Iterable[tuple[str, str]]) -> tuple[Turn, ...]:
    """Join consecutive (speaker, text) posts by one speaker into turns (DialEval-1, section 2.1; DSTC7, "Ubuntu")."""
    runs = groupby(posts, key=itemgetter(0))
    return tuple(Turn(speaker, tuple(text for _, text in said)) for speaker, said in runs)
