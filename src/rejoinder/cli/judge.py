"""`rejoinder import helpdesk`, `import dbdc3`, `describe` and `judge`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.app import Csv, Latex, Markdown, app, chosen_style
from rejoinder.cli.build import Out, importing
from rejoinder.cli.chats import (
    Conversation,
    Customers,
    Helpdesks,
    Mask,
    Speaker,
    Text,
    Time,
    columns_of,
    roles_of,
)
from rejoinder.text import counted

if TYPE_CHECKING:
    from rejoinder.judging import Judgements
    from rejoinder.model import ModelCard
    from rejoinder.systems.system import JudgementSystem


@importing.command(
    "helpdesk", epilog="Example: rejoinder import helpdesk chats.csv --helpdesk agent --mask --out chats"
)
def import_helpdesk(
    chats: Annotated[Path, typer.Argument(metavar="CHATS", help="CSV with a header, or JSON lines: a post a line.")],
    out: Out,
    conversation: Conversation = "conversation",
    speaker: Speaker = "speaker",
    text: Text = "text",
    time: Time = "time",
    customer: Customers = None,
    helpdesk: Helpdesks = None,
    mask: Mask = False,
    votes: Annotated[
        Path | None,
        typer.Option("--votes", help="Table of conversation, annotator, question, turn (from 1), label."),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option("--questions", help="YAML that says what was asked. Default: DialEval's A, S, E, nugget."),
    ] = None,
) -> None:
    """Read a support team's own dialogues into a task folder."""
    from rejoinder.corpora.helpdesk import read_dialogues
    from rejoinder.corpora.masking import mask as masked
    from rejoinder.files import fingerprint
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.helpdesk import QUESTIONS, make_task, read_questions
    from rejoinder.tasks.judgement_folder import save_judgement_task

    asked = QUESTIONS if questions is None else read_questions(questions)
    columns, roles = columns_of(conversation, speaker, text, time), roles_of(customer, helpdesk)
    with progress(f"reading {chats.name}", None):
        dialogues = read_dialogues(chats, columns, roles, masked if mask else str)
        task = make_task(dialogues, votes, asked)
    sources = {path.name: fingerprint(path) for path in (chats, votes) if path is not None}
    save_judgement_task(out, task, "helpdesk", sources, masked=mask)
    silent = [question.name for question in asked if question not in task.questions]
    if silent:
        typer.echo(f"note: nobody voted on {', '.join(silent)}: the task does not ask it", err=True)
    left = len(dialogues) - len(task.dialogues)
    if left:
        typer.echo(f"note: left out {counted(left, 'dialogue')} on which nobody voted", err=True)
    typer.echo(f"{counted(len(task.dialogues), 'dialogue')} in {out}", err=True)


@importing.command("dbdc3", epilog="Example: rejoinder import dbdc3 dbdc3/IRIS_100 dbdc3/CIC_115 --out breakdowns")
def import_dbdc3(
    sources: Annotated[list[Path], typer.Argument(metavar="PATH", help="Dialogue files, or folders of them.")],
    out: Out,
) -> None:
    """Read Dialogue Breakdown Detection Challenge dialogues."""
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.dbdc3 import find_files, read_task
    from rejoinder.tasks.judgement_folder import save_judgement_task

    files = find_files(sources)
    with progress("reading dialogues", None):
        task = read_task(files)
    save_judgement_task(out, task, "dbdc3", {source.name: counted(len(files), "file") for source in sources})
    typer.echo(f"{counted(len(task.dialogues), 'dialogue')} in {out}", err=True)


