"""The command line: `rejoinder --help`. Commands import what they need when they run, so that help answers at once."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rejoinder.evaluation import Evaluation, Request

app = typer.Typer(
    name="rejoinder",
    help="Choose the next reply in a dialogue, judge how a dialogue went, and prove which system does it better.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


class World(StrEnum):
    """What can be generated."""

    IRC = "irc"
    ADVISING = "advising"
    FILMS = "films"
    HELPDESK = "helpdesk"


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


class RunFormat(StrEnum):
    """Formats of a run file."""

    DIALEVAL = "dialeval"
    DSTC7 = "dstc7"
    PARQUET = "parquet"
    TREC = "trec"


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
        metavar="RUN...",
        help="What systems answered: DSTC7 or DialEval submissions, TREC or Parquet runs.",
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
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
        "--reference", help="Add published rows: dialeval1/english, dstc7/ubuntu/1, moviedialog/qa, ... (repeatable)."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")]
Trials = Annotated[int, typer.Option("--trials", min=100, help="Trials of the randomised Tukey HSD test.")]
Resamples = Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap samples for the 95% intervals.")]


def _version(wanted: bool) -> None:
    if wanted:
        from rejoinder import __version__

        typer.echo(f"rejoinder {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Choose the next reply in a dialogue, judge how a dialogue went, and prove which system does it better.

    Start with `rejoinder demo`.
    """


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
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each run and measure.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX (booktabs).")] = False,
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
    """Score runs against the truth: means with intervals and tie groups.

    The signature below the table says what makes the figures reproducible: the truth's fingerprint, measures, rule for
    ties, seed and version.
    """
    from rejoinder.comparison import Settings
    from rejoinder.evaluation import Request
    from rejoinder.report.output import Style, show_scores

    chosen = [
        style for style, wanted in (("json", json), ("csv", csv), ("markdown", markdown), ("latex", latex)) if wanted
    ]
    if len(chosen) > 1:
        raise typer.BadParameter(f"--{chosen[0]} and --{chosen[1]} exclude each other")
    request = Request(
        truth=truth, runs=runs, measures=measure or (), truth_format=truth_format, run_format=format_, options=options_,
        entities=entities, groups=groups, by=by, alpha=alpha, lenient=lenient, references=reference or (),
        settings=Settings(seed, trials, resamples),
    )  # fmt: skip
    show_scores(_evaluate(request), Style(chosen[0] if chosen else "terminal"), log2)


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
    """Compare runs: which are significantly better than which, by every measure, and whether the measures agree."""
    from rejoinder.comparison import Settings
    from rejoinder.evaluation import Request
    from rejoinder.report.output import show_comparison, write_comparison

    if len(runs) < 2:
        raise typer.BadParameter("a comparison needs at least two runs")
    request = Request(
        truth=truth, runs=runs, measures=measure or (), truth_format=truth_format, run_format=format_, options=options_,
        entities=entities, alpha=alpha, lenient=lenient, references=reference or (),
        settings=Settings(seed, trials, resamples),
    )  # fmt: skip
    comparison = _evaluate(request).comparison
    show_comparison(comparison)
    if out is not None:
        write_comparison(comparison, out)
        typer.echo(f"report: {out / 'report.html'}", err=True)


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
            metavar="TASK=SCORES.json...",
            help="What `rejoinder score --json` printed for each task; or `published` for DSTC7's own results.",
        ),
    ],
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure to order by.")] = "DSTC7",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX (booktabs).")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Show systems by tasks, ordered by average rank over the tasks each entered, and how far the measures agree."""
    from rejoinder.report.output import Style, show_overview

    chosen = [style for style, wanted in (("csv", csv), ("markdown", markdown), ("latex", latex)) if wanted]
    show_overview(results, measure, Style(chosen[0] if chosen else "terminal"))


@app.command(epilog="Example: rejoinder published dialeval1 --table rank_correlation")
def published(
    paper: Annotated[Paper | None, typer.Argument(help="Which paper.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="Which of its tables. Default: list them.")] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", help="Only rows with COLUMN=VALUE (repeatable).")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX (booktabs).")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Print the papers' own result tables, with what is known to be wrong with them."""
    from rejoinder.report.output import Style, show_published

    chosen = [style for style, wanted in (("csv", csv), ("markdown", markdown), ("latex", latex)) if wanted]
    show_published(paper, table, where or [], Style(chosen[0] if chosen else "terminal"))


@app.command(epilog="Example: rejoinder sample helpdesk --out helpdesk --size 500 --seed 1")
def sample(
    world: Annotated[
        World,
        typer.Argument(
            help="irc: support-channel logs with true reply links; advising: course advising with paraphrases; films: "
            "knowledge base, ratings, discussions; helpdesk: dialogues with 19 annotators, English and Chinese."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    size: Annotated[
        int, typer.Option("--size", min=1, help="How much: messages (irc), dialogues (advising, helpdesk) or films.")
    ] = 1_000,
    seed: Seed = 0,
) -> None:
    """Generate sample data, so that everything runs with no download."""
    from importlib import import_module

    from rejoinder.report.terminal import progress

    with progress(f"generating {world.value}", total=None):
        import_module(f"rejoinder.sample.{world.value}").write(out, size, seed)
    typer.echo(f"{world.value}: {out}", err=True)


@app.command(epilog="Example: rejoinder convert run.json --truth test.json --to trec --out run.trec")
def convert(
    run: Annotated[Path, typer.Argument(help="A run in any format.")],
    truth: Annotated[Path, typer.Option("--truth", help="The truth that the run answers.")],
    to: Annotated[RunFormat, typer.Option("--to", help="The format to write.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write; gzipped if it ends in .gz.")],
    qrels: Annotated[Path | None, typer.Option("--qrels", help="Also write the truth as TREC judgements.")] = None,
    truth_format: TruthFormatOption = None,
    format_: FormatOption = None,
    lenient: Lenient = False,
) -> None:
    """Convert a run between formats, checked against the truth."""
    from rejoinder.measures.scoring import read_run
    from rejoinder.runs.convert import write_run, write_truth_as_qrels
    from rejoinder.tasks.truth import read_truth

    answers = read_truth(truth, truth_format)
    write_run(out, read_run(run, answers, format_, lenient), answers, to)
    if qrels is not None:
        write_truth_as_qrels(qrels, answers)


@app.command(epilog="Example: rejoinder demo --out demo --size 300")
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")] = Path("demo"),
    size: Annotated[int, typer.Option("--size", min=50, help="Examples in each test set.")] = 300,
    seed: Seed = 0,
) -> None:
    """Run the whole loop on generated data: sample world, tasks, simple systems, scores, tests, one report."""
    from rejoinder.demo import run

    run(out, size, seed)


def main() -> None:
    """Run the command line; a mistake in the input is one line on the error stream and exit code 2."""
    try:
        app()
    except (LookupError, ValueError) as error:
        from rejoinder.files import BadInputError
        from rejoinder.measures.measure import UnknownMeasureError

        if not isinstance(error, BadInputError | UnknownMeasureError | LookupError):
            raise
        typer.echo(f"error: {error.args[0] if error.args else error}", err=True)
        sys.exit(2)
