import numpy as np
import pytest
from scipy import sparse

from rejoinder.measures.judgement import score
from rejoinder.recipe import make_system, read_recipe
from rejoinder.sample import helpdesk
from rejoinder.systems.baselines import judge_by_mean
from rejoinder.systems.grams import Grams, grams, unit_rows
from rejoinder.systems.kernel_ridge import fit
from rejoinder.systems.system import Lesson
from rejoinder.systems.turn_features import TurnTable, describe_dialogues, describe_turns
from rejoinder.tasks import dialeval
from rejoinder.tasks.judgement import JudgementTask, Question


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("helpdesk")
    helpdesk.write(folder, 300, seed=5)
    return {
        language: [dialeval.read_task(folder / f"{split}_{language}.json") for split in ("train", "test")]
        for language in ("en", "cn")
    }


@pytest.fixture(scope="module")
def trained(tasks, tmp_path_factory):
    system = make_system(read_recipe("kernel-judge"))
    system.fit(Lesson(train=tasks["en"][0], work=tmp_path_factory.mktemp("work")))
    return system


@pytest.mark.parametrize("language", ["en", "cn"])
def test_it_is_much_better_than_the_mean(tasks, tmp_path, language):
    train, test = tasks[language]
    system = make_system(read_recipe("kernel-judge"))
    system.fit(Lesson(train=train, work=tmp_path))
    truth = test.truth()
    names = ["NMD(A)", "NMD(S)", "NMD(E)", "JSD"]
    own, mean = (
        {name: values.mean() for name, values in score(run, truth, names).items()}
        for run in (system.predict(test), judge_by_mean(train.truth(), truth, by_turn=True))
    )
    assert sum(own[name] / mean[name] for name in names[:3]) / 3 < 0.9
    assert own["JSD"] / mean["JSD"] < 0.6


def test_what_is_saved_predicts_the_same(tasks, trained, tmp_path):
    _, test = tasks["en"]
    trained.save(tmp_path)
    again = make_system(read_recipe("kernel-judge"))
    again.load(tmp_path)
    before, after = (system.predict(JudgementTask(test.dialogues, test.questions)) for system in (trained, again))
    for name, answers in test.truth().answers.items():
        assert before.distributions[name] == pytest.approx(after.distributions[name])
        assert before.distributions[name].sum(axis=1) == pytest.approx(1)
        assert before.distributions[name].shape == answers.votes.shape
        for role in range(len(answers.question.roles or ())):
            others = [label not in answers.question.allowed(role) for label in answers.question.labels]
            assert not before.distributions[name][answers.role == role][:, others].any()


def test_questions_it_did_not_learn_stay_open(tasks, trained):
    _, test = tasks["en"]
    other = Question("mood", ("good", "bad"), ordered=False)
    run = trained.predict(JudgementTask(test.dialogues, (other, test.questions[1])))
    assert list(run.distributions) == [test.questions[1].name]


def test_posts_without_a_word_are_judged_by_what_is_around_them(tasks, tmp_path):
    train, _ = tasks["en"]
    silent = tuple(type(d)(d.id, tuple(type(t)(t.speaker, ("",)) for t in d.turns)) for d in train.dialogues[:20])
    task = JudgementTask(silent, train.questions, train.pick(np.arange(20)).votes)
    system = make_system(read_recipe("kernel-judge"))
    system.fit(Lesson(train=task, work=tmp_path))
    run = system.predict(task)
    assert run.distributions["nugget"].sum(axis=1) == pytest.approx(1)
    assert len(np.unique(run.distributions["A"].round(6), axis=0)) > 1


def test_rows_have_length_one_or_none():
    from sklearn.preprocessing import normalize

    view = Grams.of(["red blue", "red", "blue red red"]).transform(["red blue blue", "xyz", ""])
    assert np.linalg.norm(view.toarray(), axis=1) == pytest.approx([1, 0, 0])
    counts = sparse.random_array((20, 50), density=0.1, rng=3).tocsr()
    assert unit_rows(counts).toarray() == pytest.approx(normalize(counts).toarray())
    assert unit_rows(counts[:, :0]).shape == (20, 0)


def test_leaving_out_a_group_is_what_fitting_without_it_would_give():
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(["a", "b", "red", "blue", "坏", "了"], 6)) for _ in range(40)]
    view = Grams.of(texts).transform(texts)
    dense = rng.normal(size=(40, 3)).astype(np.float32)
    values = rng.random((40, 2)).astype(np.float32)
    groups = rng.permutation(np.repeat(np.arange(10), 4))
    centred = (values - values.mean(axis=0)).astype(np.float32)
    _, left_out = fit([(1.0, view)], [(2.0, dense)], centred, 0.5, groups)
    kernel = (view @ view.T).toarray()
    scaled = (dense - dense.mean(axis=0)) / dense.std(axis=0)
    kernel += 2 * np.exp(-((scaled[:, None] - scaled) ** 2).sum(axis=2) / 6)
    for group in range(10):
        out, kept = groups == group, groups != group
        alpha = np.linalg.solve(kernel[np.ix_(kept, kept)] + 0.5 * np.eye(36), centred[kept])
        assert left_out[out] == pytest.approx(kernel[np.ix_(out, kept)] @ alpha, abs=2e-4)


def test_prediction_of_training_rows_is_the_smoothed_solution():
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(["a", "b", "red", "blue"], 6)) for _ in range(30)]
    view = Grams.of(texts).transform(texts)
    dense = rng.normal(size=(30, 3)).astype(np.float32)
    values = rng.random((30, 2)).astype(np.float32)
    model, _ = fit([(1.0, view)], [(2.0, dense)], values, 1e-3, np.arange(30))
    assert model.predict([(1.0, view)], [(2.0, dense)]) == pytest.approx(values, abs=0.02)


def test_grams_of_words_and_of_characters():
    assert list(grams("Hi you")) == ["hi", "you", "hi you", "# h", "#hi", "#i ", "# hi", "#hi ", "# hi ", "# y", "#yo",
                                     "#ou", "#u ", "# yo", "#you", "#ou ", "# you", "#you "]  # fmt: skip
    assert list(grams("坏了吗")) == ["坏", "了", "吗", "坏 了", "了 吗", "坏 了 吗"]


def test_features_of_odd_dialogues(tasks):
    en, _ = tasks["en"]
    odd = JudgementTask(
        (
            *(type(d)(d.id, d.turns[:1]) for d in en.dialogues[:2]),
            *(type(d)(d.id, d.turns * 30) for d in en.dialogues[2:4]),
            *(type(d)(d.id, tuple(type(t)("helpdesk", ()) for t in d.turns[:2])) for d in en.dialogues[4:6]),
        ),
        en.questions,
    )
    table = TurnTable.of(odd.dialogues, ("customer", "helpdesk"))
    assert np.isfinite(describe_turns(table, 6)).all()
    features = describe_dialogues(table, 6)
    assert features.shape[0] == 6
    assert features[:2, 0].tolist() == [1, 1]


def test_a_dialogue_in_two_languages_is_left_out_in_both(tasks, trained):
    both = tasks["en"][0].join(tasks["cn"][0])
    group = trained._views(both).group
    ids = [dialogue.id for dialogue in both.dialogues]
    assert len(set(ids)) < len(ids)
    assert len(set(group.tolist())) == len(set(ids)) == len(set(zip(ids, group.tolist(), strict=True)))
