import numpy as np
import pytest

from rejoinder.errors import UserError
from rejoinder.model import Assignment, load_model, train_model
from rejoinder.recipe import Recipe, make_system, read_recipe
from rejoinder.sample import helpdesk
from rejoinder.tasks import dialeval


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("helpdesk")
    helpdesk.write(folder, 60, seed=3)
    return folder


def ensemble(**settings):
    return Recipe(about="", system="judge-ensemble", settings=settings)


def test_it_is_the_weighted_mean_of_its_members(files, tmp_path):
    train, test = (files / f"{split}_en.json" for split in ("train", "test"))
    recipe = ensemble(members=["mean", "bl-uniform"], weights=[3, 1])
    train_model(Assignment(recipe=recipe, train=(train, dialeval.read_task(train))), tmp_path / "model")
    task = dialeval.read_task(test)
    _, system = load_model(tmp_path / "model")
    run = system.predict(task)
    mean, uniform = (part.predict(task).distributions for part in system.parts)
    for name, values in run.distributions.items():
        assert values == pytest.approx(0.75 * mean[name] + 0.25 * uniform[name])
        assert values.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("settings", [{"members": []}, {"members": ["mean"], "weights": [1, 1]}])
def test_weights_must_fit_the_members(settings):
    with pytest.raises(UserError, match="as many weights"):
        make_system(ensemble(**settings)).part_sources()


def test_the_best_judge_is_made_of_recipes_that_there_are():
    sources = make_system(read_recipe("best-judge")).part_sources()
    assert [read_recipe(source).system for source in sources] == ["neural-judge", "kernel-judge"]


def test_a_model_says_what_it_learned_from_as_well(files, tmp_path):
    english, chinese = ((path, dialeval.read_task(path)) for path in sorted(files.glob("train_*.json"), reverse=True))
    card = train_model(Assignment(recipe=read_recipe("mean"), train=english, also=chinese), tmp_path / "model")
    assert (card.train.name, card.also.name) == ("train_en.json", "train_cn.json")
    _, both = load_model(tmp_path / "model")
    votes = np.concatenate([task.truth().answers["A"].distribution for _, task in (english, chinese)])
    assert both.predict(english[1]).distributions["A"][0] == pytest.approx(votes.mean(axis=0))
