import re
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from rejoinder.errors import UserError
from rejoinder.measures.calibration import calibration_error, of_best_option, of_none
from rejoinder.measures.selection import score
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.abstain import Abstain
from rejoinder.systems.ranking import offered, to_run
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, NONE, OPTION_SCHEMA, SelectionTask
from rejoinder.watch import unwatched

OPTIONS = 20


class Noisy(SelectionSystem):
    """Scores the right option higher, but for noise: where there is none, no score stands out."""

    strength = 3.5

    def predict(self, task, watch=unwatched):
        rng = np.random.default_rng(task.examples.height)
        pairs = offered(task)
        asked_for = task.examples["turns"].list.last().struct.field("text").gather(pairs.example)
        told = self.strength * (asked_for == task.options["text"].gather(pairs.row)).to_numpy()
        return to_run(task, "noisy", pairs, told + rng.normal(size=len(pairs.row)))


class Shares(Noisy):
    """Says the same by shares of each example's options, which sum to 1 whether the right one is there or not."""

    def predict(self, task, watch=unwatched):
        run = super().predict(task)
        share = pl.col("score").exp() / pl.col("score").exp().sum().over("example")
        return SelectionRun("shares", run.choices.with_columns(share))


class Mistaken(Noisy):
    """Puts the right option last."""

    def predict(self, task, watch=unwatched):
        run = super().predict(task)
        return SelectionRun(
            "mistaken", run.choices.with_columns(-pl.col("score")).reverse().sort("example", maintain_order=True)
        )


class Weak(Noisy):
    """Knows little."""

    strength = 0.5


def task_of(examples, seed, without=0.2, size=OPTIONS):
    rng = np.random.default_rng(seed)
    options = [rng.choice(100, size, replace=False).tolist() for _ in range(examples)]
    correct = [[] if rng.random() < without else [own[0]] for own in options]
    table = pl.DataFrame(
        {
            "id": [str(number) for number in range(examples)],
            "turns": [[{"speaker": "a", "text": f"text {own[0]}" if own else "hello"}] for own in correct],
            "options": options,
            "correct": correct,
        },
        schema=EXAMPLE_SCHEMA,
    )
    texts = [f"text {number}" for number in range(100)]
    return SelectionTask(table, pl.DataFrame({"id": texts, "text": texts}, schema=OPTION_SCHEMA))


def trained(dev, ranker=Noisy, **settings):
    system = Abstain(Abstain.Settings("noisy", **settings))
    system.parts = [ranker(None)]
    system.fit(Lesson(train=dev, dev=dev, work=Path("unused")))
    return system


@pytest.fixture(scope="module")
def asked():
    return task_of(3001, seed=2)


def test_none_takes_its_place_by_its_probability(asked):
    run = trained(task_of(1000, seed=1)).predict(asked)
    truth = asked.truth()
    assert run.choices.group_by("example").len()["len"].unique().to_list() == [OPTIONS + 1]
    assert run.choices.group_by("example").agg(pl.col("score").sum())["score"].to_numpy() == pytest.approx(1)
    assert calibration_error(of_none(run, truth)) < 0.03
    assert calibration_error(of_best_option(run, truth)) < 0.05


@pytest.mark.parametrize("without", [0.0, 0.2])
def test_a_ranker_that_shares_one_whole_among_its_options_is_as_well_calibrated(asked, without):
    run = trained(task_of(1000, seed=1, without=without), ranker=Shares).predict(asked)
    assert calibration_error(of_none(run, asked.truth())) < 0.03


@pytest.mark.parametrize("without", [0.0, 0.2])
@pytest.mark.parametrize(("size", "ranker"), [(5, Noisy), (5, Weak), (20, Weak), (100, Weak)])
def test_how_long_a_list_is_tells_nothing_of_none(size, ranker, without):
    run = trained(task_of(1000, seed=1, without=without, size=size), ranker=ranker)
    often = task_of(3001, seed=2, size=size)
    assert calibration_error(of_none(run.predict(often), often.truth())) < 0.05


