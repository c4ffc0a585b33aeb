"""How long judges take to train on the real dialogues of DCH-1, and to judge a thousand of them.

Needs DCH-1 below REJOINDER_DATA (default ../shared/data). Every command runs once, a quarter of an hour in all.
"""

import tempfile
from pathlib import Path

from benchmarks.judges import DATA, LANGUAGES, REJOINDER
from benchmarks.measuring import run
from benchmarks.results import Goal, Section, Table, megabytes, seconds
from rejoinder.tasks import dialeval

LIMITS = {"kernel-judge": (1800, 10), "bl-lstm": (300, 10), "bl-lstm-cn": (300, 10), "best-judge": (1800, 60)}
"""Most seconds to train, and to judge a thousand dialogues."""
RECIPES = {"en": ("kernel-judge", "bl-lstm", "best-judge"), "cn": ("kernel-judge", "bl-lstm-cn", "best-judge")}


def measure(quick: bool) -> Section:
    title = "Judges: speed"
    if quick or not (DATA / "dch1").is_dir():
        return Section(title, needs="the real dialogues of DCH-1 in REJOINDER_DATA")
    rows, goals = [], []
    with tempfile.TemporaryDirectory() as folder:
        for language, recipes in RECIPES.items():
            path = DATA / "dch1" / f"train_{language}.json.gz"
            thousands = len(dialeval.read_task(path).dialogues) / 1000
            for recipe in recipes:
                model, out = Path(folder) / f"{recipe}-{language}", Path(folder) / f"{recipe}-{language}.json"
                trained = run([REJOINDER, "train", recipe, "--task", path, "--out", model])
                judged = run([REJOINDER, "predict", model, "--task", path, "--out", out])
                each = judged.seconds / thousands
                rows.append(
                    [LANGUAGES[language], recipe, seconds(trained.seconds), megabytes(trained.peak), seconds(each)]
                )
                most, most_judging = LIMITS[recipe]
                name = f"{LANGUAGES[language]} {recipe}"
                goals += [
                    Goal(f"{name}: trained in {most // 60} minutes", seconds(trained.seconds), trained.seconds <= most),
                    Goal(f"{name}: 1,000 dialogues in {most_judging} s", seconds(each), each <= most_judging),
                ]
    header = ["language", "recipe", "training", "peak memory", "judging 1,000 dialogues"]
    note = "Each command once, on all dialogues of the language; starting and loading are counted."
    return Section(title, [Table("Training and judging on a CPU", header, rows, [note])], goals)
