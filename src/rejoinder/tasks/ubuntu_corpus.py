"""The Ubuntu Dialogue Corpus setting (Lowe et al. 2015): pairs with a label to train on, ten options at test.

Files are CSV: train `Context, Utterance, Label`; dev and test `Context, Ground Truth Utterance, Distractor_0` to `_8`.
Within a context `__eou__` ends an utterance and `__eot__` a turn.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rejoinder.corpora.ubuntu import ASKER, HELPER
from rejoinder.files import BadInputError, open_binary, write_atomically
from rejoinder.tasks.build import Cut
from rejoinder.tasks.selection import SelectionTask
from rejoinder.text import counted

TRAIN_HEADER = ("Context", "Utterance", "Label")
TEST_HEADER = ("Context", "Ground Truth Utterance", *(f"Distractor_{number}" for number in range(9)))


def _context(turns: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"{text} __eou__ __eot__" for _, text in turns)


def write_training_pairs(path: Path, cuts: Sequence[Cut], seed: int) -> None:
    """Write each cut with its reply (label 1) and with another cut's reply (label 0), in random order."""
    rng = np.random.default_rng(seed)
    replies = [cut.replies[0] for cut in cuts]
    drawn = _draws(replies, rng)
    rows = []
    for cut in cuts:
        wrong = next(text for text in drawn if text not in cut.replies)
        context = _context(cut.turns)
        rows += [(context, f"{cut.replies[0]} __eou__", 1), (context, f"{wrong} __eou__", 0)]
    _write(path, TRAIN_HEADER, (rows[place] for place in rng.permutation(len(rows))))


def _draws(texts: list[str], rng: np.random.Generator) -> Iterator[str]:
    if len(set(texts)) < 2:
        raise BadInputError("dialogues", "fewer than two different replies: no wrong one can be drawn")
    while True:
        yield texts[int(rng.integers(len(texts)))]


def write_test(path: Path, task: SelectionTask) -> None:
    """Write a task of ten options an example, the correct one first."""
    texts = task.options["text"].to_list()

    def rows() -> Iterator[tuple[str, ...]]:
        for _, turns, options, correct in task.examples.iter_rows():
            right, *more = correct
            wrong = [texts[row] for row in options if row != right]
            if more or len(wrong) != len(TEST_HEADER) - 2:
                raise ValueError("the Ubuntu Dialogue Corpus has one correct option and nine wrong ones")
            context = _context([(turn["speaker"], turn["text"]) for turn in turns])
            yield (context, *(f"{text} __eou__" for text in (texts[right], *wrong)))

    _write(path, TEST_HEADER, rows())


def _write(path: Path, header: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    with write_atomically(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text)
        writer.writerow(header)
        writer.writerows(rows)
        text.flush()
        text.detach()


def read_training_pairs(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield (context, utterance, label)."""
    for number, row in _read(path, TRAIN_HEADER):
        if row[2] not in ("0", "1", "0.0", "1.0"):
            raise BadInputError(path, f"{row[2]!r}; expected 0 or 1", f"record {number}", "Label")
        yield row[0], row[1], int(float(row[2]))


def read_cuts(path: Path) -> Iterator[tuple[Cut, list[str]]]:
    """Yield each test example as a cut and its wrong options."""
    for _, row in _read(path, TEST_HEADER):
        turns = [turn.replace("__eou__", " ").split() for turn in row[0].split("__eot__")]
        said = [" ".join(words) for words in turns if words]
        speakers = (ASKER, HELPER)
        first = (len(said) + 1) % 2  # the other one speaks next, and that is the second
        cut = Cut(tuple((speakers[(first + place) % 2], text) for place, text in enumerate(said)), (_clean(row[1]),))
        yield cut, [_clean(text) for text in row[2:]]


def _clean(text: str) -> str:
    return " ".join(text.replace("__eou__", " ").replace("__eot__", " ").split())


def _read(path: Path, header: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    with open_binary(path) as file:
        rows = csv.reader(io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline=""))
        found = next(rows, [])
        if [name.strip() for name in found] != list(header):
            raise BadInputError(path, f"columns {', '.join(found) or 'none'}; expected {', '.join(header)}", "line 1")
        for number, row in enumerate(rows, 1):
            if len(row) != len(header):
                raise BadInputError(path, f"{counted(len(row), 'column')}; expected {len(header)}", f"record {number}")
            yield number, row
