"""`rejoinder recipes`, `train`, `predict`, `crossvalidate` and `index`."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from rejoinder.cli.app import Pool, RunFormat, Seed, app, resumable
from rejoinder.text import counted

TaskPath = Annotated[Path, typer.Option("--task", help="A task folder, or an official file.")]

AlsoPath = Annotated[
    Path | None,
    typer.Option("--also", help="Dialogues with votes to learn from as well, such as the same in another language."),
]


@app.command(epilog="Example: rejoinder recipes bm25")
def recipes(
    shown: Annotated[
        str | None, typer.Argument(metavar="[RECIPE]", help="A recipe's name, or YAML file, to show in full.")
    ] = None,
) -> None:
    """List the recipes, or show one in full.

    Settings that it does not name are shown with their defaults: what can be set, and what it is set to.
    """
    from rejoinder.recipe import in_full, names, read_recipe
    from rejoinder.report.tables import table_of
    from rejoinder.report.terminal import print_table

    if shown is not None:
        typer.echo(in_full(read_recipe(shown), Path(shown)), nl=False)
        return
    known = [read_recipe(name) for name in names()]
    films = [recipe for recipe in known if recipe.name.startswith("films-")]
    judges = [recipe for recipe in known if "judge" in recipe.system]
    replies = [recipe for recipe in known if recipe not in films and recipe not in judges]
    for title, found in (("To choose replies", replies), ("\nFor films", films), ("\nTo judge dialogues", judges)):
        print_table(table_of(title, ("recipe", "about"), [(recipe.name, recipe.about) for recipe in found]))
    typer.echo("\nWhich one is for whom, and what it needs: docs/ranking.md, docs/films.md, docs/judging.md")


@app.command(epilog="Example: rejoinder train bm25 --task ubuntu/subtask_1 --out bm25.model")
def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A recipe's name (see `rejoinder recipes`) or YAML file.")
    ],
    task: Annotated[
        Path, typer.Option("--task", help="Folder that holds train/ and dev/, a task folder, or an official file.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the model.")],
    dev: Annotated[
        Path | None, typer.Option("--dev", help="Task to choose settings on; by default dev/ of --task.")
    ] = None,
    also: AlsoPath = None,
    pool: Pool = None,
    work: Annotated[
        Path | None,
        typer.Option("--work", help="Folder of arrays and checkpoints, kept. Default: beside --out, not kept."),
    ] = None,
    prepare_only: Annotated[
        bool,
        typer.Option("--prepare-only", help="Fill --work and stop, to train it elsewhere; then run this without it."),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Train a system by a recipe.

    The same command goes on with a training that was interrupted.

    To train where the data and most libraries are missing: --work WORK --prepare-only here,
    `python -m rejoinder.training FOLDER` there (it says which folder of WORK), bring the folder back, and run the same
    command without --prepare-only.
    """
    from rejoinder.files import BadInputError
    from rejoinder.model import Assignment, card_of, train_model
    from rejoinder.recipe import make_system, read_parts, read_recipe
    from rejoinder.report.learning import draw_curves
    from rejoinder.report.terminal import progress
    from rejoinder.systems.system import Prepared
    from rejoinder.tasks.load import load_task, load_tasks

    if prepare_only and work is None:
        raise BadInputError("--prepare-only", "needs a folder to prepare; name it by --work")
    found = read_recipe(recipe)
    make_system(found, Path(recipe))  # a mistake in the settings should show before the data is read
    if prepare_only and not any(make_system(part).has_network for part in (found, *read_parts(found))):
        raise BadInputError("--prepare-only", f"{found.name} has no network to prepare; train it without")
    if (task / "train").is_dir():
        if dev is None and (task / "dev").is_dir():
            dev = task / "dev"
        task = task / "train"
    if not task.exists():
        raise BadInputError(task, "no such file or folder")
    with progress("reading the task", None):
        read, *checked = load_tasks([task] if dev is None else [task, dev], pool)
        lesson, check = (task, read), None if dev is None else (dev, checked[0])
        more = None if also is None else (also, load_task(also))
    given = Assignment(recipe=found, train=lesson, also=more, dev=check, pool=pool, seed=seed)
    before = card_of(out)
    try:
        with resumable():
            card = train_model(given, out, work, prepare_only, progress)
    except Prepared as prepared:
        typer.echo(f"prepared: train it by `python -m rejoinder.training {prepared}`")
        return
    typer.echo(f"{card.recipe.name}: trained on {counted(card.train.examples, 'example')}, written to {out}")
    if before is not None and before.recipe.name != card.recipe.name:
        typer.echo(f"note: it took the place of a model of {before.recipe.name}")
    curves, without = draw_curves(out)
    for note in (*card.notes, *without):
        typer.echo(f"note: {note}")
    for curve in curves:
        typer.echo(f"how it learned: {curve}")


