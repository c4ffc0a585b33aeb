"""Official Movie Dialog files (Dodge et al. 2016) into task folders and back.

rejoinder import mdd task1_qa_dev.txt --kb movie_kb.txt --out mdd
rejoinder import mdd task4_reddit_dev.txt task4_reddit_cand-valid.txt --kb movie_kb.txt --out mdd
rejoinder export mdd --format mdd --out official
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import polars as pl

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.film_table import write_films
from rejoinder.corpora.films import KnowledgeBase
from rejoinder.files import BadInputError, read_lines, read_start, write_atomically
from rejoinder.tasks.build import option_id
from rejoinder.tasks.card import Card, named_split, read_named_card, write_card
from rejoinder.tasks.film_groups import LATER, match_names, question_classes
from rejoinder.tasks.moviedialog import Exchange, read_exchanges
from rejoinder.tasks.selection import load_selection_task
from rejoinder.tasks.writer import TaskWriter
from rejoinder.watch import Step

USER, MODEL = "user", "model"
FILMS = "films.parquet"
"""The knowledge base, once for all tasks of a folder."""


class Source(msgspec.Struct, frozen=True):
    """A file of exchanges, and what its name says of it."""

    path: Path
    task: int
    split: str


def sort_files(paths: Sequence[Path], task: int | None = None) -> tuple[list[Source], dict[str, Path]]:
    """Tell files of exchanges from task 4's files of candidates (lines without a TAB), which belong to a split."""
    exchanges, candidates = [], {}
    for path in paths:
        number, split = _read_name(path, task)
        start = read_start(path)
        if not start:
            raise BadInputError(path, "is empty")
        if b"\t" in start:
            exchanges.append(Source(path, number, split))
        elif number == 4:
            candidates[split] = path
        else:
            raise BadInputError(path, "holds no TAB; expected lines of a number, a message, a TAB and the answers")
    if not exchanges:
        raise BadInputError(paths[0], "holds no TAB, so candidates alone; give the file of exchanges that they are for")
    return exchanges, candidates


def _read_name(path: Path, task: int | None) -> tuple[int, str]:
    if not path.exists():
        raise BadInputError(path, "no such file")
    number = re.search(r"task([1-5])", path.name.lower())
    if task is None and not number:
        raise BadInputError(path, "the name does not say of which task it is; expected task1 to task5 in it, or --task")
    return task or int(number[1] if number else 0), named_split(path)


def read_candidates(path: Path) -> Iterator[str]:
    """Yield the replies of a candidate file, lines `1 reply` with empty lines between."""
    for number, line in read_lines(path):
        if line.strip():
            matched = re.fullmatch(r"[1-9]\d* (.*)", line)
            if not matched:
                raise BadInputError(path, "expected a number, a space and a reply", f"line {number}")
            yield matched[1]


def import_films(
    source: Source, out: Path, kb: KnowledgeBase, candidates: Path | None, advance: Step
) -> tuple[Path, list[str]]:
    """Read a file into the folder of its task and split; return that folder, and the answers that are no entities.

    The pool is all entities. Discussions choose from the candidates and, each, their own true reply (section 2.4);
    without candidates, from all replies of the file.
    """
    folder = out / f"task_{source.task}" / source.split
    kept: list[Exchange] = []
    responses: list[int] = []
    discussion = source.task == 4
    with TaskWriter(folder) as writer:
        for option in _pool(kb, candidates, discussion):
            writer.row(option)
        pool = len(writer.rows)
        writer.shared = pool if candidates and discussion else 0
        for exchange in read_exchanges(source.path, frozenset(kb.entities), whole=discussion):
            _add(writer, exchange, discussion)
            responses.append(min(exchange.response, LATER) if discussion else exchange.response)
            if source.task in (1, 4):
                kept.append(msgspec.structs.replace(exchange, context=()))
            advance(1)
        if not writer.examples:
            raise BadInputError(source.path, "holds no exchange with an answer")
        groups = pl.DataFrame({"response": responses})
        writer.store_groups(groups.hstack(_break_downs(kb, kept, source.task)))
    sources = {path.name: "official" for path in (source.path, candidates) if path is not None}
    write_films(out / FILMS, kb)
    card = Card("films", source.task, source.split, writer.examples, len(writer.rows), sources=sources)
    card.knowledge = f"../../{FILMS}"
    write_card(folder, card)
    return folder, [] if discussion else [name for name, _ in list(writer.rows)[pool:]]


