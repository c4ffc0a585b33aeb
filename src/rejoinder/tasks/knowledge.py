"""Knowledge that may help to choose a reply (DSTC7, subtask 5): manual pages, other texts, course records."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from rejoinder.corpora.manpages import alias_of, is_markup, to_text
from rejoinder.files import BadInputError, open_binary, write_atomically
from rejoinder.watch import Step, unheard

SCHEMA = pl.Schema({"title": pl.String(), "text": pl.String()})
SYSTEM = "man"
"""Stands for the machine's own manual."""
_TEXT_ENDINGS = (".txt", ".md", ".markdown", ".rst")
SECTION = re.compile(r"\.[1-9]\w*$")
"""How the name of a manual page ends."""
_OVERSTRIKE = re.compile(r".\x08")


def knowledge_files(source: str) -> list[Path]:
    """Return every text and manual page of a folder, or a single file; `man` is the machine's own manual."""
    path = Path(source)
    if source == SYSTEM and not path.exists():
        return _system_manual()
    paths = sorted(file for file in path.rglob("*") if _is_text(file)) if path.is_dir() else [path]
    if not paths:
        raise BadInputError(source, f"holds no text; expected manual pages or {', '.join(_TEXT_ENDINGS)} files")
    return paths


def _system_manual() -> list[Path]:
    """Return this machine's own manual pages on commands (sections 1 and 8)."""
    try:
        folders = subprocess.run(["manpath", "-q"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise BadInputError(SYSTEM, "this machine has no manual; give a folder of pages instead") from None
    paths = [path for folder in folders.split(":") for s in "18" for path in sorted(Path(folder, f"man{s}").glob("*"))]
    if not paths:
        raise BadInputError(SYSTEM, f"no manual pages in {folders}")
    return [path for path in paths if path.is_file()]


def _is_text(path: Path) -> bool:
    name = path.name.removesuffix(".gz")
    return path.is_file() and (name.endswith(_TEXT_ENDINGS) or SECTION.search(name) is not None)


def read_pages(paths: Iterable[Path], advance: Step = unheard) -> pl.DataFrame:
    """Read each page as text; the file's name is its title."""
    titles, texts = [], []
    for path in paths:
        title = path.name.removesuffix(".gz")
        for ending in _TEXT_ENDINGS:
            title = title.removesuffix(ending)
        titles.append(title)
        texts.append(_OVERSTRIKE.sub("", _page(path)))
        advance(1)
    return pl.DataFrame({"title": titles, "text": texts}, schema=SCHEMA)


def _page(path: Path) -> str:
    with open_binary(path) as file:
        text = file.read().decode("utf-8", "replace")
    if not is_markup(text):
        return text
    other = alias_of(text)
    return to_text(text) if other is None else _of_alias(path.parent.parent / other)


def _of_alias(path: Path) -> str:
    """Return the page that another name stands for; an alias of an alias, or of nothing, has no text."""
    found = [file for file in (path, path.with_name(f"{path.name}.gz")) if file.is_file()]
    if not found:
        return ""
    with open_binary(found[0]) as file:
        text = file.read().decode("utf-8", "replace")
    return "" if alias_of(text) else to_text(text)


def write_knowledge(path: Path, pages: pl.DataFrame) -> None:
    """Write the pages as a Parquet table."""
    with write_atomically(path) as file:
        pages.write_parquet(file)
