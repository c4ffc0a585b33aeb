"""The whole loop on generated data: sample world, tasks, simple systems, runs, scores, tests, one report.

rejoinder demo --out demo
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console

from rejoinder.comparison import Comparison, Settings
from rejoinder.corpora.films import read_kb
from rejoinder.corpora.ubuntu import HELPER
from rejoinder.evaluation import Request, evaluate
from rejoinder.folders import clear_folder
from rejoinder.recipe import make_system, read_recipe
from rejoinder.report.html import write_html
from rejoinder.report.overview import overview_table
from rejoinder.report.tables import score_table, show_p
from rejoinder.report.terminal import print_table, progress
from rejoinder.runs import dialeval as dialeval_runs
from rejoinder.runs import dstc7 as dstc7_runs
from rejoinder.runs import parquet
from rejoinder.runs.judgement import JudgementRun
from rejoinder.runs.selection import SelectionRun
from rejoinder.sample import advising, films, helpdesk, irc
from rejoinder.statistics import ALPHA
from rejoinder.systems.baselines import judge_by_mean, judge_by_popularity, judge_uniformly
from rejoinder.systems.film_answers import FilmAnswers
from rejoinder.systems.film_recommender import FilmRecommender
from rejoinder.systems.kernel_judge import KernelJudge
from rejoinder.systems.retrieval import Bm25, Random, Tfidf
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.tasks import dialeval, dstc7
from rejoinder.tasks.build import Cut, build_task
from rejoinder.tasks.film_collection import FilmPlan, gather_sources, write_tasks
from rejoinder.tasks.judgement import JudgementTask
from rejoinder.tasks.selection import SelectionTask, load_selection_task
from rejoinder.watch import unheard

Utterances = Sequence[tuple[str, tuple[str, ...]]]
"""A dialogue: each utterance's speaker and all ways to say it."""


_SYSTEMS = {
    "random": "ranks the options in random order",
    "TF-IDF": "ranks by the cosine of TF-IDF vectors of the whole context and the option",
    "BM25": "ranks by BM25 with the whole context as the query",
    "dual encoder": "compares context and option by a small network, trained on other dialogues (dual-encoder-small)",
    "words or none": "stacks TF-IDF and BM25, and says how likely it is that no option is right (recipe words-or-none)",
    "film answers": "looks answers up by learned ways through the knowledge base (recipe films-questions)",
    "popularity": "recommends the films that most people like",
    "svd": "recommends by singular value decomposition of what people like (recipe films-svd)",
    "mixture": "recommends by what people like and by what is known of the films (recipe films-tastes)",
    "uniform": "gives every label the same probability (BL-uniform)",
    "train mean": "gives the mean distribution of the training votes",
    "train mean by turn": "gives that mean for the turn's place and speaker",
    "popularity (oracle)": "looks at the truth and takes its most popular label (BL-popularity): a bound, not a system",
    "kernel": "predicts the distribution from n-grams and cues by kernel ridge regression (recipe kernel-judge)",
}


def run(out: Path, size: int, seed: int) -> Path:
    """Do all of it and return the report's path."""
    clear_folder(out, mark="report.html", parts=("sample", "tasks", "runs", "work"))
    console = Console(stderr=True)
    console.print(f"Generating the sample world in {out / 'sample'} ...")
    _write_world(out / "sample", size, seed)
    console.print("Building tasks, running simple systems, scoring and comparing them ...")
    comparisons = [
        *(_select(out, name, title, *tasks, seed) for name, (title, tasks) in _selection_tasks(size, seed).items()),
        *(_judge(out, language, seed) for language in ("en", "cn")),
    ]
    selection = {_short(c): _means(c) for c in comparisons if c.measures[0].measure.higher_is_better}
    judgement = {_short(c): _means(c) for c in comparisons if not c.measures[0].measure.higher_is_better}
    overviews = [overview_table(selection, "DSTC7"), overview_table(judgement, "NMD(A)", higher_is_better=False)]
    comparisons += [*_films(out, size, seed)]
    for comparison in comparisons:
        print_table(score_table(comparison))
        print()
    finding = _contest(comparisons[0], "dual encoder", "BM25", "MRR")
    print(finding)
    report = out / "report.html"
    with progress("drawing the report", None):
        write_html(report, "Rejoinder on its sample world", comparisons, overviews, _SYSTEMS, finding)
    print(f"Report: {report.resolve()}")
    return report


