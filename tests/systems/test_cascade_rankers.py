from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.systems.small_cascades import Projection, pool_tasks, trained

from rejoinder.errors import UserError
from rejoinder.measures.selection import score
from rejoinder.systems.cascade import FEATURES, Cascade
from rejoinder.systems.ranking import draw_lists, offered, to_run
from rejoinder.systems.stacking import is_correct
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.tasks.selection import SelectionTask


@pytest.fixture(scope="module")
def tasks():
    return pool_tasks()


def test_it_is_said_where_the_best_hold_nothing_right(tasks):
    train, dev, _ = tasks
    anything = np.random.default_rng(0).integers(len(dev.options), size=(20, 1)).tolist()
    correct = pl.Series(anything, dtype=dev.examples["correct"].dtype)
    few = msgspec.structs.replace(dev, examples=dev.examples.head(20).with_columns(correct=correct))
    with pytest.raises(
        UserError, match="none of the best 2 on dev, which tfidf is to rank, is right: let it rank more"
    ):
        trained([train, few, None], rankers={"tfidf": 2}, found=len(dev.options))
    with pytest.raises(UserError, match="the search finds no right option of dev: set `found` higher, or name"):
        trained([train, few, None], found=1)


def test_another_ranker_orders_the_best(tasks):
    test = tasks[2]
    plain, again = trained(tasks).predict(test), trained(tasks, rankers={"tfidf": 5}).predict(test)
    firsts = [run.choices.group_by("example", maintain_order=True).head(5) for run in (plain, again)]
    assert not firsts[0].equals(firsts[1])
    assert score(again, test.truth(), ["MRR"])["MRR"].mean() > score(plain, test.truth(), ["MRR"])["MRR"].mean() - 0.01
    totals = again.choices.group_by("example").agg(pl.col("score").sum())["score"]
    assert totals.max() < 1 + 1e-6


class Knowing(SelectionSystem):
    """Ranks the right option first, if it is among those listed, or all by chance."""

    def __init__(self, right):
        super().__init__(None)
        self.right, self.rng = right, np.random.default_rng(1)

    def predict(self, task, watch=None):
        pairs = offered(task)
        chance = self.rng.random(len(pairs.row))
        if self.right is not None:
            chance = 10.0 * is_correct(_offers(task), self.right.with_columns(pl.col("example").cast(pl.Int64)))
        return to_run(task, "knowing", pairs, chance)


@pytest.mark.parametrize("knows", [0, 1])
def test_of_several_rankers_the_one_that_knows_weighs_most(tasks, knows):
    train, dev, test = tasks
    cascade = Cascade(Cascade.Settings(rankers={"first": 20, "second": 20}))
    rankers = [Knowing(None), Knowing(None)]
    cascade.parts = [Projection(None), *rankers]
    rankers[knows].right = dev.truth().correct
    cascade.fit(Lesson(train=train, dev=dev, work=Path("unused")))
    rankers[knows].right = test.truth().correct
    found = score(cascade.predict(test), test.truth(), ["R@1", "R@20"])
    assert found["R@1"].tolist() == found["R@20"].tolist()
    assert found["R@1"].sum() > 10


def test_each_ranker_is_shown_the_best_by_those_before_it(tasks, monkeypatch):
    train, dev, test = tasks
    cascade = Cascade(Cascade.Settings(rankers={"first": 50, "second": 5}))
    cascade.parts = [Projection(None), Knowing(dev.truth().correct), Knowing(None)]
    cascade.fit(Lesson(train=train, dev=dev, work=Path("unused")))
    cascade.parts[1].right = test.truth().correct
    shown = []
    for part in cascade.parts[1:]:
        asked = part.predict
        monkeypatch.setattr(part, "predict", lambda task, watch, asked=asked: shown.append(task) or asked(task, watch))
    cascade.predict(test)
    assert [task.examples["options"].list.len().median() for task in shown] == [50, 5]
    correct = test.truth().correct.with_columns(pl.col("example").cast(pl.Int64))
    held = [is_correct(_offers(task), correct) for task in shown]
    assert held[0].sum() == held[1].sum() > 10


