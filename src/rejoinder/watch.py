"""How long work tells those who wait: it opens a stretch with a title and a total, and says how far it came."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Advance(Protocol):
    """Called with each amount done, and perhaps a word on how it goes."""

    def __call__(self, amount: int, note: str = "") -> None:
        """Say what was done."""


Watch = Callable[[str, int | None], AbstractContextManager[Advance]]
Step = Callable[[int], object]
"""Called with each amount done by work that has nothing more to say of it."""


@contextmanager
def unwatched(title: str, total: int | None) -> Iterator[Advance]:
    """Tell nobody."""
    yield lambda amount, note="": None


def unheard(amount: int) -> None:
    """Tell nobody."""