def _write_world(folder: Path, size: int, seed: int) -> None:
    for world, amount in ((irc, 20 * size), (advising, size // 3), (films, size), (helpdesk, 10 * size)):
        name = world.__name__.rpartition(".")[2]
        with progress(f"generating {name}", None):
            world.write(folder / name, amount, seed)


def _selection_tasks(size: int, seed: int) -> dict[str, tuple[str, tuple[SelectionTask, SelectionTask]]]:
    ubuntu = [
        [(turn.speaker, (turn.text,)) for turn in dialogue.turns] for dialogue in irc.dialogues(2 * size, seed + 1)
    ]
    students = [
        [(said.speaker, (said.text, *said.paraphrases)) for said in dialogue.utterances]
        for dialogue in advising.dialogues(2 * size, seed + 1)
    ]
    return {
        "ubuntu_1": ("Ubuntu, subtask 1: 100 candidates", _tasks(ubuntu, HELPER, seed)),
        "ubuntu_4": ("Ubuntu, subtask 4: perhaps none", _tasks(ubuntu, HELPER, seed, without_answer=0.2)),
        "advising_1": ("Advising, subtask 1: 100 candidates", _tasks(students, "advisor", seed)),
        "advising_3": ("Advising, subtask 3: paraphrases", _tasks(students, "advisor", seed, paraphrases=5)),
    }


def _tasks(
    dialogues: Sequence[Utterances], helper: str, seed: int, without_answer: float = 0.0, paraphrases: int = 1
) -> tuple[SelectionTask, SelectionTask]:
    """Cut each dialogue at random before a turn of the helper's: one half to learn from, the other to be tested on."""
    rng = np.random.default_rng(seed)
    cuts = [_cut(dialogue, helper, paraphrases, rng) for dialogue in dialogues]
    wrong = [ways[:paraphrases] for dialogue in dialogues for speaker, ways in dialogue if speaker == helper]
    half = len(cuts) // 2
    return (
        build_task(cuts[half:], wrong, without_answer=without_answer, seed=seed + 1),
        build_task(cuts[:half], wrong, without_answer=without_answer, seed=seed),
    )


def _cut(dialogue: Utterances, helper: str, paraphrases: int, rng: np.random.Generator) -> Cut:
    places = [place for place, (speaker, _) in enumerate(dialogue) if place > 0 and speaker == helper]
    place = int(rng.choice(places))
    said = tuple((speaker, ways[int(rng.integers(len(ways)))]) for speaker, ways in dialogue[:place])
    return Cut(said, dialogue[place][1][:paraphrases])


def _select(out: Path, name: str, title: str, train: SelectionTask, task: SelectionTask, seed: int) -> Comparison:
    dataset, subtask = name.split("_")
    truth_file = out / "tasks" / f"{dataset}_test_subtask_{subtask}.json"
    dstc7.write_examples(truth_file, dstc7.to_examples(task, "test", int(subtask)))
    truth = task.truth()
    systems: list[SelectionSystem] = [Random(Random.Settings()), Tfidf(Tfidf.Settings()), Bm25(Bm25.Settings())]
    for system in systems:
        system.fit(Lesson(train=train, seed=seed, work=out / "work"))
    runs = [system.predict(task) for system in systems]
    if name == "ubuntu_1":
        runs.append(_dual_encoder(task, out / "work", 6 * len(task.examples), seed))
    if name == "ubuntu_4":
        runs.append(_words_or_none(train, task, out / "work", seed))
    files = [out / "runs" / name / f"{run.name}.json" for run in runs]
    for file, run in zip(files, runs, strict=True):
        dstc7_runs.write(file, run, truth)
    return _compare(truth_file, files, title, seed)


def _dual_encoder(task: SelectionTask, work: Path, size: int, seed: int) -> SelectionRun:
    """Train a small network on every answer of other dialogues, and let it rank."""
    cuts = [
        Cut(tuple((turn.speaker, turn.text) for turn in dialogue.turns[:place]), (dialogue.turns[place].text,))
        for dialogue in irc.dialogues(size, seed + 2)
        for place in range(1, len(dialogue.turns))
        if dialogue.turns[place].speaker == HELPER
    ]
    wrong = [cut.replies for cut in cuts]
    lesson = Lesson(
        train=build_task(cuts[200:], wrong, seed=seed),
        dev=build_task(cuts[:200], wrong, seed=seed),
        seed=seed,
        work=work,
        watch=progress,
    )
    return msgspec.structs.replace(_fitted("dual-encoder-small", lesson).predict(task), name="dual encoder")


def _words_or_none(train: SelectionTask, task: SelectionTask, work: Path, seed: int) -> SelectionRun:
    """Let a system answer that can say that no option is right, which it learns on half of the examples."""
    half = len(train.examples) // 2
    parts = [msgspec.structs.replace(train, examples=part) for part in (train.examples[:half], train.examples[half:])]
    ranker = _fitted("words-or-none", Lesson(train=parts[0], dev=parts[1], seed=seed, work=work))
    return msgspec.structs.replace(ranker.predict(task), name="words or none")


def _fitted(recipe: str, lesson: Lesson[SelectionTask]) -> SelectionSystem:
    """Make a system of a recipe, and its parts before it."""
    system = make_system(read_recipe(recipe))
    assert isinstance(system, SelectionSystem)
    assert lesson.dev is not None
    of_parts = msgspec.structs.replace(lesson, dev=system.dev_of_parts(lesson.dev, lesson.seed))
    system.parts = [_fitted(part, of_parts) for part in system.part_sources()]
    system.fit(lesson)
    return system


def _contest(comparison: Comparison, first: str, second: str, measure: str) -> str:
    """Say which of two runs is better, if that can be told."""
    by = next(by for by in comparison.measures if by.measure.name == measure)
    rows = [by.scores.runs.index(name) for name in (first, second)]
    means, p = by.scores.means[rows], by.test.p[rows[0], rows[1]]
    verdict = "cannot be told apart" if p >= ALPHA else f"{first if means[0] > means[1] else second} is better"
    figures = f"{first} {means[0]:.3f}, {second} {means[1]:.3f} ({measure}, {show_p(p)})"
    return f"{_short(comparison)}: {figures}: {verdict}"


def _films(out: Path, size: int, seed: int) -> Iterator[Comparison]:
    """Answer questions about the sample films, and recommend some."""
    sample, folder = out / "sample" / "films", out / "tasks" / "films"
    sizes = FilmPlan(
        questions=5 * size, recommendations=5 * size, dialogues=4, discussions=4, joint=4, evaluation=size, seed=seed
    )
    sources = gather_sources(read_kb(sample / "movie_kb.txt"), sample / "ratings.csv", None, None, None, ())
    write_tasks(folder, sources, sizes, unheard)
    look_up: list[SelectionSystem] = [Random(Random.Settings()), FilmAnswers(FilmAnswers.Settings())]
    recommenders: list[SelectionSystem] = [
        FilmRecommender(FilmRecommender.Settings(method)) for method in ("popularity", "svd", "mixture")
    ]
    for number, title, measures, systems in (
        (1, "Films: questions", ("hits@1", "hits@10"), look_up),
        (2, "Films: recommendations", ("hits@10", "hits@100"), recommenders),
    ):
        place = folder / f"task_{number}"
        train, dev, task = (load_selection_task(place / split) for split in ("train", "dev", "test"))
        files = []
        for system in systems:
            system.fit(Lesson(train=train, dev=dev, seed=seed, work=out / "work"))
            run = system.predict(task)
            files.append(out / "runs" / f"films_{number}" / f"{run.name}.parquet")
            parquet.write_selection(files[-1], run, task.truth())
        request = Request(truth=place / "test", runs=files, measures=measures, settings=Settings(seed=seed))
        yield msgspec.structs.replace(evaluate(request, progress).comparison, title=title)


def _judge(out: Path, language: str, seed: int) -> Comparison:
    folder = out / "sample" / "helpdesk"
    truth_file = folder / f"test_{language}.json"
    train_task, task = (dialeval.read_task(file) for file in (folder / f"train_{language}.json", truth_file))
    train, truth = train_task.truth(), task.truth()
    runs = [
        judge_uniformly(truth),
        judge_by_popularity(truth),
        judge_by_mean(train, truth),
        judge_by_mean(train, truth, by_turn=True),
        _judge_by_features(train_task, task, out, seed),
    ]
    files = [out / "runs" / f"helpdesk_{language}" / f"{run.name}.json" for run in runs]
    for file, run in zip(files, runs, strict=True):
        dialeval_runs.write(file, run, truth)
    return _compare(
        truth_file, files, f"Helpdesk, {'English' if language == 'en' else 'Chinese'}: quality and nuggets", seed
    )


def _judge_by_features(train: JudgementTask, task: JudgementTask, work: Path, seed: int) -> JudgementRun:
    judge = KernelJudge(KernelJudge.Settings())
    judge.fit(Lesson(train=train, seed=seed, work=work, watch=progress))
    return judge.predict(task)


def _compare(truth: Path, runs: Iterable[Path], title: str, seed: int) -> Comparison:
    request = Request(truth=truth, runs=list(runs), settings=Settings(seed=seed))
    return msgspec.structs.replace(evaluate(request, progress).comparison, title=title)


def _short(comparison: Comparison) -> str:
    return comparison.title.partition(":")[0]


def _means(comparison: Comparison) -> dict[str, dict[str, float]]:
    means: dict[str, dict[str, float]] = {}
    for by in comparison.measures:
        for run, mean in zip(by.scores.runs, by.scores.means.tolist(), strict=True):
            means.setdefault(run, {})[by.measure.name] = mean
    return means
