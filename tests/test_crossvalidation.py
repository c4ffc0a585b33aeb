import numpy as np
import pytest
import yaml

from rejoinder.crossvalidation import Folds, crossvalidate
from rejoinder.errors import UserError
from rejoinder.recipe import Recipe, read_recipe
from rejoinder.runs import read_judgement_run
from rejoinder.sample import helpdesk
from rejoinder.systems.baselines import Mean, judge_by_mean
from rejoinder.tasks import dialeval


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("helpdesk")
    helpdesk.write(folder, 60, seed=5)
    return folder


def test_every_dialogue_is_judged_by_what_did_not_see_it(data, tmp_path):
    task = dialeval.read_task(data / "train_en.json")
    run, _ = crossvalidate(read_recipe("mean-by-turn"), task, Folds(count=4, seed=1), tmp_path)
    fold = Folds(count=4, seed=1).of([dialogue.id for dialogue in task.dialogues])
    assert sorted(set(fold.tolist())) == [0, 1, 2, 3]
    for number in range(4):
        seen, unseen = (task.pick(np.flatnonzero(chosen)).truth() for chosen in (fold != number, fold == number))
        expected = judge_by_mean(seen, unseen, by_turn=True)
        for name, answers in task.truth().answers.items():
            assert (run.distributions[name][fold[answers.example] == number] == expected.distributions[name]).all()


def test_translations_fall_into_the_same_fold(data):
    folds = [
        Folds().of([dialogue.id for dialogue in dialeval.read_task(data / f"train_{language}.json").dialogues])
        for language in ("en", "cn")
    ]
    assert (folds[0] == folds[1]).all()
    assert (folds[0] != Folds(seed=1).of([str(3_000_000_000_000_000 + number) for number in range(60)])).any()


def test_the_command_writes_runs_that_can_be_compared(cli, data, tmp_path):
    task = data / "train_en.json"
    code, out, err = cli("crossvalidate", "mean", "bl-uniform", "--task", task, "--folds", 3, "--out", tmp_path)
    assert (code, out.split()) == (0, [str(tmp_path / name) for name in ("mean.json", "bl-uniform.json")]), err
    card = yaml.safe_load((tmp_path / "mean.yaml").read_text())
    assert (card["recipe"]["name"], card["folds"], len(card["training_seconds"])) == (
        "mean",
        {"count": 3, "seed": 0},
        3,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bl-uniform.json",
        "bl-uniform.yaml",
        "mean.json",
        "mean.yaml",
    ]
    code, out, err = cli("compare", task, tmp_path / "mean.json", tmp_path / "bl-uniform.json", "--trials", 100)
    assert code == 0, err


def test_an_interrupted_one_goes_on(cli, data, tmp_path, monkeypatch):
    task, recipe = dialeval.read_task(data / "train_en.json"), read_recipe("mean")
    trained = []

    def tire(system, lesson):
        trained.append(lesson.work.name)
        if len(trained) == 3:
            raise KeyboardInterrupt
        fit(system, lesson)

    fit = Mean.fit
    monkeypatch.setattr(Mean, "fit", tire)
    command = ("crossvalidate", "mean", "--task", data / "train_en.json", "--out", tmp_path)
    assert cli(*command) == (130, "", "interrupted; the same command goes on with what was kept\n")
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    assert cli(*command)[0] == 0
    assert trained == ["fold_0", "fold_1", "fold_2", "fold_2", "fold_3", "fold_4"]
    again, _ = crossvalidate(recipe, task, Folds(), tmp_path / "again")
    written = read_judgement_run(tmp_path / "mean.json", task.truth())
    for name, distribution in again.distributions.items():
        assert written.distributions[name] == pytest.approx(distribution)


def test_what_is_finished_stays_and_what_has_changed_is_done_again(cli, data, tmp_path, save):
    member = save("member.yaml", "{about: '', system: mean-judge}")
    both = save("both.yaml", f"{{about: '', system: judge-ensemble, settings: {{members: [{member}, bl-uniform]}}}}")
    run, task = tmp_path / "out" / "both.json", data / "train_en.json"

    def done_again(*options):
        before = run.stat().st_ino if run.exists() else None
        code, out, err = cli("crossvalidate", both, "--task", task, "--out", run.parent, *options)
        assert (code, out) == (0, f"{run}\n"), err
        assert (run.stat().st_ino != before) != ("both.json: finished before" in err)
        return run.stat().st_ino != before

    assert done_again()
    assert not done_again()
    run.write_text(run.read_text().replace("0", "1", 1))
    assert done_again()
    member.write_text("{about: '', system: mean-judge, settings: {by_turn: true}}")
    assert done_again()
    assert done_again("--seed", 1)
    assert done_again("--folds", 3, "--seed", 1)


