"""DSTC7 Track 1 files (the track's README): examples, candidate pools and answer keys."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl

from rejoinder.files import BadInputError, read_lines, write_atomically
from rejoinder.records import read_json_records, write_json_list
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, NONE, OPTION_SCHEMA, SelectionTask, SelectionTruth, to_pairs

Name = Annotated[str, msgspec.Meta(min_length=1)]
Subtask = Annotated[int, msgspec.Meta(ge=1, le=5)]


class Message(msgspec.Struct, gc=False):
    """One turn of the dialogue so far."""

    speaker: str
    utterance: str


NO_POOL = "has no options of its own; name the pool to choose from (--pool)"
MISSING = "left out or empty here, but not in other records"
_CALLED_NONE = f"an option is called {NONE}, which says that no option is right"


class Candidate(msgspec.Struct, rename={"id": "candidate-id"}, gc=False):
    """One option for the next utterance."""

    id: Name
    utterance: str


class Example(msgspec.Struct, rename="kebab", omit_defaults=True, kw_only=True):
    """One record of an examples file, its fields in the official order.

    Test files may lack the answers, subtask 2 has its options in a pool, and only Advising has profiles.
    """

    data_split: str | msgspec.UnsetType = msgspec.UNSET
    example_id: int | Name
    messages_so_far: list[Message]
    options_for_correct_answers: list[Candidate] | msgspec.UnsetType = msgspec.UNSET
    options_for_next: list[Candidate] | msgspec.UnsetType = msgspec.UNSET
    profile: dict[str, Any] | list[Any] | msgspec.UnsetType = msgspec.UNSET
    scenario: Subtask | msgspec.UnsetType = msgspec.UNSET

    @property
    def options(self) -> list[Candidate]:
        """Return the example's own options; empty where it chooses from a pool."""
        return self.options_for_next or []

    @property
    def correct(self) -> list[Candidate]:
        """Return the correct options; empty where none is correct, or where the answers are held back."""
        return self.options_for_correct_answers or []


def read_examples(path: Path, pool: Mapping[str, str] | None = None) -> Iterator[Example]:
    """Yield checked examples, one at a time; the answers of those without options are in the pool, if one is given."""
    seen: dict[str, int] = {}
    for number, example in read_json_records(path, Example):
        place = f"record {number} (example-id {example.example_id})"
        first = seen.setdefault(str(example.example_id), number)
        if first != number:
            raise BadInputError(path, f"duplicate id, first used by record {first}", place, "example-id")
        options = _distinct(path, place, "options-for-next", example.options)
        correct = _distinct(path, place, "options-for-correct-answers", example.correct)
        if options and not correct <= options:
            missing = min(correct - options)
            raise BadInputError(
                path, f"{missing!r} is not among options-for-next", place, "options-for-correct-answers"
            )
        yield _settled(path, place, example, pool)


def _settled(path: Path, place: str, example: Example, pool: Mapping[str, str] | None) -> Example:
    """Return an example whose answers have the texts of its options or of the pool, whatever their spaces."""
    if not example.correct:
        return example
    own = {option.id: option.utterance for option in example.options}
    offered = own or pool or {}
    for answer in example.correct if pool is not None and not own else ():
        text = offered.get(answer.id)
        if text is None or text.split() != answer.utterance.split():
            problem = "is not in the pool" if text is None else "has another utterance in the pool"
            raise BadInputError(path, f"{answer.id!r} {problem}", place, "options-for-correct-answers")
    if not offered:
        return example
    settled = [Candidate(answer.id, offered[answer.id]) for answer in example.correct]
    return msgspec.structs.replace(example, options_for_correct_answers=settled)


def _distinct(path: Path, place: str, field: str, candidates: list[Candidate]) -> set[str]:
    ids = {candidate.id for candidate in candidates}
    if NONE in ids:
        raise BadInputError(path, _CALLED_NONE, place, field)
    if len(ids) < len(candidates):
        repeated = next(c.id for n, c in enumerate(candidates) if any(c.id == d.id for d in candidates[:n]))
        raise BadInputError(path, f"duplicate candidate {repeated!r}", place, field)
    return ids


def read_task(path: Path, pool: Path | None = None) -> SelectionTask:
    """Read an examples file, and the pool where the examples have no options of their own, into tables."""
    shared = None if pool is None else dict(read_pool(pool))
    return to_task(read_examples(path, shared), shared or {}, path)


def to_task(examples: Iterable[Example], pool: Mapping[str, str], source: Path) -> SelectionTask:
    """Turn examples into tables; the options of a pool, by id, come first."""
    options = {option: row for row, option in enumerate(pool.items())}

    def rows(candidates: list[Candidate]) -> list[int]:
        return [options.setdefault((c.id, c.utterance), len(options)) for c in candidates]

    table: dict[str, list[object]] = {name: [] for name in EXAMPLE_SCHEMA}
    for example in examples:
        table["id"].append(str(example.example_id))
        table["turns"].append([{"speaker": m.speaker, "text": m.utterance} for m in example.messages_so_far])
        table["options"].append(rows(example.options) or None)
        answered = example.options_for_correct_answers is not msgspec.UNSET
        table["correct"].append(rows(example.correct) if answered else None)
    if not table["id"]:
        raise BadInputError(source, "holds no example")
    found = pl.DataFrame(table, schema=EXAMPLE_SCHEMA)
    check_options(source, found)
    return SelectionTask(
        examples=found,
        options=pl.DataFrame(list(options), schema=OPTION_SCHEMA, orient="row"),
    )


