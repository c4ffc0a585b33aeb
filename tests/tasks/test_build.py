import pytest

from rejoinder.tasks.build import Cut, build_task, option_id
from rejoinder.tasks.selection import NONE

WRONG = [(f"wrong {n}", f"bad {n}") for n in range(300)]
CUTS = [Cut((("a", f"question {n}"),), (f"right {n}", f"correct {n}")) for n in range(50)]


def test_every_example_has_as_many_different_options_and_all_correct_ones():
    task = build_task(CUTS, WRONG, candidates=20, seed=1)
    texts = task.options["text"]
    for cut, options, correct in zip(CUTS, task.examples["options"], task.examples["correct"], strict=True):
        assert len(set(options)) == 20
        assert set(texts.gather(correct)) == set(cut.replies)
        assert set(correct) <= set(options)


def test_a_share_of_the_examples_has_no_correct_option():
    task = build_task(CUTS, WRONG, candidates=20, without_answer=0.2, seed=1)
    bare = [n for n, correct in enumerate(task.examples["correct"]) if not len(correct)]
    assert len(bare) == 10
    texts = task.options["text"]
    for n in bare:
        assert len(set(task.examples["options"][n])) == 20
        assert not set(CUTS[n].replies) & set(texts.gather(task.examples["options"][n]))
    assert (task.truth().correct["option"] == NONE).sum() == 10


def test_the_correct_option_has_no_preferred_place():
    task = build_task(CUTS * 20, WRONG, candidates=10, seed=1)
    places = [list(o).index(c[0]) for o, c in zip(task.examples["options"], task.examples["correct"], strict=True)]
    assert all(60 < places.count(place) < 145 for place in range(10))


def test_the_same_seed_gives_the_same_task_and_the_same_text_the_same_id():
    first, second, third = (build_task(CUTS, WRONG, seed=seed, candidates=20) for seed in (1, 1, 2))
    assert first.examples.equals(second.examples)
    assert first.options.equals(second.options)
    assert not first.examples.equals(third.examples)
    assert option_id("sudo") == option_id("sudo") != option_id("sudo ")
    assert len(option_id("x")) == 12


def test_too_few_wrong_options_are_an_error():
    with pytest.raises(ValueError, match="only 4 different wrong options where 18 are needed"):
        build_task(CUTS, WRONG[:2], candidates=20)
