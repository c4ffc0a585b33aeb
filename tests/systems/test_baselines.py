import numpy as np
import pytest

from rejoinder.errors import UserError
from rejoinder.measures.judgement import score
from rejoinder.recipe import make_system, read_recipe
from rejoinder.sample import helpdesk
from rejoinder.systems.baselines import judge_by_mean, judge_by_popularity, judge_uniformly, look_up, mean_table
from rejoinder.systems.system import Lesson
from rejoinder.tasks import dialeval
from rejoinder.tasks.judgement import Answers, JudgementTask, Question


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("helpdesk")
    helpdesk.write(folder, 400, seed=5)
    return [dialeval.read_task(folder / f"{split}_en.json") for split in ("train", "test")]


def test_every_run_is_a_distribution_over_the_labels_that_a_row_can_have(tasks):
    known, truth = (task.truth() for task in tasks)
    runs = (
        judge_uniformly(truth),
        judge_by_popularity(truth),
        judge_by_mean(known, truth),
        judge_by_mean(known, truth, by_turn=True),
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
    known, truth = (task.truth() for task in tasks)
    means = {
        run.name: {name: values.mean() for name, values in score(run, truth, ["NMD(A)", "JSD"]).items()}
        for run in (
            judge_uniformly(truth),
            judge_by_mean(known, truth),
            judge_by_mean(known, truth, by_turn=True),
        )
    }
    assert means["train mean"]["NMD(A)"] < means["uniform"]["NMD(A)"]
    assert means["train mean by turn"]["JSD"] < means["train mean"]["JSD"] < means["uniform"]["JSD"]


def test_popularity_looks_at_the_truth(tasks):
    truth = tasks[1].truth()
    run = judge_by_popularity(truth)
    assert (run.distributions["S"].argmax(axis=1) == truth.answers["S"].votes.argmax(axis=1)).all()
    assert "oracle" in run.name


def test_places_that_training_did_not_have_get_the_mean_of_their_role():
    question = Question("q", ("a", "b"), ordered=False, roles={"x": ("a", "b"), "y": ("a", "b"), "z": ("a", "b")})
    columns = [np.array(column) for column in ([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1])]
    train = Answers(question, *columns, np.array([[1, 0], [1, 1], [0, 4], [0, 0]], float))
    asked = [np.array(column) for column in ([0, 0, 0, 0], [0, 5, 1, 2], [0, 0, 1, 2])]
    table = mean_table(train, by_turn=True)
    assert look_up(table, Answers(question, *asked, np.zeros((4, 2)))).tolist() == [
        [0.5] * 2,
        [0.5] * 2,
        [0.5] * 2,
        [0.5] * 2,
    ]
    assert table[0, :, 0].tolist() == pytest.approx([0.5, 0.5, np.nan], nan_ok=True)
    assert table[1, :, 0].tolist() == pytest.approx([0.5, np.nan, 0.5], nan_ok=True)


@pytest.mark.parametrize("recipe", ["bl-uniform", "bl-popularity", "mean", "mean-by-turn"])
def test_recipes_do_the_same_after_saving(tasks, tmp_path, recipe):
    train, test = tasks
    system = make_system(read_recipe(recipe))
    system.fit(Lesson(train=train, work=tmp_path))
    before = system.predict(test)
    system.save(tmp_path)
    again = make_system(read_recipe(recipe))
    again.load(tmp_path)
    after = again.predict(test)
    expected = {
        "bl-uniform": judge_uniformly(test.truth()),
        "bl-popularity": judge_by_popularity(test.truth()),
        "mean": judge_by_mean(train.truth(), test.truth()),
        "mean-by-turn": judge_by_mean(train.truth(), test.truth(), by_turn=True),
    }[recipe]
    for name, distribution in expected.distributions.items():
        assert (before.distributions[name] == distribution).all()
        assert (after.distributions[name] == distribution).all()


def test_the_oracle_needs_votes(tasks):
    bare = JudgementTask(tasks[1].dialogues, tasks[1].questions)
    with pytest.raises(UserError, match="it looks at the votes, and this task has none"):
        make_system(read_recipe("bl-popularity")).predict(bare)