def check_options(path: Path, examples: pl.DataFrame) -> None:
    """Refuse examples of which some have options of their own, and some have not."""
    bare = examples.filter(pl.col("options").is_null())["id"]
    if 0 < len(bare) < examples.height:
        raise BadInputError(path, MISSING, f"example-id {bare[0]}", "options-for-next")


def to_examples(task: SelectionTask, split: str, scenario: int) -> Iterator[Example]:
    """Yield a task's examples as official records."""
    texts = [Candidate(*row) for row in task.options.iter_rows()]
    profiles = {} if task.profiles is None else dict(task.profiles.iter_rows())
    for id_, turns, options, correct in task.examples.iter_rows():
        yield Example(
            data_split=split,
            example_id=official_id(id_),
            messages_so_far=[Message(turn["speaker"], turn["text"]) for turn in turns],
            options_for_correct_answers=msgspec.UNSET if correct is None else [texts[row] for row in correct],
            options_for_next=[texts[row] for row in options or ()],
            profile=_profile(id_, profiles[id_]) if id_ in profiles else msgspec.UNSET,
            scenario=scenario,
        )


def _profile(id_: str, text: str) -> dict[str, Any] | list[Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any] | list[Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInputError("profiles.parquet", f"malformed JSON ({error})", f"example {id_}", "profile") from None


def official_id(id_: str) -> int | str:
    """Return an id as the official files write it: a number where it is one."""
    return int(id_) if re.fullmatch("0|[1-9][0-9]{0,17}", id_) else id_


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write an examples file in the official layout."""
    write_json_list(path, iter(examples))


def read_pool(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (candidate id, utterance) of a pool file, lines `id TAB utterance`."""
    seen: set[str] = set()
    for number, line in read_lines(path):
        id_, tab, utterance = line.partition("\t")
        if not tab or not id_:
            raise BadInputError(path, "expected a candidate id, a TAB and its utterance", f"line {number}")
        if id_ == NONE:
            raise BadInputError(path, _CALLED_NONE, f"line {number}", "candidate-id")
        if id_ in seen:
            raise BadInputError(path, f"duplicate candidate {id_!r}", f"line {number}", "candidate-id")
        seen.add(id_)
        yield id_, utterance


def write_pool(path: Path, options: pl.DataFrame) -> None:
    """Write a pool file; line ends and tabs within an utterance become spaces."""
    _check_writable(path, options["id"], "\t\n")
    with write_atomically(path) as file:
        for id_, text in options.iter_rows():
            file.write(f"{id_}\t{' '.join(text.split())}\n".encode())


def _check_writable(path: Path, names: Iterable[str], separators: str) -> None:
    for name in names:
        if any(separator in name for separator in separators) or name != name.strip():
            raise BadInputError(path, f"the format cannot hold the name {name!r}")


def read_answer_key(path: Path) -> SelectionTruth:
    """Read lines `example id TAB answer[,answer...]`; the answer `NONE` says that no option is correct."""
    ids: dict[str, int] = {}
    example, option = [], []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        id_, answers = _parse_answers(path, number, line)
        if id_ in ids:
            raise BadInputError(path, f"duplicate id {id_!r}", f"line {number}", "example id")
        ids[id_] = len(ids)
        example += [ids[id_]] * len(answers)
        option += answers
    if not ids:
        raise BadInputError(path, "holds no answer")
    correct = to_pairs(example, option)
    answers_per_example = correct.group_by("example", maintain_order=True).agg(
        pl.when(pl.col("option").first() == NONE).then(0).otherwise(pl.len()).alias("answers")
    )
    return SelectionTruth(pl.Series("id", list(ids)), correct, groups=answers_per_example.select("answers"))


def _parse_answers(path: Path, number: int, line: str) -> tuple[str, list[str]]:
    id_, tab, rest = line.partition("\t")
    answers = [answer.strip() for answer in rest.split(",")]
    if not tab or not id_.strip() or not all(answers) or "\t" in rest:
        raise BadInputError(path, "expected an example id, a TAB and answers with commas between", f"line {number}")
    if len(set(answers)) < len(answers):
        raise BadInputError(path, "an answer is given twice", f"line {number}", "answer")
    if NONE in answers and len(answers) > 1:
        raise BadInputError(path, "NONE stands beside another answer", f"line {number}", "answer")
    return id_.strip(), answers


def write_answer_key(path: Path, truth: SelectionTruth) -> None:
    """Write an answer key."""
    _check_writable(path, truth.ids, "\t\n")
    _check_writable(path, truth.correct["option"], ",\t\n")
    answers = truth.correct.group_by("example", maintain_order=True).agg(pl.col("option").str.join(","))
    with write_atomically(path) as file:
        for example, joined in answers.iter_rows():
            file.write(f"{truth.ids[example]}\t{joined}\n".encode())
