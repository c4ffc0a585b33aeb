"""`rejoinder build movies` and `rejoinder import mdd`."""

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.app import Seed
from rejoinder.cli.build import Out, build, importing
from rejoinder.text import counted

Kb = Annotated[Path, typer.Option("--kb", help="movie_kb.txt, or a CSV or Parquet table of films.")]
Entities = Annotated[
    Path | None, typer.Option("--entities", help="Entity list, one name a line; else entities.txt beside --kb.")
]


@build.command(epilog="Example: rejoinder build movies --kb movie_kb.txt --ratings ratings.csv --out movies")
def movies(
    kb: Kb,
    out: Out,
    ratings: Annotated[
        Path | None,
        typer.Option("--ratings", help="MovieLens ratings.csv or ratings.dat, beside movies.csv or movies.dat."),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option("--questions", help="Questions with the entity in [brackets], TAB, answers by |.")
    ] = None,
    threads: Annotated[
        Path | None, typer.Option("--threads", help="Comments as Reddit dumps them, or ReDial; JSON lines.")
    ] = None,
    tags: Annotated[Path | None, typer.Option("--tags", help="MovieLens tags.csv: more facts.")] = None,
    entities: Entities = None,
    official: Annotated[
        list[Path] | None,
        typer.Option(
            "--official",
            metavar="FILE",
            help="Official file to compare with; its questions are not asked (repeatable).",
        ),
    ] = None,
    qa_size: Annotated[int, typer.Option("--qa-size", min=1, help="Questions to train on.")] = 96_000,
    recs_size: Annotated[int, typer.Option("--recs-size", min=1, help="Recommendations to train on.")] = 1_000_000,
    dialogue_size: Annotated[
        int, typer.Option("--dialogue-size", min=1, help="Dialogues of three exchanges to train on.")
    ] = 1_000_000,
    talk_size: Annotated[int, typer.Option("--talk-size", min=1, help="Discussions to train on.")] = 1_000_000,
    joint_size: Annotated[
        int, typer.Option("--joint-size", min=4, help="Exchanges of the joint task to train on.")
    ] = 1_000_000,
    eval_size: Annotated[int, typer.Option("--eval-size", min=4, help="Dialogues of dev, and of test.")] = 10_000,
    candidates: Annotated[int, typer.Option("--candidates", min=1, help="Wrong replies of discussions.")] = 10_000,
    disjoint_entities: Annotated[
        bool, typer.Option("--disjoint-entities", help="Questions of two splits are about different entities.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Build Movie Dialog's five tasks.

    Questions, recommendations, both in one dialogue, discussions, and all jointly; those for which there is a source.
    """
    from rejoinder.corpora.films import read_kb
    from rejoinder.folders import staged_folder
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.film_collection import FilmPlan, gather_sources, write_tasks
    from rejoinder.tasks.film_description import FilmDescription, compare_files, describe_films
    from rejoinder.tasks.film_transfer import sort_files

    plan = FilmPlan(
        questions=qa_size,
        recommendations=recs_size,
        dialogues=dialogue_size,
        discussions=talk_size,
        joint=joint_size,
        evaluation=eval_size,
        candidates=candidates,
        by_entity=disjoint_entities,
        seed=seed,
    )
    known = sort_files(official)[0] if official else []
    with progress("reading sources", None):
        sources = gather_sources(read_kb(kb, entities), ratings, questions, threads, tags, known)
    with staged_folder(out, mark="description.json", kept="") as stage:
        with progress("generating exchanges", plan.exchanges(sources)) as advance:
            tasks = write_tasks(stage, sources, plan, advance)
        found = sources.kb
        users = 0 if sources.likes is None else len(sources.likes)
        compared = compare_files(stage, known, found)
        counts = (len(found.titles), len(found.film), len(found), users)
        describe_films(stage, FilmDescription(*counts, tasks, compared))
    typer.echo((out / "description.md").read_text("utf-8"))
    typer.echo(f"{counted(sum(tasks.values()), 'example')} in {out}", err=True)


@importing.command(
    "mdd", epilog="Example: rejoinder import mdd task1_qa_dev.txt --entities entities.txt --kb movie_kb.txt --out mdd"
)
def import_mdd(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Files of exchanges, and of candidates for task 4; gzipped or not."),
    ],
    out: Out,
    kb: Kb,
    entities: Entities = None,
    task: Annotated[
        int | None, typer.Option("--task", min=1, max=5, help="Which task, where the files' names do not say.")
    ] = None,
) -> None:
    """Read Movie Dialog files, a folder for each task and split."""
    from rejoinder.corpora.films import read_kb
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.film_transfer import import_films, sort_files

    sources, candidates = sort_files(files, task)
    known = read_kb(kb, entities)
    for source in sources:
        with progress(f"reading {source.path.name}", None) as advance:
            folder, others = import_films(source, out, known, candidates.get(source.split), advance)
        if others:
            found = f"{counted(len(others), 'answer')} not among the entities, such as {others[0]!r}"
            typer.echo(f"note: {source.path}: {found}; added to the options", err=True)
        typer.echo(str(folder))