def _pool(kb: KnowledgeBase, candidates: Path | None, discussion: bool) -> Iterator[tuple[str, str]]:
    if not discussion:
        yield from ((name, name) for name in kb.entities)
    elif candidates is not None:
        yield from ((option_id(text), text) for text in read_candidates(candidates))


def _add(writer: TaskWriter, exchange: Exchange, discussion: bool) -> None:
    turns = [(MODEL if place % 2 else USER, text) for place, text in enumerate((*exchange.context, exchange.message))]
    correct = [(option_id(name) if discussion else name, name) for name in exchange.answers]
    own = [option for option in correct if writer.row(option) >= writer.shared]
    writer.add(exchange.id, turns, own if writer.shared else None, correct)


def _break_downs(kb: KnowledgeBase, exchanges: Sequence[Exchange], task: int) -> pl.DataFrame:
    """Return the columns to break down by: class of question (table 8) or entity match (table 10)."""
    messages = [exchange.message for exchange in exchanges]
    answers = [exchange.answers for exchange in exchanges]
    columns: dict[str, list[str | None]] = {}
    if task == 1:
        columns["question"] = question_classes(kb, Parser(kb.entities, kb.rank), messages, answers)
    if task == 4:
        replies = [given[0] for given in answers]
        columns["entities"] = [*match_names(Parser(kb.entities, kb.rank), messages, replies)]
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


NAMES = {1: "qa", 2: "recs", 3: "qarecs", 4: "reddit", 5: "joint"}


class LoneExchangeError(BadInputError):
    """Official files hold whole dialogues: read back, an exchange alone would belong to the one written before it."""


def export_films(folder: Path, out: Path, advance: Step) -> Iterator[Path]:
    """Write a task as the official files are: exchanges, and the candidates of task 4."""
    card = read_named_card(folder)
    if card.dataset != "films":
        raise BadInputError(folder / "task.yaml", f"{card.dataset!r} is no film task", field="dataset")
    if card.subtask not in NAMES:
        raise BadInputError(folder / "task.yaml", f"is {card.subtask}; expected 1 to {len(NAMES)}", field="subtask")
    task = load_selection_task(folder)
    unknown = task.examples.filter(pl.col("correct").is_null())["id"]
    if len(unknown):
        problem = "has no answer, which Movie Dialog's files name"
        raise BadInputError(folder / "examples.parquet", problem, f"example {unknown[0]}", "correct")
    path = out / f"task{card.subtask}_{NAMES[card.subtask]}_{card.split}.txt"
    texts = task.options["text"].to_list()
    said: list[str] = []
    with write_atomically(path) as file:
        for name, turns, correct in task.examples.select("id", "turns", "correct").iter_rows():
            before, said = said, [turn["text"] for turn in turns[::2]]
            number = len(said)
            if number > 1 and said[:-1] != before:
                problem = "an exchange without those before it; official files hold whole dialogues"
                raise LoneExchangeError(folder, problem, f"example {name}")
            start = "\n" if number == 1 and file.tell() and card.subtask > 2 else ""
            answers = ", ".join(texts[row] for row in correct)
            file.write(f"{start}{number} {turns[-1]['text']}\t{answers}\n".encode())
            advance(1)
    yield path
    if task.shared:
        path = out / f"task4_reddit_cand-{'valid' if card.split == 'dev' else card.split}.txt"
        with write_atomically(path) as file:
            file.writelines(f"1 {text}\n\n".encode() for text in texts[: task.shared])
        yield path
