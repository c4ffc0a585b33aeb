"""Real annotated dialogues: DCH-1 (DialEval-1's training data) and DBDC3."""

import os
import tarfile
from pathlib import Path

import pytest

from rejoinder.measures.judgement import score
from rejoinder.runs import read_judgement_run
from rejoinder.runs.convert import write_run
from rejoinder.systems.baselines import judge_by_popularity, judge_uniformly
from rejoinder.tasks.load import load_task

DATA = Path(os.environ.get("REJOINDER_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def real(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"real data are not here: {name} is missing below REJOINDER_DATA ({DATA})")
    return path


@pytest.fixture(scope="module")
def breakdowns(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dbdc3")
    with tarfile.open(real("dbdc3-en-dev.tar.xz")) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_breakdowns_have_thirty_votes_a_system_turn(cli, breakdowns, tmp_path):
    code, _, err = cli("import", "dbdc3", breakdowns, "--out", tmp_path / "task")
    assert code == 0, err
    truth = load_task(tmp_path / "task").truth()
    votes = truth.answers["breakdown"].votes
    assert len(truth.ids) == 415
    assert votes.sum(axis=0).tolist() == [40_900, 46_432, 37_168]
    assert (votes[truth.answers["breakdown"].voted].sum(axis=1) == 30).all()
    measures = ["NMD(breakdown)", "RSNOD(breakdown)", "JSD(breakdown)", "RNSS(breakdown)"]
    runs = [judge_uniformly(truth), judge_by_popularity(truth)]
    for run in runs:
        write_run(tmp_path / "run.parquet", run, truth, "parquet")
        again = read_judgement_run(tmp_path / "run.parquet", truth)
        scores = score(again, truth, measures)
        assert list(scores) == measures
        assert all(len(values) == 415 and 0 < values.mean() < 1 for values in scores.values())
