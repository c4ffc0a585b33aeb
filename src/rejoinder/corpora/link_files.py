"""Reply links between the lines of a log, as files, and the conversations that they make.

`NAME.annotation.txt` stands beside `NAME.raw.txt`; a line `a b -` says that message b answers message a, both numbers
of lines from 0; `b b -` says that b starts a conversation (Kummerfeld et al. 2019).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rejoinder.corpora.irc import Post, read_log
from rejoinder.files import BadInputError, read_lines, write_atomically

Link = tuple[int, int]

_ANNOTATION = (".annotation.txt", ".annotation.txt.gz")
_LOG = (".raw.txt", ".raw.txt.gz", ".txt", ".txt.gz")
_EXPECTED = "expected `a b -`, the numbers of two lines"


class AnnotatedLog(msgspec.Struct, frozen=True):
    """A log's posts and the links that people drew between them."""

    name: str
    posts: list[Post]
    links: list[Link]


def read_annotations(path: Path) -> list[Link]:
    """Read links as (line answered, line that answers); in the file either may come first."""
    return [_link(path, number, line) for number, line in read_lines(path) if line.strip()]


def _link(path: Path, number: int, line: str) -> Link:
    words = line.split()
    if words[-1] == "-":
        words.pop()
    try:
        a, b = (int(word) for word in words)
    except ValueError:
        raise BadInputError(path, f"{_EXPECTED}, got {line[:60]!r}", f"line {number}") from None
    if min(a, b) < 0:
        raise BadInputError(path, f"the number of a line is negative: {min(a, b)}", f"line {number}")
    return min(a, b), max(a, b)


def write_annotations(path: Path, links: Iterable[Link]) -> None:
    """Write links in the format of the annotations."""
    with write_atomically(path) as file:
        for a, b in links:
            file.write(f"{a} {b} -\n".encode())


def annotation_files(folder: Path) -> dict[str, Path]:
    """Return the annotation files of a folder by the names of their logs, in order."""
    if not folder.is_dir():
        raise BadInputError(folder, "is not a folder" if folder.exists() else "no such folder")
    files = {_name(path, _ANNOTATION): path for path in sorted(folder.iterdir()) if path.name.endswith(_ANNOTATION)}
    if not files:
        raise BadInputError(folder, "no annotations; expected files NAME.annotation.txt")
    return files


def annotated_logs(folder: Path) -> Iterator[AnnotatedLog]:
    """Yield each log of a folder with its links."""
    for name, path in annotation_files(folder).items():
        posts = list(read_log(_log_of(folder, name, path)))
        links = read_annotations(path)
        if not links:
            raise BadInputError(path, f"no links; {_EXPECTED}")
        _check_lines(path, links, len(posts))
        yield AnnotatedLog(name, posts, links)


def name_of(log: Path) -> str:
    """Return a log's name without what says that it is one."""
    return _name(log, _LOG)


def _name(path: Path, endings: tuple[str, ...]) -> str:
    found = [ending for ending in endings if path.name.endswith(ending)]
    return path.name.removesuffix(max(found, key=len)) if found else path.name


def _log_of(folder: Path, name: str, annotation: Path) -> Path:
    for ending in _LOG:
        if (folder / f"{name}{ending}").is_file():
            return folder / f"{name}{ending}"
    raise BadInputError(annotation, f"the log {name}.raw.txt is missing beside it")


def _check_lines(path: Path, links: list[Link], lines: int) -> None:
    for number, (_, b) in enumerate(links, 1):
        if b >= lines:
            raise BadInputError(path, f"line {b} does not exist: the log has {lines} lines from 0", f"link {number}")


def conversations(links: Iterable[Link]) -> list[list[int]]:
    """Return the connected components of the links: each conversation's lines, in order of their first."""
    ends = np.asarray(list(links), dtype=np.int64).reshape(-1, 2)
    lines, places = np.unique(ends, return_inverse=True)
    rows, columns = places.reshape(-1, 2).T
    graph = coo_array((np.ones(len(ends), dtype=bool), (rows, columns)), shape=(len(lines), len(lines)))
    count, labels = connected_components(graph, directed=False)
    groups: list[list[int]] = [[] for _ in range(count)]
    for line, label in zip(lines.tolist(), labels.tolist(), strict=True):
        groups[label].append(line)
    return sorted(groups)