@app.command(epilog="Example: rejoinder describe train_en.json train_cn.json --annotators")
def describe(
    paths: Annotated[list[Path], typer.Argument(metavar="TASK", help="Judgement tasks: folders, or DialEval data.")],
    annotators: Annotated[bool, typer.Option("--annotators", help="Also show each annotator.")] = False,
    csv: Csv = False,
    markdown: Markdown = False,
    latex: Latex = False,
) -> None:
    """Describe dialogues with votes.

    Sizes and lengths, agreement (Krippendorff's alpha), annotators.
    """
    from rejoinder.evaluation import unique_names
    from rejoinder.files import BadInputError
    from rejoinder.report.judged import alpha_table, annotators_table, statistics_table
    from rejoinder.report.output import show
    from rejoinder.runs import run_name
    from rejoinder.tasks.judgement import JudgementTask
    from rejoinder.tasks.load import load_task

    style = chosen_style(csv=csv, markdown=markdown, latex=latex)
    tasks = {}
    for name, path in zip(unique_names([run_name(path) for path in paths], paths), paths, strict=True):
        task = load_task(path)
        if not isinstance(task, JudgementTask):
            raise BadInputError(path, "holds no dialogues to judge")
        tasks[name] = task
    show(statistics_table(tasks), style)
    for name, task in tasks.items():
        if task.votes is not None:
            for tabulate in (alpha_table, annotators_table) if annotators else (alpha_table,):
                typer.echo()
                show(tabulate(name, task), style)


@app.command(epilog="Example: rejoinder judge chats.csv --model judge.model --out judged.csv --report judged.html")
def judge(
    chats: Annotated[
        Path,
        typer.Argument(
            metavar="CHATS", help="Posts (CSV with a header, or JSON lines), a judgement task folder, or DialEval data."
        ),
    ],
    model: Annotated[Path, typer.Option("--model", help="What `rejoinder train` wrote.")],
    out: Annotated[
        Path,
        typer.Option("--out", help="File to write: .csv for a row a dialogue, else JSON lines with all distributions."),
    ],
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write this HTML page: the worst dialogues, trends, the model.")
    ] = None,
    worst: Annotated[int, typer.Option("--worst", min=1, help="Dialogues that the page shows.")] = 30,
    conversation: Conversation = "conversation",
    speaker: Speaker = "speaker",
    text: Text = "text",
    time: Time = "time",
    customer: Customers = None,
    helpdesk: Helpdesks = None,
    mask: Mask = False,
) -> None:
    """Judge dialogues with a trained model.

    How annotators' votes on each dialogue, and on each turn, would be distributed; on request, a report for the team.
    """
    from rejoinder.errors import UserError
    from rejoinder.files import spare_inputs
    from rejoinder.judging import judge as judge_all
    from rejoinder.model import load_model
    from rejoinder.report.judgements import write_judgements
    from rejoinder.report.terminal import progress
    from rejoinder.systems.system import JudgementSystem
    from rejoinder.tasks.helpdesk import read_chats

    card, system = load_model(model)
    spare_inputs(out, chats, model)
    if report is not None:
        spare_inputs(report, chats, model, out)
    if not isinstance(system, JudgementSystem):
        raise UserError(f"{model}: {card.recipe.name} ranks options; expected a model that judges dialogues")
    dialogues = read_chats(chats, columns_of(conversation, speaker, text, time), roles_of(customer, helpdesk), mask)
    found = judge_all(system, dialogues, progress)
    write_judgements(out, found)
    if not found.scales:
        typer.echo("note: none of the model's questions is a scale: no dialogue has an overall score", err=True)
    typer.echo(f"{counted(len(dialogues), 'dialogue')} judged in {out}", err=True)
    if report is not None:
        _write_report(report, chats.name, found, card, system, worst)
        typer.echo(f"report: {report}", err=True)


def _write_report(
    path: Path, title: str, found: "Judgements", card: "ModelCard", system: "JudgementSystem", worst: int
) -> None:
    from rejoinder.judging import follow, trend, unknown_course
    from rejoinder.report.judgements import Report, write_report
    from rejoinder.report.terminal import progress

    shown = found.overall().argsort(kind="stable")[:worst].tolist()  # those without a score last, as they come
    chosen = [found.dialogues[number] for number in shown]
    courses = follow(system, chosen, progress) if found.scales else [unknown_course(dialogue) for dialogue in chosen]
    write_report(path, Report(f"How the dialogues in {title} went", found, shown, courses, trend(found), card))
