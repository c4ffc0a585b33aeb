"""A competition on generated data to play with, and runs to hand in: a first, a better, and one with a mistake."""

import json
from datetime import timedelta
from pathlib import Path

from rejoinder.board import audit
from rejoinder.board.competitions import Place, Rules, add_track, create_competition, store_truth
from rejoinder.board.models import Competition, now
from rejoinder.board.scorer_process import ScorerProcess
from rejoinder.board.site import Site
from rejoinder.runs import dialeval as runs
from rejoinder.sample import helpdesk
from rejoinder.systems.baselines import judge_by_mean, judge_uniformly
from rejoinder.tasks import dialeval

QUALITY = [f"{measure}({criterion})" for criterion in "ASE" for measure in ("RSNOD", "NMD")]
NUGGETS = ["JSD", "RNSS"]
_LANGUAGES = {"en": "English", "cn": "Chinese"}
_DESCRIPTION = """
Judge **customer-helpdesk dialogues** as 19 annotators did (the task of NTCIR-15 DialEval-1, on generated data).

- *Quality*: for each dialogue a distribution over the scores -2 to 2 for task accomplishment (A), customer
  satisfaction (S) and effectiveness (E).
- *Nuggets*: for each turn a distribution over the kinds of nugget.

A run is a JSON file in DialEval's format. The folder `sample/` within the board's holds some to hand in as they are;
`test_en.json` and `test_cn.json` there are the dialogues without votes, `train_en.json` and `train_cn.json` with them.
"""


def add_sample(site: Site, size: int = 2_000, seed: int = 0) -> Competition:
    """Generate dialogues, make a competition with four tracks, and write runs to `sample/`."""
    folder = site.folder / "sample"
    helpdesk.write(folder, size, seed)
    start = now()
    rules = Rules(name="Helpdesk dialogues", description=_DESCRIPTION, opens=start, closes=start + timedelta(days=30))
    with site.database.writing() as session:
        competition = create_competition(session, rules)
        audit.note(session, "rejoinder board init", "created a competition", competition.slug)
    with ScorerProcess() as scorer:
        for suffix, language in _LANGUAGES.items():
            for subtask, measures in (("Quality", QUALITY), ("Nuggets", NUGGETS)):
                truth = store_truth(site, [folder / f"test_{suffix}.json"])
                add_track(site, scorer, competition, truth, Place(language, subtask), measures)
    for suffix in _LANGUAGES:
        _write_runs(folder, suffix)
        _hide_votes(folder / f"test_{suffix}.json")
    return competition


def _write_runs(folder: Path, suffix: str) -> None:
    train, test = (dialeval.read_task(folder / f"{split}_{suffix}.json").truth() for split in ("train", "test"))
    runs.write(folder / f"first_{suffix}.json", judge_uniformly(test), test)
    runs.write(folder / f"better_{suffix}.json", judge_by_mean(train, test, by_turn=True), test)
    broken = json.loads((folder / f"better_{suffix}.json").read_text())
    broken[6]["quality"]["A"]["0"] += 0.1
    (folder / f"mistake_{suffix}.json").write_text(json.dumps(broken))


def _hide_votes(path: Path) -> None:
    """Leave of the test what participants get."""
    records = json.loads(path.read_text())
    for record in records:
        del record["annotations"]
    path.write_text(json.dumps(records, ensure_ascii=False))
