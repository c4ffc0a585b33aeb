"""Official files into task folders and back.

rejoinder import dstc7 ubuntu_train_subtask_1.json --out ubuntu
rejoinder export ubuntu --out official
rejoinder import dialeval train_en.json --out dialeval
rejoinder export dialeval --out official
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl

from rejoinder.files import BadInputError, fingerprint
from rejoinder.tasks import dialeval, dstc7
from rejoinder.tasks.card import Card, named_split, read_card, read_named_card, write_card
from rejoinder.tasks.judgement_folder import (
    is_judgement_folder,
    load_judgement_task,
    read_judgement_card,
    save_judgement_task,
)
from rejoinder.tasks.selection import load_selection_task
from rejoinder.tasks.writer import TaskWriter
from rejoinder.watch import Step

_TURNS = re.compile(r"_turns\.json(\.gz)?$")
_OPTIONS = "options-for-next"


class Dstc7Start(NamedTuple):
    """What the first example of a file says of all."""

    card: Card
    folder: Path
    """Of its subtask and split; turns to train on have one of their own."""
    pooled: bool
    """Whether examples have no options of their own."""


def start_dstc7(path: Path, out: Path) -> Dstc7Start:
    """Read the first example of a file."""
    example = next(dstc7.read_examples(path), None)
    if example is None:
        raise BadInputError(path, "holds no example")
    card = _card(path, example)
    folder = out / ("turns" if _TURNS.search(path.name) else f"subtask_{card.subtask}") / card.split
    return Dstc7Start(card, folder, not example.options)


def import_dstc7(path: Path, out: Path, pool: Path | None, advance: Step) -> Path:
    """Read an examples file into its folder, and return that folder.

    Examples without options choose from a pool: the one that is named, or the one that lies beside the file, called
    as `export_dstc7` calls it.
    """
    card, folder, pooled = start_dstc7(path, out)
    pool = pool or _pool_beside(path, card) if pooled else None
    shared = {} if pool is None else dict(dstc7.read_pool(pool))
    if pool is not None and not shared:
        raise BadInputError(pool, "holds no option to choose from")
    with TaskWriter(folder) as writer:
        for option in shared.items():
            writer.row(option)
        for example in dstc7.read_examples(path, shared or None):
            _check_same(path, example, card)
            if pooled == bool(example.options):
                problem = "only some records have any" if pooled else dstc7.MISSING
                raise BadInputError(path, problem, f"example-id {example.example_id}", _OPTIONS)
            _add(writer, example)
            advance(1)
    card.examples, card.options = writer.examples, len(writer.rows)
    write_card(folder, card)
    return folder


def _pool_beside(path: Path, card: Card) -> Path:
    name = path.name.removesuffix(".gz").removesuffix(".json").replace(f"_{card.split}_", "_", 1)
    beside = path.with_name(f"{name}_candidates.txt")
    if not beside.is_file():
        raise BadInputError(path, f"{dstc7.NO_POOL}, or lay it beside this file as {beside.name}", "record 1", _OPTIONS)
    return beside


def _card(path: Path, example: dstc7.Example) -> Card:
    dataset = "advising" if example.profile is not msgspec.UNSET or "advising" in path.name.lower() else "ubuntu"
    split = example.data_split or named_split(path)
    if not re.fullmatch(r"\w[\w-]*", str(split)):
        # it becomes the name of a folder
        raise BadInputError(path, f"{split!r}; expected a name such as train", "record 1", "data-split")
    return Card(dataset, int(example.scenario or 1), str(split), 0, 0, sources={path.name: "official"})


def _check_same(path: Path, example: dstc7.Example, card: Card) -> None:
    for field, value, expected in (
        ("data-split", example.data_split, card.split),
        ("scenario", example.scenario, card.subtask),
    ):
        if value is not msgspec.UNSET and value != expected:
            problem = f"{value!r} where the first record has {expected!r}; a file holds one split of one subtask"
            raise BadInputError(path, problem, f"example-id {example.example_id}", field)


def _add(writer: TaskWriter, example: dstc7.Example) -> None:
    answered = example.options_for_correct_answers is not msgspec.UNSET
    writer.add(
        str(example.example_id),
        [(message.speaker, message.utterance) for message in example.messages_so_far],
        [(option.id, option.utterance) for option in example.options] or None,
        [(option.id, option.utterance) for option in example.correct] if answered else None,
        None if example.profile is msgspec.UNSET else msgspec.json.encode(example.profile).decode(),
    )


def task_folders(root: Path) -> list[Path]:
    """Return the task folders at or below a folder."""
    found = sorted(card.parent for card in root.rglob("task.yaml"))
    if not found:
        raise BadInputError(root, "no task; expected folders with task.yaml, examples.parquet and options.parquet")
    return found


def official_format(folder: Path) -> str:
    """Return the name of the official format that a task of this kind has."""
    if is_judgement_folder(folder):
        return "dialeval"
    return "mdd" if read_card(folder).dataset == "films" else "dstc7"


def export_dstc7(folder: Path, out: Path, advance: Step, pools: dict[Path, pl.DataFrame]) -> Iterator[Path]:
    """Write a task as the organisers named their files: examples, answer key, and the pool of subtask 2.

    All splits share one pool, which is written once; `pools` are those that were. Turns to train on are no subtask of
    theirs, and have files of their own.
    """
    card, task = read_named_card(folder), load_selection_task(folder)
    part = "turns" if folder.absolute().parent.name == "turns" else f"subtask_{card.subtask}"
    name = f"{card.dataset}_{card.split}_{part}"

    def examples() -> Iterator[dstc7.Example]:
        for example in dstc7.to_examples(task, card.split, card.subtask):
            yield example
            advance(1)

    yield _written(out / f"{name}.json", lambda path: dstc7.write_examples(path, examples()))
    if task.examples["options"].null_count() == task.examples.height:
        pool = out / f"{card.dataset}_{part}_candidates.txt"
        written = pools.setdefault(pool, task.options)
        if not written.equals(task.options):
            raise BadInputError(folder, f"has another pool than the one in {pool}; export it to a folder of its own")
        if written is task.options:
            yield _written(pool, lambda path: dstc7.write_pool(path, task.options))
    if not task.examples["correct"].null_count():
        key = out / f"{name}_answers.tsv"
        yield _written(key, lambda path: dstc7.write_answer_key(path, task.truth()))


def dialeval_folder(path: Path, out: Path) -> Path:
    """Return the folder of a data file, which has its name."""
    return out / path.name.removesuffix(".gz").removesuffix(".json")


def import_dialeval(path: Path, out: Path) -> Path:
    """Read a data file into its folder, and return that folder."""
    task = dialeval.read_task(path)
    folder = dialeval_folder(path, out)
    save_judgement_task(folder, task, "dialeval", {path.name: fingerprint(path)}, layout=dialeval.find_layout(path))
    return folder


def export_dialeval(folder: Path, out: Path) -> Path:
    """Write a task as a data file, laid out as the one that it was read from."""
    card, task = read_judgement_card(folder), load_judgement_task(folder)
    path = out / f"{folder.resolve().name}.json"
    dialeval.write_dialogues(path, dialeval.to_records(folder, task), card.layout or dialeval.Layout())
    return path


def _written(path: Path, write: Callable[[Path], None]) -> Path:
    write(path)
    return path