def test_abstaining_scores_better_than_always_answering(asked):
    truth = asked.truth()
    always = score(Noisy(None).predict(asked), truth, ["DSTC7"])["DSTC7"].mean()
    perhaps = score(trained(task_of(1000, seed=1)).predict(asked), truth, ["DSTC7"])["DSTC7"].mean()
    answered = task_of(3001, seed=2, without=0.0)
    subtask_1 = score(Noisy(None).predict(answered), answered.truth(), ["DSTC7"])["DSTC7"].mean()
    assert perhaps > always + 0.1
    assert perhaps > subtask_1 - 0.05


def test_it_can_be_learned_where_every_example_has_an_answer(asked):
    system = trained(task_of(1000, seed=1, without=0.0))
    assert calibration_error(of_none(system.predict(asked), asked.truth())) < 0.03


def test_none_is_as_frequent_as_on_dev():
    system = trained(task_of(1000, seed=1, without=0.5))
    often = task_of(3001, seed=2, without=0.5)
    assert calibration_error(of_none(system.predict(often), often.truth())) < 0.03


@pytest.mark.parametrize("precision", [0.8, 0.95])
def test_a_wanted_precision_is_kept(asked, precision):
    run = trained(task_of(2000, seed=1), precision=precision).predict(asked)
    first = run.choices.group_by("example", maintain_order=True).first()
    given = first.filter(pl.col("option") != NONE)
    right = given.join(asked.truth().correct, on=["example", "option"], how="semi").height
    assert right / given.height > precision - 0.03
    assert given.height > 500


def test_it_tells_how_many_a_wanted_precision_leaves(asked):
    dev = task_of(2000, seed=1)
    system = trained(dev, precision=0.9)
    [note] = system.notes
    found = re.fullmatch(
        r"on dev a precision of 0\.9 is reached from a confidence of (0\.\d+) on: by ([\d,]+) of 2,000 examples; .*",
        note,
    )
    assert found is not None
    run = system.predict(dev).choices.group_by("example", maintain_order=True).first()
    answered = run.filter(pl.col("option") != NONE).height
    assert float(found[1]) == pytest.approx(system.learned.threshold, abs=1e-3)
    assert int(found[2].replace(",", "")) == pytest.approx(answered, rel=0.05)  # by fifths, not by all of dev


def test_examples_that_have_none_first_anyway_do_not_count_as_answered():
    dev = task_of(3000, seed=1, without=0.7)
    system = trained(dev, precision=0.5)
    first = system.predict(dev).choices.group_by("example", maintain_order=True).first()
    answered = first.filter(pl.col("option") != NONE).height
    assert "is reached wherever an option is likelier than NONE, so that" in system.notes[0]
    told = re.search(r"by ([\d,]+) of 3,000", system.notes[0])
    assert told is not None and int(told[1].replace(",", "")) == pytest.approx(answered, rel=0.05)


def test_lists_of_another_length_than_those_learned_from_are_noted(asked):
    system = trained(task_of(500, seed=1))
    assert system.predict(asked).notes == ()
    options = asked.examples["options"]
    shorter = asked.examples.with_columns(options=options.list.head(3), correct=pl.lit(None, dtype=options.dtype))
    [note] = system.predict(msgspec.structs.replace(asked, examples=shorter)).notes
    assert note.endswith("is not to be trusted with 3; train it on such lists")


def test_it_is_saved_and_loaded(asked, tmp_path):
    system = trained(task_of(500, seed=1), precision=0.9)
    system.save(tmp_path)
    again = Abstain(system.settings)
    again.parts = system.parts
    again.load(tmp_path)
    assert isinstance(again.predict(asked), SelectionRun)
    assert again.predict(asked).choices.equals(system.predict(asked).choices)


def test_what_cannot_be_learned_is_said():
    with pytest.raises(UserError, match="learned on dev"):
        Abstain(Abstain.Settings("noisy")).check(Lesson(train=task_of(5, 1), work=Path("unused")))
    with pytest.raises(UserError, match=r"no confidence reaches a precision of 0\.9 in 10 or more examples"):
        trained(task_of(200, seed=1), ranker=Mistaken, precision=0.9)
    with pytest.raises(UserError, match="no confidence reaches"):  # right as its one or two surest may be
        trained(task_of(300, seed=1, size=100), ranker=Weak, precision=0.6)
    for settings in ({"precision": 1.01}, {"share": -1}):
        with pytest.raises(ValueError, match="expected 0 to 1"):
            Abstain.Settings("noisy", **settings)
    with pytest.raises(UserError, match="nothing can be learned"):
        trained(task_of(50, seed=1, without=1.0))


