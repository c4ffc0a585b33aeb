"""The Ubuntu Dialogue Corpus setting (Lowe et al. 2015): pairs with a label to train on, ten options at test.

Files are CSV: train `Context, Utterance, Label`; dev and test `Context, Ground Truth Utterance, Distractor_0` to `_8`.
Within a context `__eou__` ends an utterance and `__eot__` a turn.

rejoinder import ubuntu-corpus train.csv valid.csv test.csv --out corpus
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rejoinder.corpora.ubuntu import ASKER, HELPER
from rejoinder.files import BadInputError, open_binary, read_start, write_atomically
from rejoinder.tasks.build import Cut, option_id
from rejoinder.tasks.card import Card, named_split, write_card
from rejoinder.tasks.selection import SelectionTask
from rejoinder.tasks.writer import TaskWriter
from rejoinder.text import counted
from rejoinder.watch import Step

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


def import_corpus(path: Path, out: Path, advance: Step) -> Path:
    """Read a file into the folder of its split, and return that folder.

    A training example chooses from all utterances of the file; test examples have their ten options, in an order that
    does not tell the right one, which comes first in the file.
    """
    first = read_start(path).partition(b"\n")[0].decode("utf-8", "replace")
    read = _read_pairs if "Label" in first else _read_tests
    folder = out / "subtask_1" / named_split(path)
    with TaskWriter(folder) as writer:
        for cut, wrong in read(path):
            offered = [_option(text) for text in dict.fromkeys((*cut.replies, *wrong))]
            rows = sorted(offered) if read is _read_tests else None
            for option in offered:
                writer.row(option)
            if cut.replies:
                writer.add(str(writer.examples + 1), cut.turns, rows, [_option(cut.replies[0])])
            advance(1)
        if not writer.examples:
            raise BadInputError(path, "holds no example")
    sources = {path.name: "official"}
    write_card(folder, Card("ubuntu_corpus", 1, folder.name, writer.examples, len(writer.rows), sources=sources))
    return folder


def _option(text: str) -> tuple[str, str]:
    return option_id(text), text


def _read_pairs(path: Path) -> Iterator[tuple[Cut, list[str]]]:
    """Yield each training pair: a cut with its reply, or one without and what is no reply to it."""
    for number, (context, utterance, label) in _read(path, TRAIN_HEADER):
        if label not in ("0", "1", "0.0", "1.0"):
            raise BadInputError(path, f"{label!r}; expected 0 or 1", f"record {number}", "Label")
        right = float(label) == 1
        turns = _turns(path, number, context)
        yield Cut(turns, (_clean(utterance),) if right else ()), [] if right else [_clean(utterance)]


def _read_tests(path: Path) -> Iterator[tuple[Cut, list[str]]]:
    """Yield each test example as a cut and its wrong options."""
    for number, (context, reply, *wrong) in _read(path, TEST_HEADER):
        yield Cut(_turns(path, number, context), (_clean(reply),)), [_clean(text) for text in wrong]


def _turns(path: Path, number: int, context: str) -> tuple[tuple[str, str], ...]:
    """Return (speaker, text) of each turn; two speak in turn, and the helper speaks next."""
    said = [text for turn in context.split("__eot__") if (text := _clean(turn))]
    if not said:
        raise BadInputError(path, "is empty", f"record {number}", "Context")
    first = (len(said) + 1) % 2
    return tuple(((ASKER, HELPER)[(first + place) % 2], text) for place, text in enumerate(said))


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