def _offers(task):
    pairs = offered(task)
    return pl.DataFrame({"example": pairs.example, "option": task.options["id"].gather(pairs.row)})


def test_what_is_known_of_candidates_weighs_anew_among_the_best(tasks):
    """By the ranker alone all are alike: what the search has learned of words and meaning is not lost."""
    cascade, dev = Cascade(Cascade.Settings(rankers={"even": 50})), tasks[1]
    cascade.parts = [Projection(None), Even(None)]
    cascade.fit(Lesson(train=tasks[0], dev=dev, work=Path("unused")))
    assert cascade.rank_weights.shape == (1, FEATURES + 1)
    assert abs(cascade.rank_weights[0, -1]) < 1e-9
    plain, again = trained(tasks).predict(tasks[2]), cascade.predict(tasks[2])
    first, second = (score(run, tasks[2].truth(), ["MRR"])["MRR"].mean() for run in (plain, again))
    assert abs(first - second) < 0.03


class Even(SelectionSystem):
    """Has no opinion."""

    def predict(self, task, watch=None):
        pairs = offered(task)
        return to_run(task, "even", pairs, np.ones(len(pairs.row)))


def test_another_ranker_is_shown_what_was_found_and_not_the_pool(tasks, monkeypatch):
    shown, test = [], tasks[2]
    cascade = trained(tasks, rankers={"tfidf": 5})
    ranker = cascade.parts[1].predict
    monkeypatch.setattr(cascade.parts[1], "predict", lambda task, watch: shown.append(task) or ranker(task, watch))
    few = SelectionTask(test.examples.head(3), test.options)
    cascade.predict(few)
    assert 5 <= shown[0].options.height <= 15 < test.options.height
    first = trained(tasks).predict(few).choices.filter(pl.col("example") == 2)["option"].head(5)
    assert set(first) == set(shown[0].options["id"].gather(shown[0].examples["options"][2].to_numpy()))


def test_another_ranker_learns_from_lists_drawn_from_the_pool(tasks):
    cascade, dev = Cascade(Cascade.Settings(rankers={"tfidf": 20})), tasks[1]
    listed = cascade.dev_of_parts(dev, seed=1)
    assert listed.options.height < dev.options.height
    assert listed.truth().correct.equals(dev.truth().correct)
    assert listed.examples["options"].list.len().unique().to_list() == [100]
    held = listed.examples.select(pl.col("options").list.contains(pl.col("correct").list.first()).all()).item()
    assert held
    assert cascade.dev_of_parts(dev, seed=1).examples.equals(listed.examples)
    assert cascade.dev_of_parts(listed, seed=1) is listed


def test_an_empty_list_in_a_block_of_its_own_is_ranked_anew_too(tasks, monkeypatch, tmp_path):
    """A ranker is asked block by block; in the last one no example may have an option."""
    monkeypatch.setattr("rejoinder.systems.cascade._LISTS", 1)
    lists = draw_lists(tasks[1], seed=0, count=5)
    few = lists.examples.head(3)
    empty = pl.Series([*few["options"].to_list()[:2], []], dtype=few["options"].dtype)
    cascade = trained([tasks[0], lists, lists], rankers={"unused": 20})
    run = cascade.predict(msgspec.structs.replace(lists, examples=few.with_columns(options=empty)))
    assert run.choices["example"].unique().sort().to_list() == [0, 1]


def test_options_of_one_text_are_ranked_anew_together_or_not_at_all(tasks):
    train, dev, test = tasks
    cascade = trained([train, dev, None], rankers={"tfidf": 5})
    lists = draw_lists(test, 0)
    count, twins = lists.options.height, lists.options.with_columns(id="twin of " + pl.col("id"))
    options = pl.concat([lists.options, twins.select(lists.options.columns)])
    both = lists.examples.with_columns(
        options=pl.col("options").list.concat(pl.col("options").list.eval(pl.element() + count))
    )
    run = cascade.predict(SelectionTask(both.cast(lists.examples.schema), options)).choices
    text = options.select(option="id", text="text")
    scores = run.join(text, on="option").group_by("example", "text").agg(pl.col("score").n_unique())["score"]
    assert scores.max() == 1
