"""What a task folder says of itself: `task.yaml`."""

import re
from pathlib import Path

import msgspec

from rejoinder import __version__
from rejoinder.files import BadInputError
from rejoinder.records import read_yaml, write_yaml

SPLITS = ("train", "dev", "test")


def named_split(path: Path) -> str:
    """Return the split that a file's name tells; test, if it tells none."""
    name = path.name.lower()
    return next((split for word, split in _WORDS.items() if word in name), "test")


def title_of(path: Path) -> str:
    """Return what a truth is called in titles: a file's name, or as much of a folder's path as tells it from others."""
    parts = path.resolve().parts if path.is_dir() else (path.name,)
    told = (place for place in reversed(range(len(parts))) if not _SAYS_LITTLE.fullmatch(parts[place]))
    return "/".join(parts[next(told, 0) :])


_SAYS_LITTLE = re.compile(r"(train|dev|test|(sub)?task)[-_]?\d*")
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


def read_named_card(folder: Path) -> Card:
    """Read `task.yaml` for files to be called by what it says."""
    card = read_card(folder)
    for field in ("dataset", "split"):
        name = getattr(card, field)
        if not name.isprintable() or {"/", "\\"} & {*name}:
            problem = f"is {name!r}; expected a name that files can have, too"
            raise BadInputError(folder / "task.yaml", problem, field=field)
    return card


def read_card(folder: Path) -> Card:
    """Read `task.yaml`."""
    return read_yaml(folder / "task.yaml", Card)