class Overlooking(Noisy):
    """Does not find the right option of every third example, as a search of a pool may not."""

    def predict(self, task, watch=unwatched):
        run = super().predict(task)
        right = task.examples["correct"].list.first().fill_null(10**6).gather(run.choices["example"])
        missed = (run.choices["option"] == ("text " + right.cast(pl.String))) & (run.choices["example"] % 3 == 0)
        return SelectionRun("overlooking", run.choices.filter(~missed))


def test_an_answer_that_was_not_found_is_not_taken_for_none():
    for without in (0.1, 0.4):
        dev, test = task_of(1000, seed=1, without=without), task_of(1000, seed=2, without=without)
        system = trained(dev, ranker=Overlooking)
        answered = dev.examples["correct"].list.len() > 0
        unfound = int(answered.gather_every(3).sum())
        assert system.notes == [
            f"the ranker did not find the answers of {unfound} of dev's {answered.sum()} that have one"
        ]
        found = of_none(system.predict(test), test.truth())
        assert found.confidence.mean() == pytest.approx(without, abs=0.05)
        assert calibration_error(found) < 0.1


class Blind(Noisy):
    """Finds no right option at all."""

    def predict(self, task, watch=unwatched):
        run = super().predict(task)
        right = task.examples["correct"].list.first().fill_null(10**6).gather(run.choices["example"])
        return SelectionRun("blind", run.choices.filter(pl.col("option") != "text " + right.cast(pl.String)))


def test_a_ranker_that_finds_nothing_teaches_nothing():
    with pytest.raises(UserError, match="found the right option of no example of dev"):
        trained(task_of(60, seed=1, without=0.2), ranker=Blind)


def test_options_are_the_less_likely_the_more_often_the_right_one_is_missed():
    dev, test = task_of(3000, seed=1), task_of(3000, seed=2)
    run = trained(dev, ranker=Overlooking).predict(test)
    best = of_best_option(run, test.truth())
    assert best.confidence.mean() == pytest.approx(best.right.mean(), abs=0.03)
    assert calibration_error(best) < 0.06
    totals = run.choices.group_by("example").agg(pl.col("score").sum())["score"]
    assert totals.max() < 1 + 1e-9
    assert totals.mean() < 0.9  # the rest is that of right options that were not found


def test_a_ranker_that_is_no_good_is_not_turned_around():
    dev = task_of(500, seed=1)
    system = trained(dev, ranker=Mistaken)
    assert system.notes == ["better scores are no righter on dev: all options of an example are taken to be as likely"]
    run, asked_for = system.predict(dev), Mistaken(None).predict(dev)
    assert run.choices.filter(pl.col("option") != NONE)["option"].equals(asked_for.choices["option"])


def test_signals_that_differ_by_rounding_alone_weigh_nothing():
    class Even(Noisy):
        """Scores all alike, but for the last digit."""

        def predict(self, task, watch=unwatched):
            pairs = offered(task)
            return to_run(task, "even", pairs, 0.1 + 1e-16 * (np.arange(len(pairs.row)) % 3))

    dev = task_of(200, seed=1)
    assert of_none(trained(dev, ranker=Even).predict(dev), dev.truth()).confidence == pytest.approx(0.2, abs=0.06)


def test_a_precision_can_be_asked_for_where_all_that_was_found_is_in_one_fifth():
    class Rare(Noisy):
        """Finds the right option of every fifth example."""

        def predict(self, task, watch=unwatched):
            run = super().predict(task)
            right = task.examples["correct"].list.first().fill_null(10**6).gather(run.choices["example"])
            missed = (run.choices["option"] == ("text " + right.cast(pl.String))) & (run.choices["example"] % 5 > 0)
            return SelectionRun("rare", run.choices.filter(~missed))

    with pytest.raises(UserError, match="no confidence reaches"):
        trained(task_of(500, seed=1), ranker=Rare, precision=0.5)
