import numpy as np
import polars as pl
import pytest

from rejoinder.measures.selection import score
from rejoinder.systems.retrieval import rank_at_random, rank_by_bm25, rank_by_tfidf
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, OPTION_SCHEMA, SelectionTask

TEXTS = ["restart the network manager", "install the nvidia driver", "check your partition table", "what a nice day"]


def task_of(contexts, options, correct):
    turns = [[{"speaker": "a", "text": text}] for text in contexts]
    ids = [str(number) for number in range(len(contexts))]
    examples = pl.DataFrame({"id": ids, "turns": turns, "options": options, "correct": correct}, schema=EXAMPLE_SCHEMA)
    return SelectionTask(examples, pl.DataFrame({"id": list("wxyz"), "text": TEXTS}, schema=OPTION_SCHEMA))


@pytest.mark.parametrize("rank", [rank_by_tfidf, rank_by_bm25])
def test_shared_words_rank_first(rank):
    contexts = ["my network manager is down", "nvidia driver crash", "partition table gone", "zzz qqq"]
    task = task_of(contexts, [[0, 1, 2, 3]] * 4, [[0], [1], [2], [3]])
    run = rank(task)
    assert score(run, task.truth(), ["R@1"])["R@1"].tolist()[:3] == [1, 1, 1]
    # no shared word: all are tied and keep the order in which they were offered
    assert run.choices.filter(pl.col("example") == 3)["option"].to_list() == list("wxyz")


@pytest.mark.parametrize("rank", [rank_by_tfidf, rank_by_bm25])
def test_examples_without_options_choose_from_the_pool(rank):
    task = task_of(["driver for nvidia"], [None], [[1]])
    assert rank(task).choices["option"][0] == "x"
    assert rank(task).choices.height == 4


def test_random_order_is_seeded_and_fair():
    task = task_of(["x"] * 2000, [[0, 1, 2, 3]] * 2000, [[0]] * 2000)
    first, again, other = (rank_at_random(task, seed) for seed in (1, 1, 2))
    assert first.choices.equals(again.choices)
    assert not first.choices.equals(other.choices)
    assert np.mean(score(first, task.truth(), ["R@1"])["R@1"]) == pytest.approx(0.25, abs=0.04)
