"""Recognise a file's format by its content."""

import re
from contextlib import suppress
from pathlib import Path

import msgspec

from rejoinder.files import BadInputError, read_start
from rejoinder.records import read_json_records

TRUTH_FORMATS = {
    "dialeval": "DialEval data with annotations (JSON)",
    "dstc7": "DSTC7 examples with answers (JSON)",
    "key": "DSTC7 answer key, lines `id TAB answer[,answer...]`",
    "moviedialog": "Movie Dialog, lines `N message TAB answer[, answer...]`",
    "qrels": "TREC judgements, lines `topic 0 option relevance`",
    "task": "a task folder of Rejoinder",
}
RUN_FORMATS = {
    "dialeval": "DialEval submission (JSON)",
    "dstc7": "DSTC7 submission (JSON)",
    "parquet": "Parquet with columns example, option, score; or example, question, turn, label, probability",
    "trec": "TREC run, lines `topic Q0 option rank score name`",
}

_TRUTH_KEYS = {"messages-so-far": "dstc7", "turns": "dialeval"}
_RUN_KEYS = {"candidate-ranking": "dstc7", "quality": "dialeval", "nugget": "dialeval"}
_LINES = (
    ("trec", re.compile(r"\S+\s+\S+\s+\S+\s+\d+\s+\S+\s+\S+\s*", re.ASCII)),
    # spaces or tabs, not both: `1 what year?<TAB>1979` is a film question with its answer
    ("qrels", re.compile(r"\S+( +\S+ +\S+ +|\t\S+\t\S+\t)-?\d+\s*", re.ASCII)),
    ("moviedialog", re.compile(r"\d+ [^\t]*\t.*", re.ASCII)),
    ("key", re.compile(r"[^\t]+\t[^\t]+")),
)


def recognise_truth(path: Path) -> str:
    """Return which of TRUTH_FORMATS the file is in."""
    with suppress(OSError):  # such as a name that is too long, which reading reports
        if path.is_dir():
            return "task"
    start = _start(path)
    if start[:1] in ("[", "{"):
        return _recognise_json(path, start, _TRUTH_KEYS, TRUTH_FORMATS)
    return _recognise_lines(path, start, TRUTH_FORMATS)


def recognise_run(path: Path) -> str:
    """Return which of RUN_FORMATS the file is in."""
    start = _start(path)
    if start.startswith("PAR1"):
        return "parquet"
    if start[:1] in ("[", "{"):
        return _recognise_json(path, start, _RUN_KEYS, RUN_FORMATS)
    return _recognise_lines(path, start, RUN_FORMATS)


def first_keys(path: Path) -> list[str]:
    """Return the keys of a JSON file's first record; none where there is none, or no JSON."""
    if _start(path)[:1] not in ("[", "{"):
        return []
    return next((list(record) for _, record in read_json_records(path, dict[str, msgspec.Raw])), [])


def _recognise_json(path: Path, start: str, telling: dict[str, str], known: dict[str, str]) -> str:
    """Go by a telling key at the start, or of the first record, which may be longer than that."""
    keys = [key for key in telling if f'"{key}"' in start] or [key for key in first_keys(path) if key in telling]
    if keys:
        return telling[keys[0]]
    if not sum(1 for _ in read_json_records(path, dict[str, msgspec.Raw])):
        raise BadInputError(path, "holds no record")
    raise BadInputError(path, f"JSON, but of no known kind; expected {_one_of(known)}")


def _start(path: Path) -> str:
    start = read_start(path).decode("utf-8-sig", "replace").lstrip()
    if not start:
        raise BadInputError(path, "is empty")
    return start


def _recognise_lines(path: Path, start: str, known: dict[str, str]) -> str:
    lines = start.split("\n")
    lines = lines[:-1] or lines  # the start may end within a line
    fitting = {
        name: sum(pattern.fullmatch(line) is not None for line in lines) for name, pattern in _LINES if name in known
    }
    # one line may be wrong, or fit another format by chance
    best = max(fitting, key=fitting.__getitem__)
    if not fitting[best]:
        raise BadInputError(path, f"of no known format; expected {_one_of(known)}", "line 1")
    return best


def _one_of(known: dict[str, str]) -> str:
    return "; ".join(f"{name} ({meaning})" for name, meaning in known.items())
