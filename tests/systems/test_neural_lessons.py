"""Lessons that a neural ranker cannot learn from, and work that another one must not lose."""

import json
import shutil

import pytest

pytest.importorskip("torch")

from tests.systems.small_networks import TRAINING, cuts, recipe, trained

from rejoinder import training
from rejoinder.errors import UserError
from rejoinder.model import Assignment, train_model
from rejoinder.nn.matching import MatchSettings
from rejoinder.recipe import Recipe
from rejoinder.tasks.build import Cut, build_pool_task, build_task


@pytest.mark.parametrize("match", ["cross", "esim"])
def test_where_nothing_is_wrong_there_is_nothing_to_learn_for_what_reads_both_together(tmp_path, match):
    said = [Cut((("a", f"question {number}"),), (f"answer {number}",)) for number in range(6)]
    task = build_task(said, [("never",)], 1)
    given = Assignment(recipe=recipe(match, "lstm", negatives=2), train=(tmp_path, task))
    with pytest.raises(UserError, match="nothing to learn from: no example has an answer, with something wrong"):
        train_model(given, tmp_path / "model")
    towers = Assignment(recipe=recipe("dot", training=TRAINING | {"epochs": 1}), train=(tmp_path, task))
    assert train_model(towers, tmp_path / "model").train.examples == 6  # the others' replies are wrong


def interrupted(tasks, made, out, **more):
    """Train until the first checkpoint is written."""
    check = training._Loop._check

    def check_once(loop, *given):
        if loop.history:
            raise KeyboardInterrupt
        check(loop, *given)

    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(training._Loop, "_check", check_once)
        trained(tasks, made, out, **more)


def test_a_training_that_was_interrupted_is_not_lost_to_another_recipe(tasks, tmp_path, complaint):
    work, out = tmp_path / "work", tmp_path / "model"
    interrupted(tasks, recipe("dot"), out, work=work)
    other = recipe("dot", training=TRAINING | {"rate": 0.01})
    assert "has trained, or began to" in complaint(trained, tasks, other, out, work=work)
    assert (work / "stage_1" / "checkpoint.pt").is_file()
    interrupted(tasks, recipe("dot"), out)
    told = complaint(trained, tasks, other, out)  # beside the model, where nobody named it
    assert told.startswith(".model.part/work: holds what another recipe, seed or task has trained, or began to; ")
    shutil.rmtree(tmp_path / ".model.part")
    assert not trained(tasks, other, out).notes


@pytest.mark.parametrize("system", ["ensemble", "abstain"])
def test_what_a_part_cannot_answer_is_said_before_it_is_trained(tasks, tmp_path, monkeypatch, system):
    late = tmp_path / "late.yaml"
    late.write_text(json.dumps({"about": "", "system": "neural-ranker", "settings": recipe("late").settings}))
    settings = {"members": ["bm25", str(late)]} if system == "ensemble" else {"ranker": str(late)}
    own = list(cuts(30, 4))
    pool = build_pool_task(own, list(dict.fromkeys(cut.replies[0] for cut in own)), 1)
    monkeypatch.setattr("rejoinder.systems.neural.train", lambda *_: pytest.fail("it was trained"))
    made = Recipe(about="", system=system, settings=settings, name="outer")
    with pytest.raises(UserError, match=r"late.yaml: this network compares words with words"):
        trained(tasks | {"dev": (tasks["dev"][0], pool)}, made, tmp_path / "model")


@pytest.mark.parametrize("setting", ["context", "turns"])
def test_numbers_that_no_array_counts_to_are_refused(setting):
    with pytest.raises(ValueError, match=rf"{setting} is 1{'0' * 30}; expected \d to 2147483647"):
        MatchSettings(**{setting: 10**30})
