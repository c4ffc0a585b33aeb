"""`rejoinder build`, `import`, `export` and `disentangle`."""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.app import Json, Seed, app
from rejoinder.text import counted

if TYPE_CHECKING:
    import polars as pl

    from rejoinder.corpora.irc import Post
    from rejoinder.tasks.collection import Description
    from rejoinder.tasks.ubuntu_logs import Links
    from rejoinder.watch import Step

build = typer.Typer(help="Build tasks from raw sources.", no_args_is_help=True)
importing = typer.Typer(help="Read official files, or a team's own, into task folders.", no_args_is_help=True)
disentangle = typer.Typer(help="Say which message of a channel answers which.", no_args_is_help=True)
app.add_typer(build, name="build")
app.add_typer(importing, name="import")
app.add_typer(disentangle, name="disentangle")


class Negatives(StrEnum):
    """How wrong options are chosen."""

    RANDOM = "random"
    HARD = "hard"


class TaskFormat(StrEnum):
    """Official formats of tasks."""

    DSTC7 = "dstc7"
    DIALEVAL = "dialeval"
    MDD = "mdd"


Out = Annotated[Path, typer.Option("--out", help="Folder to write to.")]
NegativesOption = Annotated[
    Negatives,
    typer.Option("--negatives", help="Wrong options at random, as in the paper, or similar to the context (hard)."),
]
Candidates = Annotated[int, typer.Option("--candidates", min=2, help="Options of an example.")]


