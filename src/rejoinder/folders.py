"""Folders to write to: nothing of an earlier or another's output is mixed up, and they appear whole or not at all."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath

from rejoinder.files import BadInputError, UnwrittenError, naming_full
from rejoinder.lock import held


def clear_folder(folder: Path, mark: str | None = None, parts: tuple[str, ...] = ()) -> None:
    """Make room for new output: a folder that holds `mark` from last time loses its `parts`; others must be empty."""
    if folder.exists() and not folder.is_dir():
        raise BadInputError(folder, "is a file; expected a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (mark and (folder / mark).exists()):
        raise BadInputError(folder, "is not empty; give another folder, so that nothing is mixed up")
    for part in parts:
        shutil.rmtree(folder / part, ignore_errors=True)


_WRITTEN = ".written"
"""A file that lists the files that a staged folder held when it was done; older ones name the folders in it instead."""


@contextmanager
def staged_folder(out: Path, mark: str, kept: str, later: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield a folder that takes the place of `out` when all went well.

    `out` must be new, empty or hold `mark` from an earlier time, and no file but those that were written there then, or
    whose path ends as a pattern of `later` says. After a failure `out` is as it was, and of the staged folder only
    `kept` is left, for the next attempt, if it holds more than a note of what it is for.
    """
    clear_folder(out, mark)
    _refuse_others(out, later)
    if resolved(out) == Path.cwd():
        raise BadInputError(out, "is the folder you are in; give another, which can be replaced as a whole")
    shown, out = out, resolved(out)
    stage, old = out.with_name(f".{out.name}.part"), out.with_name(f".{out.name}.old")
    with new_folders(out.parent, shown), alone_in(stage, shown):
        keep_only(stage, kept)  # what a process that was killed may have left
        _take_back(old, out, mark)
        try:
            yield stage
            (stage / _WRITTEN).write_bytes(b"".join(os.fsencode(name) + b"\n" for name in _files(stage)))
        except BaseException as error:
            keep_only(stage, kept)
            if sum(path.is_file() for path in stage.rglob("*")) < 2:
                shutil.rmtree(stage)
            if isinstance(error, UnwrittenError) and error.target.is_relative_to(stage):
                raise UnwrittenError(shown / error.target.relative_to(stage), error.reason) from None
            raise
        shutil.rmtree(old, ignore_errors=True)
        if out.exists():
            out.rename(old)
        stage.rename(out)
        shutil.rmtree(old, ignore_errors=True)


def _take_back(old: Path, out: Path, mark: str) -> None:
    """Put back what was moved aside by a process that was killed before the new folder took its place."""
    if not old.exists():
        return
    if not (old / mark).exists():
        raise BadInputError(old, "is in the way of what is to be written, and not of ours; move it elsewhere")
    if not out.exists() or not any(out.iterdir()):
        shutil.rmtree(out, ignore_errors=True)
        old.rename(out)


def resolved(path: Path) -> Path:
    """Return where a folder to write is, whatever links lead to it."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # which of them depends on Python's version
        raise UnwrittenError(path, os.strerror(errno.ELOOP)) from None


def _files(folder: Path) -> list[str]:
    """Return the files below a folder, and links, by their paths within it."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _refuse_others(folder: Path, later: tuple[str, ...]) -> None:
    """Refuse a folder that holds what a person may have put there."""
    listed = folder / _WRITTEN
    known = {_WRITTEN, *(os.fsdecode(listed.read_bytes()).split("\n") if listed.is_file() else ())}
    # what a process that was killed may have left
    unfinished = [str(PurePath(pattern).with_name(f".{PurePath(pattern).name}.*")) for pattern in later]
    for name in _files(folder):
        path = PurePath(name)
        is_ours = name in known or any(str(above) in known for above in path.parents)
        if not is_ours and not any(path.match(pattern) for pattern in (*later, *unfinished)):
            problem = f"holds {name}, which was not written with it and would be lost; give another folder"
            raise BadInputError(folder, problem)


@contextmanager
def new_folders(folder: Path, shown: Path | None = None) -> Iterator[None]:
    """Make a folder and those above it; after a failure those that are new and empty go again."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwrittenError(shown or folder, error.strerror) from None
    try:
        with naming_full(shown or folder):
            yield
    except BaseException:
        for path in made:
            if not any(path.iterdir()):
                path.rmdir()
        raise


class HeldError(BadInputError):
    """Another process has the folder."""


@contextmanager
def alone_in(stage: Path, out: Path) -> Iterator[None]:
    """Make a folder and hold it, so that no other process writes to it; a process that dies lets go of it."""
    with ExitStack() as stack:
        try:
            stage.mkdir(parents=True, exist_ok=True)
            is_ours = stack.enter_context(held(stage))
        except OSError as error:
            raise UnwrittenError(out, error.strerror) from None
        if not is_ours:
            raise HeldError(out, "another process is writing this folder")
        with naming_full(out):
            yield


def keep_only(folder: Path, kept: str) -> None:
    """Empty a folder, but for one name."""
    for path in folder.iterdir():
        if path.name != kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
