"""Knowledge that may help to choose a reply (DSTC7, subtask 5): manual pages, other texts, course records."""

import os
import re
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl

from rejoinder.files import BadInputError, read_lines, read_start, write_atomically

SCHEMA = pl.Schema({"title": pl.String(), "text": pl.String()})
_TEXT_ENDINGS = (".txt", ".md", ".markdown", ".rst")
_SECTION = re.compile(r"\.[1-9]\w*$")
_OVERSTRIKE = re.compile(r".\x08")


def read_knowledge(source: Path, advance: Callable[[int], object] = lambda _: None) -> pl.DataFrame:
    """Read every text and manual page of a folder, or a single file; the file's name is the title."""
    paths = sorted(path for path in source.rglob("*") if _is_text(path)) if source.is_dir() else [source]
    if not paths:
        raise BadInputError(source, f"holds no text; expected manual pages or {', '.join(_TEXT_ENDINGS)} files")
    return _read_pages(paths, advance)


def read_system_manual(advance: Callable[[int], object] = lambda _: None) -> pl.DataFrame:
    """Read this machine's own manual pages on commands (sections 1 and 8)."""
    try:
        folders = subprocess.run(["manpath", "-q"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise BadInputError("man", "this machine has no manual; give a folder of pages instead") from None
    paths = [path for folder in folders.split(":") for s in "18" for path in sorted(Path(folder, f"man{s}").glob("*"))]
    if not paths:
        raise BadInputError("man", f"no manual pages in {folders}")
    return _read_pages(paths, advance)


def _is_text(path: Path) -> bool:
    name = path.name.removesuffix(".gz")
    return path.is_file() and (name.endswith(_TEXT_ENDINGS) or _SECTION.search(name) is not None)


def _read_pages(paths: Iterable[Path], advance: Callable[[int], object]) -> pl.DataFrame:
    def page(path: Path) -> tuple[str, str]:
        title = path.name.removesuffix(".gz")
        for ending in _TEXT_ENDINGS:
            title = title.removesuffix(ending)
        text = (
            _rendered(path) if _is_markup(path) else "\n".join(line for _, line in read_lines(path, errors="replace"))
        )
        advance(1)
        return title, _OVERSTRIKE.sub("", text)

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        return pl.DataFrame(list(threads.map(page, paths)), schema=SCHEMA, orient="row")


def _is_markup(path: Path) -> bool:
    """Whether a page is in the formatter's language and not yet text."""
    return re.search(rb"^[.'](TH|Dd|so|SH)\b", read_start(path), re.MULTILINE) is not None


def _rendered(path: Path) -> str:
    command = ["man", "--encoding=UTF-8", "--local-file", str(path)]
    environment = os.environ | {"MANWIDTH": "100", "MANPAGER": "cat", "GROFF_NO_SGR": "1", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
    except FileNotFoundError:
        raise BadInputError(path, "a manual page in markup needs the command `man` to be read") from None
    return done.stdout.decode("utf-8", "replace")


def write_knowledge(path: Path, pages: pl.DataFrame) -> None:
    """Write the pages as a Parquet table."""
    with write_atomically(path) as file:
        pages.write_parquet(file)
