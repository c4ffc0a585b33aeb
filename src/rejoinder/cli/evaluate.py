"""`rejoinder score`, `compare`, `overview`, `published` and `convert`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.app import Csv, Json, Latex, Markdown, RunFormat, Seed, app, chosen_style

if TYPE_CHECKING:
    from rejoinder.evaluation import Evaluation, Request


class Paper(StrEnum):
    """Papers whose tables are included."""

    DSTC7 = "dstc7"
    MOVIEDIALOG = "moviedialog"
    DIALEVAL1 = "dialeval1"


class TruthFormat(StrEnum):
    """Formats of a truth file."""

    DIALEVAL = "dialeval"
    DSTC7 = "dstc7"
    KEY = "key"
    MOVIEDIALOG = "moviedialog"
    QRELS = "qrels"
    TASK = "task"


TruthFile = Annotated[
    Path,
    typer.Argument(
        metavar="TRUTH",
        help="What is right: DialEval data, DSTC7 examples or answer key, Movie Dialog, qrels, or a task folder.",
    ),
]
RunFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN",
        help="What systems answered: DSTC7 or DialEval submissions, TREC or Parquet runs.",
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="NAME",
        help="Score by this measure (repeatable): R@k, hits@k, P@k, MRR, MAP, DSTC7, F90; NMD(A), RSNOD(A), JSD, RNSS, "
        "... Default: those of the papers.",
    ),
]
FormatOption = Annotated[
    RunFormat | None, typer.Option("--format", help="Format of the runs. Default: recognised by content.")
]
TruthFormatOption = Annotated[
    TruthFormat | None, typer.Option("--truth-format", help="Format of the truth. Default: recognised by content.")
]
Options = Annotated[
    Path | None,
    typer.Option(
        "--options",
        help="DSTC7 examples or candidate pool: what could be chosen, where the truth does not say. Candidates not "
        "listed there are errors then.",
    ),
]
Entities = Annotated[
    Path | None,
    typer.Option("--entities", help="Movie Dialog entities, one a line: keeps answers whose names hold commas whole."),
]
Alpha = Annotated[
    float,
    typer.Option(
        "--alpha", min=0, max=1, help="Weight of the customer's turns against the helpdesk's in nugget scores."
    ),
]
Lenient = Annotated[
    bool,
    typer.Option(
        "--lenient", help="Mend what can be mended in a run (missing, unknown or doubled entries, sums) and say so."
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="ROWS",
        help="Add published rows: dialeval1/english, dstc7/ubuntu/1, moviedialog/qa, ... (repeatable).",
    ),
]
Trials = Annotated[int, typer.Option("--trials", min=100, help="Trials of the randomised Tukey HSD test.")]
Resamples = Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap samples for the 95% intervals.")]


@app.command(epilog="Example: rejoinder score test.json run-a.json run-b.json --by turns")
def score(
    truth: TruthFile,
    runs: RunFiles,
    measure: Measures = None,
    by: Annotated[
        str | None,
        typer.Option("--by", help="Break down by this column: turns, answers, response, or one of --groups."),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option("--groups", help="CSV, TSV or Parquet with a column `id` and columns to break down by."),
    ] = None,
    json: Json = False,
    csv: Csv = False,
    markdown: Markdown = False,
    latex: Latex = False,
    log2: Annotated[
        bool, typer.Option("--log2", help="Show -log2 of each mean of a distance, as DialEval-1's site did.")
    ] = False,
    format_: FormatOption = None,
    truth_format: TruthFormatOption = None,
    options_: Options = None,
    entities: Entities = None,
    alpha: Alpha = 0.5,
    lenient: Lenient = False,
    reference: References = None,
    seed: Seed = 0,
    trials: Trials = 10_000,
    resamples: Resamples = 2_000,
) -> None:
    """Score runs against the truth: means, intervals, tie groups.

    The signature below the table says what makes the figures reproducible: the truth's fingerprint, measures, rule for
    ties, seed and version.
    """
    from rejoinder.comparison import Settings
    from rejoinder.evaluation import Request
    from rejoinder.report.output import show_scores

    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    if groups is not None and by is None:
        raise typer.BadParameter("--groups needs --by to say which of its columns to break down by")
    request = Request(
        truth=truth, runs=runs, measures=measure or (), truth_format=truth_format, run_format=format_, options=options_,
        entities=entities, groups=groups, by=by, alpha=alpha, lenient=lenient, references=reference or (),
        settings=Settings(seed, trials, resamples),
    )  # fmt: skip
    show_scores(_evaluate(request), style, log2)


@app.command(epilog="Example: rejoinder compare test.json runs/*.json --out comparison")
def compare(
    truth: TruthFile,
    runs: RunFiles,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for report.html, charts (SVG, PNG) and tables (CSV, Markdown, LaTeX)."),
    ] = None,
    measure: Measures = None,
    format_: FormatOption = None,
    truth_format: TruthFormatOption = None,
    options_: Options = None,
    entities: Entities = None,
    alpha: Alpha = 0.5,
    lenient: Lenient = False,
    reference: References = None,
    seed: Seed = 0,
    trials: Trials = 10_000,
    resamples: Resamples = 2_000,
) -> None:
    """Compare runs: which are significantly better than which.

    By every measure; with five runs or more, also whether the measures agree.
    """
    from rejoinder.comparison import Settings
    from rejoinder.evaluation import Request
    from rejoinder.folders import clear_folder
    from rejoinder.report.output import show_comparison, write_comparison

    if len(runs) < 2:
        raise typer.BadParameter("a comparison needs at least two runs")
    request = Request(
        truth=truth, runs=runs, measures=measure or (), truth_format=truth_format, run_format=format_, options=options_,
        entities=entities, alpha=alpha, lenient=lenient, references=reference or (),
        settings=Settings(seed, trials, resamples),
    )  # fmt: skip
    if out is not None:
        clear_folder(out, mark="report.html")
    comparison = _evaluate(request).comparison
    if out is not None:
        write_comparison(comparison, out)
        typer.echo(f"report: {out / 'report.html'}", err=True)
    show_comparison(comparison)


def _evaluate(request: "Request") -> "Evaluation":
    from rejoinder.evaluation import evaluate
    from rejoinder.report.terminal import progress

    evaluation = evaluate(request, progress)
    for note in evaluation.comparison.notes:
        typer.echo(f"note: {note}", err=True)
    return evaluation


@app.command(epilog="Example: rejoinder overview ubuntu-1=u1.json advising-1=a1.json --measure DSTC7")
def overview(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="TASK=SCORES.json",
            help="What `rejoinder score --json` printed for each task; or `published` for DSTC7's own results.",
        ),
    ],
    measure: Annotated[
        str | None,
        typer.Option("--measure", "-m", help="The measure to order by.", show_default="DSTC7, or else the first"),
    ] = None,
    csv: Csv = False,
    markdown: Markdown = False,
    latex: Latex = False,
) -> None:
    """Show systems by tasks, ordered by their average rank.

    The average is over the tasks that each system entered. Also shows how far the measures agree.
    """
    from rejoinder.report.output import show_overview

    show_overview(results, measure, chosen_style(csv=csv, markdown=markdown, latex=latex))


@app.command(epilog="Example: rejoinder published dialeval1 --table rank_correlation")
def published(
    paper: Annotated[Paper | None, typer.Argument(metavar="PAPER", help="Which paper.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="Which of its tables. Default: list them.")] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", metavar="COLUMN=VALUE", help="Only such rows (repeatable).")
    ] = None,
    csv: Csv = False,
    markdown: Markdown = False,
    latex: Latex = False,
) -> None:
    """Print the papers' own result tables.

    With what is known to be wrong with them.
    """
    from rejoinder.report.output import show_published

    show_published(paper, table, where or [], chosen_style(csv=csv, markdown=markdown, latex=latex))


@app.command(epilog="Example: rejoinder convert run.json --truth test.json --to trec --out run.trec")
def convert(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run in any format.")],
    truth: Annotated[Path, typer.Option("--truth", help="The truth that the run answers.")],
    to: Annotated[RunFormat, typer.Option("--to", help="The format to write.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write; gzipped if it ends in .gz.")],
    qrels: Annotated[Path | None, typer.Option("--qrels", help="Also write the truth as TREC judgements.")] = None,
    truth_format: TruthFormatOption = None,
    format_: FormatOption = None,
    options_: Options = None,
    entities: Entities = None,
    lenient: Lenient = False,
) -> None:
    """Convert a run between formats, checked against the truth."""
    from rejoinder.files import spare_inputs
    from rejoinder.measures.scoring import read_run
    from rejoinder.runs.convert import write_run, write_truth_as_qrels
    from rejoinder.tasks.truth import read_truth

    spare_inputs(out, run, truth, options_, entities)
    if qrels is not None:
        spare_inputs(qrels, run, truth, options_, entities, out)
    answers = read_truth(truth, truth_format, options_, entities)
    converted = read_run(run, answers, format_, lenient)
    for note in (*converted.notes, *write_run(out, converted, answers, to)):
        typer.echo(f"note: {note}", err=True)
    if qrels is not None:
        write_truth_as_qrels(qrels, answers)
