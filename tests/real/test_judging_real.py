"""Real annotated dialogues: DCH-1 (DialEval-1's training data) and DBDC3."""

import tarfile

import numpy as np
import pytest
from tests.real.data import real

from rejoinder.measures.judgement import score
from rejoinder.recipe import make_system, read_recipe
from rejoinder.runs import read_judgement_run
from rejoinder.runs.convert import write_run
from rejoinder.systems.baselines import judge_by_mean, judge_by_popularity, judge_uniformly
from rejoinder.systems.system import Lesson
from rejoinder.tasks import dbdc3
from rejoinder.tasks.description import describe_judged
from rejoinder.tasks.load import load_task


@pytest.fixture(scope="module")
def breakdowns(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dbdc3")
    with tarfile.open(real("dbdc3-en-dev.tar.xz")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(folder)
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


@pytest.mark.parametrize(
    ("language", "unit", "posts", "length"), [("en", "token", 4.522, 31.986), ("cn", "char", 4.512, 44.568)]
)
def test_statistics_are_those_of_the_paper(language, unit, posts, length):
    """Table 3 gives these for all 2,251 English and 3,700 Chinese dialogues; here, contact details are masked."""
    task = load_task(real(f"dch1/train_{language}.json.gz"))
    data = describe_judged(task)
    assert (data.annotators_per_dialogue, data.unit) == ("19", unit)
    assert data.posts_per_dialogue == pytest.approx(posts, abs=0.001)
    assert data.post_length == pytest.approx(length, rel=0.01)


def test_annotators_agree_somewhat(cli):
    code, out, err = cli("describe", real("dch1/train_en.json.gz"), "--annotators", "--csv")
    assert code == 0, err
    assert "A,dialogue,ordinal,0.261" in out
    assert "nugget,helpdesk,nominal,0.123" in out


@pytest.mark.parametrize(("language", "quality", "nugget"), [("en", 0.8, 0.6), ("cn", 0.8, 0.6)])
def test_a_few_real_dialogues_teach_the_kernel_judge_much(language, quality, nugget, tmp_path):
    task = load_task(real(f"dch1/train_{language}.json.gz"))
    train, test = task.pick(np.arange(300)), task.pick(np.arange(1_000, 1_150))
    truth = test.truth()
    judge = make_system(read_recipe("kernel-judge"))
    judge.fit(Lesson(train=train, work=tmp_path))
    names = ["NMD(A)", "NMD(S)", "NMD(E)", "JSD"]
    own = score(judge.predict(test), truth, names)
    mean = score(judge_by_mean(train.truth(), truth), truth, names)
    by_turn = score(judge_by_mean(train.truth(), truth, by_turn=True), truth, names)
    assert sum(own[name].mean() for name in names[:3]) / sum(mean[name].mean() for name in names[:3]) < quality
    assert own["JSD"].mean() / by_turn["JSD"].mean() < nugget


def test_the_kernel_judge_learns_other_label_sets(breakdowns, tmp_path):
    task = dbdc3.read_task(dbdc3.find_files([breakdowns]))
    train, test = task.pick(np.arange(0, 120)), task.pick(np.arange(120, 180))
    judge = make_system(read_recipe("kernel-judge"))
    judge.fit(Lesson(train=train, work=tmp_path))
    own, mean = (
        score(run, test.truth(), ["NMD(breakdown)", "JSD(breakdown)"])
        for run in (judge.predict(test), judge_by_mean(train.truth(), test.truth()))
    )
    for name in own:
        assert own[name].mean() < mean[name].mean()
