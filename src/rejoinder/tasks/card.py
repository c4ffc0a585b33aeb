"""What a task folder says of itself: `task.yaml`."""

from pathlib import Path

import msgspec

from rejoinder import __version__
from rejoinder.records import read_yaml, write_yaml

SPLITS = ("train", "dev", "test")


def named_split(path: Path) -> str:
    """Return the split that a file's name tells; test, if it tells none."""
    name = path.name.lower()
    return next((split for word, split in _WORDS.items() if word in name), "test")


_WORDS = {"train": "train", "dev": "dev", "valid": "dev"}


class Card(msgspec.Struct):
    """Where a task comes from, so that it can be told from another and made again."""

    dataset: str
    """ubuntu, advising, ..."""
    subtask: int
    split: str
    examples: int
    options: int
    seed: int | None = None
    negatives: str | None = None
    knowledge: str | None = None
    """A Parquet table of pages, or of films, relative to the task's folder."""
    sources: dict[str, str] = {}
    """Names of source files and their fingerprints."""
    rejoinder: str = __version__


def write_card(folder: Path, card: Card) -> None:
    """Write `task.yaml`."""
    write_yaml(folder / "task.yaml", card)


def read_card(folder: Path) -> Card:
    """Read `task.yaml`."""
    return read_yaml(folder / "task.yaml", Card)