@app.command(epilog="Example: rejoinder predict bm25.model --task ubuntu/subtask_1/test --out bm25.json")
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `rejoinder train` wrote.")],
    task: TaskPath,
    out: Annotated[Path, typer.Option("--out", help="Run file to write.")],
    format_: Annotated[
        RunFormat | None,
        typer.Option(
            "--format", help="Default: dstc7 or dialeval; parquet for OUT.parquet, negative scores or other questions."
        ),
    ] = None,
    pool: Pool = None,
) -> None:
    """Answer a task with a trained system.

    The run is an official submission, where the official format can hold it.
    """
    from rejoinder.files import spare_inputs
    from rejoinder.model import load_model
    from rejoinder.model import predict as answer
    from rejoinder.report.terminal import progress
    from rejoinder.runs.convert import default_format, write_run
    from rejoinder.tasks.load import load_task

    card, system = load_model(model)
    spare_inputs(out, model, task, pool)
    with progress("reading the task", None):
        asked = load_task(task, pool)
    run = answer(card, system, task, asked, progress)
    rows = asked.unanswered()
    chosen = format_.value if format_ else default_format(run, rows, out)
    for note in (*run.notes, *write_run(out, run, rows, chosen)):
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"{run.name}: {counted(len(rows.ids), 'example')} answered, written to {out} ({chosen})")


@app.command(epilog="Example: rejoinder crossvalidate mean kernel-judge --task dialeval/train_en --out folds")
def crossvalidate(
    recipes: Annotated[list[str], typer.Argument(metavar="RECIPE", help="Recipes' names or YAML files.")],
    task: Annotated[Path, typer.Option("--task", help="Dialogues with votes: a task folder, or DialEval data.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the runs, one for each recipe.")],
    also: AlsoPath = None,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Parts to divide the dialogues into.")] = 5,
    seed: Seed = 0,
) -> None:
    """Judge every dialogue by a system that did not see it.

    The runs, one for each recipe, can be scored and compared.

    The same command goes on with a cross-validation that was interrupted; runs that are finished stay as they are.
    """
    from rejoinder.crossvalidation import Also, Folds, write_crossvalidated
    from rejoinder.files import BadInputError, fingerprint
    from rejoinder.recipe import read_recipe
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.judgement import JudgementTask
    from rejoinder.tasks.load import load_task

    found = [read_recipe(recipe) for recipe in recipes]

    def voted(path: Path) -> JudgementTask:
        asked = load_task(path)
        if not isinstance(asked, JudgementTask) or asked.votes is None:
            raise BadInputError(path, "holds no dialogues with votes to cross-validate on")
        return asked

    asked, parts = voted(task), Folds(count=folds, seed=seed)
    more = None if also is None else Also(also.name.partition(".")[0], voted(also), fingerprint(also))
    for recipe in found:
        with resumable():
            path, notes = write_crossvalidated(out, recipe, asked, fingerprint(task), parts, progress, more)
        for note in notes:
            typer.echo(f"note: {note}", err=True)
        typer.echo(str(path))


@app.command(epilog="Example: rejoinder index cascade.model --task ubuntu/subtask_2/test")
def index(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A cascade, or a model that is made of one.")],
    task: TaskPath,
    pool: Pool = None,
) -> None:
    """Bring a model's index to what a task's pool holds.

    Only new options are encoded, others are kept or removed. A model that is made of cascades has an index for each.

    Not needed before `predict`, which encodes what the index has not; but then it does so each time.
    """
    from rejoinder.folders import alone_in

    with alone_in(model, model) if model.is_dir() else nullcontext():  # from reading what is there until it is changed
        _update_indices(model, task, pool)


def _update_indices(model: Path, task: Path, pool: Path | None) -> None:
    from rejoinder.files import BadInputError
    from rejoinder.model import load_model
    from rejoinder.report.terminal import progress
    from rejoinder.systems.ranking import pools
    from rejoinder.tasks.load import load_task
    from rejoinder.tasks.selection import SelectionTask

    card, system = load_model(model)
    searching = _searching(system)
    if not searching:
        raise BadInputError(model, f"{card.recipe.name} searches no index")
    asked = load_task(task, pool)
    if not isinstance(asked, SelectionTask) or not pools(asked):
        raise BadInputError(task, "has no pool to be indexed; options that are an example's own are not")
    for part in searching:
        added, removed = part.update_index(asked, progress)
        typer.echo(f"{model}: {counted(added, 'option')} added, {removed:,} removed, {len(part.index):,} in the index")


def _searching(system: Any) -> list[Any]:
    """Return a system or those of its parts that search an index; what a cascade is made of never sees the pool."""
    if hasattr(system, "update_index"):
        return [system]
    return [found for part in system.parts for found in _searching(part)]