def test_a_persons_files_are_not_written_over(cli, data, tmp_path, save):
    """Such as the recipe itself, in the folder that the runs go to."""
    recipe = save("mine.yaml", "{about: '', system: mean-judge}")
    command = ("crossvalidate", recipe, "--task", data / "train_en.json", "--out")
    code, _, err = cli(*command, tmp_path)
    assert (code, err) == (2, f"error: {recipe}: is no card of a cross-validation, and would be overwritten\n")
    assert recipe.read_text() == "{about: '', system: mean-judge}"
    (tmp_path / "out").mkdir()
    run = save("out/mine.json", "precious")
    code, _, err = cli(*command, run.parent)
    assert (code, err) == (2, f"error: {run}: would be overwritten, and {run.with_suffix('.yaml')} does not know it\n")
    assert run.read_text() == "precious"
    assert [path.name for path in run.parent.iterdir()] == ["mine.json"]


@pytest.mark.parametrize("content", [b"", b"PK damaged", None])
def test_a_damaged_fold_is_done_again_with_a_word(data, tmp_path, content):
    task, recipe = dialeval.read_task(data / "train_en.json"), read_recipe("mean")
    expected, _ = crossvalidate(recipe, task, Folds(), tmp_path)
    assert not expected.notes
    damaged = tmp_path / "fold_2.npz"
    if content is None:
        np.savez(damaged, A=np.zeros((1, 5)))
    else:
        damaged.write_bytes(content)
    run, _ = crossvalidate(recipe, task, Folds(), tmp_path)
    assert [note.endswith("; done again") and "fold_2.npz" in note for note in run.notes] == [True]
    assert (run.distributions["nugget"] == expected.distributions["nugget"]).all()


def test_a_folder_that_cannot_be_is_named(cli, data, save):
    out = save("file", "precious") / "folds"
    code, _, err = cli("crossvalidate", "mean", "--task", data / "train_en.json", "--out", out)
    assert (code, err) == (2, f"error: {out}: cannot be written (Not a directory)\n")


def test_tasks_without_votes_are_refused(cli, save, tmp_path):
    path = save("f.json", [{"id": "1", "turns": [{"sender": "customer", "utterances": []}]}])
    code, _, err = cli("crossvalidate", "mean", "--task", path, "--out", tmp_path / "out")
    assert (code, err) == (2, f"error: {path}: holds no dialogues with votes to cross-validate on\n")


def test_an_ensemble_is_trained_with_its_members(data, tmp_path):
    task = dialeval.read_task(data / "train_en.json")
    recipe = Recipe(about="", system="judge-ensemble", settings={"members": ["mean", "bl-uniform"]}, name="both")
    runs = [
        crossvalidate(each, task, Folds(), tmp_path / each.name)[0].distributions["A"]
        for each in (recipe, read_recipe("mean"))
    ]
    assert runs[0] == pytest.approx((runs[1] + 0.2) / 2)


def test_of_what_is_learned_from_as_well_translations_of_the_fold_are_kept_out(data, tmp_path):
    english, chinese = (dialeval.read_task(data / f"train_{language}.json") for language in ("en", "cn"))
    english = english.pick(np.arange(20))
    folds = Folds(count=2)
    run, _ = crossvalidate(read_recipe("mean"), english, folds, tmp_path, also=chinese)
    votes = np.concatenate([task.truth().answers["A"].distribution for task in (english, chinese)])
    fold = folds.of([dialogue.id for task in (english, chinese) for dialogue in task.dialogues])
    expected = np.stack([votes[fold != number].mean(axis=0) for number in fold[:20]])
    assert run.distributions["A"] == pytest.approx(expected)


def test_the_command_names_the_run_after_both(cli, data, tmp_path):
    out = tmp_path / "folds"
    arguments = ("--task", data / "train_en.json", "--also", data / "train_cn.json", "--out", out)
    code, said, _ = cli("crossvalidate", "mean", *arguments)
    assert code == 0
    assert said.strip() == str(out / "mean+train_cn.json")
    assert "also:" in (out / "mean+train_cn.yaml").read_text()


def test_one_dialogue_alone_is_refused_and_two_are_not(data, tmp_path):
    task = dialeval.read_task(data / "train_en.json")
    with pytest.raises(UserError, match=r"too few dialogues to cross-validate \(1\)"):
        crossvalidate(read_recipe("mean"), task.pick(np.arange(1)), Folds(), tmp_path / "one")
    two = task.pick(np.array([0, 1]))
    run, folds = crossvalidate(read_recipe("mean"), two, Folds(count=1000), tmp_path / "two")
    assert len(folds) == 2
    assert run.distributions["A"] == pytest.approx(two.truth().answers["A"].distribution[::-1])
