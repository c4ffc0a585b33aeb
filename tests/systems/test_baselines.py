import numpy as np
import pytest

from rejoinder.measures.judgement import score
from rejoinder.sample import helpdesk
from rejoinder.systems.baselines import judge_by_mean, judge_by_popularity, judge_by_position, judge_uniformly
from rejoinder.systems.linear_judge import judge_by_words
from rejoinder.tasks import dialeval


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("helpdesk")
    helpdesk.write(folder, 400, seed=5)
    return [dialeval.read_task(folder / f"{split}_en.json") for split in ("train", "test")]


def test_every_run_is_a_distribution_over_the_labels_that_a_row_can_have(tasks):
    train, test = tasks
    known, truth = train.truth(), test.truth()
    runs = (
        judge_uniformly(truth),
        judge_by_popularity(truth),
        judge_by_mean(known, truth),
        judge_by_position(known, truth),
        judge_by_words(train, test),
    )
    for run in runs:
        assert run.distributions.keys() == truth.answers.keys()
        for name, answers in truth.answers.items():
            assert run.distributions[name].sum(axis=1) == pytest.approx(1)
            impossible = judge_uniformly(truth).distributions[name] == 0
            assert (run.distributions[name][impossible] == 0).all()
            assert run.distributions[name].shape == answers.votes.shape


def test_the_mean_is_the_mean_of_the_training_votes(tasks):
    train, test = (task.truth() for task in tasks)
    run = judge_by_mean(train, test)
    assert run.distributions["A"][7] == pytest.approx(train.answers["A"].distribution.mean(axis=0))
    customer = train.answers["nugget"].distribution[train.answers["nugget"].role == 0].mean(axis=0)
    row = int(np.flatnonzero(test.answers["nugget"].role == 0)[3])
    assert run.distributions["nugget"][row] == pytest.approx(customer)


def test_better_judges_score_better(tasks):
    train, test = tasks
    known, truth = train.truth(), test.truth()
    means = {
        run.name: {name: values.mean() for name, values in score(run, truth, ["NMD(A)", "JSD"]).items()}
        for run in (
            judge_uniformly(truth),
            judge_by_mean(known, truth),
            judge_by_position(known, truth),
            judge_by_words(train, test),
        )
    }
    assert means["words"]["NMD(A)"] < means["train mean"]["NMD(A)"] < means["uniform"]["NMD(A)"]
    assert (
        means["words"]["JSD"]
        < means["train mean by turn"]["JSD"]
        < means["train mean"]["JSD"]
        < means["uniform"]["JSD"]
    )


def test_popularity_looks_at_the_truth(tasks):
    truth = tasks[1].truth()
    run = judge_by_popularity(truth)
    assert (run.distributions["S"].argmax(axis=1) == truth.answers["S"].votes.argmax(axis=1)).all()
    assert "oracle" in run.name
