"""Rankers on real dialogues, untangled by hand: what they should reach without any network."""

from pathlib import Path

import numpy as np
import pytest
from tests.real.data import DATA, needs

from rejoinder.corpora.link_files import annotation_files, read_annotations
from rejoinder.measures.selection import score
from rejoinder.systems.abstain import Abstain
from rejoinder.systems.ensemble import Ensemble
from rejoinder.systems.retrieval import Bm25, Random, Tfidf
from rejoinder.systems.system import Lesson
from rejoinder.systems.voice import Voice
from rejoinder.tasks.ubuntu import UbuntuPlan, build_subtasks
from rejoinder.tasks.ubuntu_logs import find_logs, gather

LINKS = DATA / "irc-links" / "train"

pytestmark = needs("irc-links")


@pytest.fixture(scope="module")
def tasks():
    links = annotation_files(LINKS)
    gathered = gather(
        find_logs([LINKS]),
        lambda path, posts: read_annotations(links[path.name.removesuffix(".raw.txt")]),
        pool_size=20_000,
        seed=0,
        advance=lambda _: None,
    )
    return {(s, side): task for s, side, task in build_subtasks(gathered, UbuntuPlan(seed=3, pool_size=20_000))}


def lesson(tasks, subtask):
    return Lesson(train=tasks[subtask, "train"], dev=tasks[subtask, "dev"], work=Path("unused"))


def ranked(system, tasks, subtask, measure):
    test = tasks[subtask, "test"]
    return float(np.mean(score(system.predict(test), test.truth(), [measure])[measure]))


def words(tasks, subtask):
    system = Ensemble(Ensemble.Settings(("tfidf", "bm25")))
    system.parts = [Tfidf(Tfidf.Settings()), Bm25(Bm25.Settings())]
    for part in system.parts:
        part.fit(lesson(tasks, subtask))
    system.fit(lesson(tasks, subtask))
    return system


def test_words_find_a_good_part_of_the_replies(tasks):
    assert ranked(Random(Random.Settings()), tasks, 1, "R@10") < 0.2
    assert ranked(words(tasks, 1), tasks, 1, "R@10") > 0.35


def test_people_go_on_writing_as_they_did(tasks):
    many, voice = tasks[1, "train"], Voice(None)  # learned from few, for test has hardly any who spoke before
    voice.fit(Lesson(train=tasks[1, "dev"], work=Path("unused")))
    found = score(voice.predict(many), many.truth(), ["R@50"])["R@50"]
    spoke = (many.examples["turns"].list.len() > 1).to_numpy()
    assert found[spoke].mean() > 0.6  # by chance half of them
    assert found[~spoke].mean() < 0.55


def test_a_pool_is_searched(tasks):
    assert ranked(words(tasks, 2), tasks, 2, "R@50") > 0.1


def test_subtask_4_is_no_worse_than_subtask_1(tasks):
    system = Abstain(Abstain.Settings("words"))
    system.parts = [words(tasks, 4)]
    system.fit(lesson(tasks, 4))
    assert ranked(system, tasks, 4, "DSTC7") >= ranked(words(tasks, 1), tasks, 1, "DSTC7")