@build.command(
    epilog="Example: rejoinder build ubuntu --logs logs --model links.model --knowledge manpages --out ubuntu"
)
def ubuntu(
    logs: Annotated[
        list[Path], typer.Option("--logs", metavar="PATH", help="Log files, or folders of them (repeatable).")
    ],
    out: Out,
    model: Annotated[Path | None, typer.Option("--model", help="What `rejoinder disentangle train` wrote.")] = None,
    links: Annotated[
        Path | None,
        typer.Option("--links", help="Folder of NAME.annotation.txt: logs that have one need no model."),
    ] = None,
    knowledge: Annotated[
        str | None,
        typer.Option(
            "--knowledge", help="Manual pages or texts for subtask 5: a folder, or `man` (the machine's own)."
        ),
    ] = None,
    candidates: Candidates = 100,
    pool_size: Annotated[int, typer.Option("--pool-size", min=2, help="Options that subtask 2 shares.")] = 120_000,
    negatives: NegativesOption = Negatives.RANDOM,
    every_cut: Annotated[
        bool, typer.Option("--every-cut", help="Cut training dialogues before every answer, not before one.")
    ] = False,
    drop_known: Annotated[
        bool,
        typer.Option("--drop-known", help="Leave out dev and test examples whose reply train has too, or nearly."),
    ] = False,
    turns: Annotated[
        bool,
        typer.Option("--turns", help="Also write turns/train: every turn of every conversation, to train rankers on."),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Build DSTC7's Ubuntu subtasks from channel logs.

    Subtasks 1, 2, 4 and 5, and the Ubuntu Dialogue Corpus setting.

    Days are split by time: the first 80% of the dialogues train, then 10% each for dev and test.
    """
    from rejoinder.folders import staged_folder
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.collection import write_ubuntu
    from rejoinder.tasks.ubuntu import UbuntuPlan, check_days
    from rejoinder.tasks.ubuntu_logs import days_of, find_logs, gather

    found = find_logs(logs)
    check_days(days_of(found))
    pages = _knowledge(knowledge)
    plan = UbuntuPlan(
        seed=seed,
        candidates=candidates,
        pool_size=pool_size,
        hard=negatives == "hard",
        every_cut=every_cut,
        drop_known=drop_known,
    )
    with staged_folder(out, mark="description.json", kept="links") as stage:
        with progress("untangling logs", len(found)) as advance:
            if model is not None:
                drop_others(stage / "links", model, found)
            gathered = gather(found, _linker(model, links, stage / "links"), pool_size, seed, advance, turns)
        with progress("building subtasks", 9) as advance:
            description = write_ubuntu(stage, gathered, plan, pages, advance)
    tell(description, out)


def _knowledge(source: str | None) -> "pl.DataFrame | None":
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.knowledge import knowledge_files, read_pages

    if source is None:
        return None
    paths = knowledge_files(source)
    with progress("reading knowledge", len(paths)) as advance:
        return read_pages(paths, advance)


def drop_others(made: Path, model: Path, logs: Sequence[Path]) -> None:
    """Keep links that an interrupted build has made if they are by the same model and of the same logs."""
    import shutil

    from rejoinder.files import fingerprint, write_atomically

    sources = "".join(f"{fingerprint(path)} {path.name}\n" for path in (model, *sorted(logs, key=lambda log: log.name)))
    note = made / "sources.txt"
    if not note.is_file() or note.read_text("utf-8") != sources:
        shutil.rmtree(made, ignore_errors=True)
        with write_atomically(note) as file:
            file.write(sources.encode())


def _linker(model: Path | None, given: Path | None, made: Path) -> "Links":
    """Take links from files where they are there, else from the model; those are kept, so that a build can go on."""
    from rejoinder.corpora.irc import read_log
    from rejoinder.corpora.link_files import name_of, read_annotations, write_annotations
    from rejoinder.corpora.link_model import LinkModel
    from rejoinder.files import BadInputError

    if given is not None and not given.is_dir():
        raise BadInputError(given, "is not a folder" if given.exists() else "no such folder")
    loaded = None if model is None else LinkModel.load(model)

    def links(path: Path, posts: "Sequence[Post]") -> Iterable[tuple[int, int]]:
        for folder in (given, made):
            annotation = folder and folder / f"{name_of(path)}.annotation.txt"
            if annotation and annotation.is_file():
                return read_annotations(annotation)
        if loaded is None:
            raise BadInputError(path, "no links; give --model, or --links with a file for this log")
        write_annotations(made / f"{name_of(path)}.annotation.txt", loaded.links(read_log(path)))
        return read_annotations(made / f"{name_of(path)}.annotation.txt")

    return links


@build.command(
    epilog="Example: rejoinder build advising --dialogues dialogues.json --courses courses.json --out advising"
)
def advising(
    dialogues: Annotated[Path, typer.Option("--dialogues", help="Sessions with paraphrases (JSON).")],
    out: Out,
    courses: Annotated[Path | None, typer.Option("--courses", help="Course records (JSON), for subtask 5.")] = None,
    train_size: Annotated[
        int, typer.Option("--train-size", min=1, help="Partial conversations to train on.")
    ] = 100_000,
    candidates: Candidates = 100,
    negatives: NegativesOption = Negatives.RANDOM,
    seed: Seed = 0,
) -> None:
    """Build DSTC7's Advising subtasks from sessions.

    Subtasks 1, 3, 4 and 5, from dialogues with paraphrases.
    """
    from rejoinder.corpora.advising import read_advising, read_courses
    from rejoinder.folders import staged_folder
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.collection import AdvisingPlan, write_advising

    records = list(read_advising(dialogues))
    known = None if courses is None else read_courses(courses)
    plan = AdvisingPlan(seed=seed, train_size=train_size, candidates=candidates, hard=negatives == "hard")
    with staged_folder(out, mark="description.json", kept="") as stage, progress("building subtasks", 4) as advance:
        description = write_advising(stage, records, known, plan, advance)
    tell(description, out)


def tell(description: "Description", out: Path) -> None:
    """Print what was built, and what is to be noted of it."""
    for note in description.notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo((out / "description.md").read_text("utf-8"))
    typer.echo(f"{counted(sum(description.tasks.values()), 'example')} in {out}", err=True)


@importing.command("dstc7", epilog="Example: rejoinder import dstc7 ubuntu_train_subtask_1.json --out ubuntu")
def import_dstc7(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Examples files, gzipped or not.")],
    out: Out,
    pool: Annotated[
        Path | None, typer.Option("--pool", help="Candidate pool of subtask 2. Default: the one beside the file.")
    ] = None,
) -> None:
    """Read DSTC7 examples, a folder for each subtask and split."""
    from rejoinder.files import BadInputError
    from rejoinder.tasks import transfer

    starts = [transfer.start_dstc7(path, out) for path in files]
    _expect_own_folders(files, [start.folder for start in starts])
    if pool is not None and not any(start.pooled for start in starts):
        raise BadInputError(pool, "nothing chooses from it; all examples have options of their own")
    _read_each(files, lambda path, advance: transfer.import_dstc7(path, out, pool, advance))


def _expect_own_folders(files: list[Path], folders: list[Path]) -> None:
    """Refuse files of which one would be written over another."""
    from rejoinder.files import BadInputError

    taken: dict[Path, Path] = {}
    for path, folder in zip(files, folders, strict=True):
        other = taken.setdefault(folder, path)
        if other is not path:
            raise BadInputError(path, f"would be written over {other}, into {folder}; import one of them")


def _read_each(files: list[Path], read: "Callable[[Path, Step], Path]") -> None:
    """Read official files and print the folders that they became."""
    from rejoinder.report.terminal import progress

    for path in files:
        with progress(f"reading {path.name}", None) as advance:
            folder = read(path, advance)
        typer.echo(str(folder))


@importing.command("dialeval", epilog="Example: rejoinder import dialeval train_en.json train_cn.json --out dialeval")
def import_dialeval(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Data files, gzipped or not.")],
    out: Out,
) -> None:
    """Read DialEval data, a folder for each file.

    Folders are named after the files; every vote is kept.
    """
    from rejoinder.tasks import transfer

    _expect_own_folders(files, [transfer.dialeval_folder(path, out) for path in files])
    _read_each(files, lambda path, _: transfer.import_dialeval(path, out))


@importing.command("ubuntu-corpus", epilog="Example: rejoinder import ubuntu-corpus train.csv test.csv --out corpus")
def import_ubuntu_corpus(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="CSV files of the corpus, gzipped or not.")],
    out: Out,
) -> None:
    """Read the Ubuntu Dialogue Corpus, a folder for each split."""
    from rejoinder.tasks.ubuntu_corpus import import_corpus

    _read_each(files, lambda path, advance: import_corpus(path, out, advance))


@app.command(epilog="Example: rejoinder export ubuntu --out official")
def export(
    folder: Annotated[Path, typer.Argument(metavar="TASK", help="A task folder, or a folder of them.")],
    out: Out,
    format_: Annotated[
        TaskFormat | None, typer.Option("--format", help="Official format. Default: the one for each task's kind.")
    ] = None,
) -> None:
    """Write task folders as official files.

    DSTC7's examples, answer keys and pools, Movie Dialog's exchanges, or DialEval's dialogues with their annotations.
    """
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.film_transfer import LoneExchangeError, export_films
    from rejoinder.tasks.transfer import export_dialeval, export_dstc7, official_format, task_folders

    pools: dict[Path, pl.DataFrame] = {}
    tasks = task_folders(folder)
    for task in tasks:
        with progress(f"writing {task.name}", None) as advance:
            chosen = format_ or official_format(task)
            if chosen == "dialeval":
                paths: Iterable[Path] = [export_dialeval(task, out)]
            elif chosen == "mdd":
                paths = export_films(task, out, advance)
            else:
                paths = export_dstc7(task, out, advance, pools)
            try:
                for path in paths:
                    typer.echo(str(path))
            except LoneExchangeError as error:
                if len(tasks) == 1:
                    raise
                typer.echo(f"note: left out: {error}", err=True)


Model = Annotated[Path, typer.Option("--model", help="What `rejoinder disentangle train` wrote.")]


@disentangle.command(
    "train", epilog="Example: rejoinder disentangle train --annotations irc-links/train --out links.model"
)
def train_links(
    annotations: Annotated[Path, typer.Option("--annotations", help="Folder of NAME.raw.txt and NAME.annotation.txt.")],
    out: Annotated[Path, typer.Option("--out", help="The model to write.")],
    seed: Seed = 0,
) -> None:
    """Learn which message answers which from logs with links."""
    from rejoinder.corpora.disentangle import train
    from rejoinder.files import spare_inputs

    spare_inputs(out)
    train(annotations, seed, lambda stage: typer.echo(stage, err=True)).save(out)
    typer.echo(f"model: {out}", err=True)


@disentangle.command(
    "apply", epilog="Example: rejoinder disentangle apply logs/*.txt.gz --model links.model --out links"
)
def apply_links(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG", help="Log files, or folders of them.")],
    model: Model,
    out: Out,
) -> None:
    """Write the links of each log to NAME.annotation.txt."""
    from rejoinder.corpora.disentangle import link_logs
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.ubuntu_logs import find_logs

    found = find_logs(logs)
    with progress("untangling logs", len(found)) as advance:
        for path in link_logs(found, model, out):
            typer.echo(str(path))
            advance(1)


@disentangle.command("score", epilog="Example: rejoinder disentangle score irc-links/dev predicted")
def score_links(
    gold: Annotated[Path, typer.Argument(metavar="GOLD", help="Folder of NAME.annotation.txt by people.")],
    predicted: Annotated[Path, typer.Argument(metavar="PREDICTED", help="Folder of NAME.annotation.txt by a model.")],
    json: Json = False,
) -> None:
    """Score links, and the conversations that they make.

    Precision, recall and F of links and of whole conversations, variation of information, one-to-one overlap.
    """
    import msgspec

    from rejoinder.measures.disentanglement import score_folders
    from rejoinder.report.tables import table_of
    from rejoinder.report.terminal import print_table

    figures = score_folders(gold, predicted)
    if json:
        typer.echo(msgspec.json.encode(figures))
    else:
        rows = [(name, f"{value:.1f}") for name, value in figures.items()]
        note = "100 is perfect by all of them; variation of information is counted down from there"
        print_table(table_of(f"{predicted} against {gold}", ("measure", "percent ↑"), rows, note))
