from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from rejoinder.errors import UserError
from rejoinder.measures.selection import score
from rejoinder.systems.informed import Informed, _tell_more
from rejoinder.systems.pages import Pages, page_name, split_names
from rejoinder.systems.retrieval import Bm25
from rejoinder.systems.system import Lesson
from rejoinder.systems.words import count_words
from rejoinder.tasks.build import Cut, build_task
from rejoinder.tasks.knowledge import write_knowledge

TOPICS = ["disk", "sound", "printer", "network", "keyboard", "screen", "camera", "battery", "fonts", "clock"]


def commands():
    """Make ten commands for each topic, whose names tell nothing and whose pages tell the topic."""
    rng = np.random.default_rng(0)
    letters = np.array(list("bcdfghklmnprstvz"))
    return {"".join(rng.choice(letters, 6)): topic for topic in TOPICS for _ in range(10)}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Ask for help with a topic; the right reply names a command for it, and few questions have a word of it."""
    named = commands()
    path = tmp_path_factory.mktemp("knowledge") / "knowledge.parquet"
    pages = [(f"{name}.1", f"{name} - inspect the {topic} of this machine") for name, topic in named.items()]
    write_knowledge(path, pl.DataFrame(pages, schema=["title", "text"], orient="row"))
    replies = [(f"you could try {name}",) for name in named]
    rng = np.random.default_rng(1)
    found = []
    for _ in range(3):
        names = rng.choice(list(named), 150)
        asked = [
            f"my {named[name]} is broken" if place % 15 else f"is {name} broken" for place, name in enumerate(names)
        ]
        cuts = [Cut((("a", text),), (f"you could try {name}",)) for text, name in zip(asked, names, strict=True)]
        found.append(msgspec.structs.replace(build_task(cuts, replies, 10, seed=int(rng.integers(99))), knowledge=path))
    return found


def trained(tasks, **settings):
    system = Informed(Informed.Settings("bm25", **settings))
    ranker = Bm25(Bm25.Settings())
    ranker.fit(Lesson(train=tasks[0], work=Path("unused")))
    system.parts = [ranker]
    system.fit(Lesson(train=tasks[0], dev=tasks[1], work=Path("unused")))
    return system


def reciprocal_rank(run, task):
    return score(run, task.truth(), ["MRR"])["MRR"].mean()


def test_pages_help_where_words_cannot(tasks):
    with_pages, without = trained(tasks).predict(tasks[2]), trained(tasks, knowledge="none").predict(tasks[2])
    assert reciprocal_rank(without, tasks[2]) < 0.4
    assert reciprocal_rank(with_pages, tasks[2]) > 0.7


def test_pages_that_tell_nothing_leave_the_order_as_it_is(tasks, tmp_path):
    pages = pl.DataFrame({"title": ["tar.1", "ls.1"], "text": ["tar - keep files together", "ls - list files"]})
    write_knowledge(tmp_path / "other.parquet", pages)
    other = [msgspec.structs.replace(task, knowledge=tmp_path / "other.parquet") for task in tasks]
    misled, alone = trained(other), trained(tasks, knowledge="none")
    assert misled.notes == ["the pages tell right options on dev no better than the ranker alone: they weigh nothing"]
    assert not misled.weights[2:].any()
    order = [system.predict(other[2]).choices.select("example", "option") for system in (misled, alone)]
    assert order[0].equals(order[1])
    few = msgspec.structs.replace(other[1], examples=other[1].examples.head(1))
    assert trained([other[0], few]).weights.tolist() == [1, 0, 0, 0, 0, 0]  # one unlucky example turns no order round
    assert trained(tasks).notes == []
    assert trained(tasks).weights[2:].any()


def test_pages_have_to_tell_more_than_chance_would():
    rng = np.random.default_rng(3)
    example, correct = np.repeat(np.arange(300), 10), np.arange(3000) % 10 == 0
    opinion, noise = correct[:, None] + rng.normal(size=(3000, 2)), rng.normal(size=(3000, 4))
    assert _tell_more(np.hstack([opinion, noise + 0.3 * correct[:, None]]), example, correct)
    chance = [_tell_more(np.hstack([opinion, rng.normal(size=(3000, 4))]), example, correct) for _ in range(20)]
    assert sum(chance) <= 3  # one in six would, were nothing lost by learning from noise
    assert not _tell_more(np.hstack([opinion, noise]), example, np.zeros(3000, dtype=bool))


def test_it_is_whole_without_the_pages_it_learned_from(tasks, tmp_path):
    system = trained(tasks)
    system.save(tmp_path)
    again = Informed(system.settings)
    again.parts = system.parts
    again.load(tmp_path)
    elsewhere = msgspec.structs.replace(tasks[2], knowledge=None)
    assert again.predict(elsewhere).choices.equals(system.predict(tasks[2]).choices)


def test_examples_are_compared_with_pages_in_blocks(tasks, monkeypatch):
    system = trained(tasks)
    whole = system.predict(tasks[2])
    monkeypatch.setattr("rejoinder.systems.informed._AT_ONCE", 7)
    assert system.predict(tasks[2]).choices.equals(whole.choices)


def test_names_are_recognised_in_texts():
    assert [page_name(title) for title in ("apt-get.8", "CMP 109", "systemd.unit.5", "README")] == [
        "apt-get",
        "cmp109",
        "systemd.unit",
        "readme",
    ]
    assert {"apt-get", "cmp109", "10.04"} <= set(split_names("Try apt-get, or CMP 109. On 10.04!"))
    table = pl.DataFrame({"title": ["apt-get.8", "CMP 109", "file.1"], "text": ["install packages", "algorithms", "x"]})
    said = ["a file", "the file", "no file", "cmp 109"]
    pages = Pages.of(table, count_words(table["text"].to_list(), 5), said)
    named = pages.named(["use apt-get", "take CMP 109 now", "which file", "nothing"]).toarray()
    assert (named > 0).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert named[0, 0] == pytest.approx(np.log(5 / 1))
    assert named[1, 1] == pytest.approx(np.log(5 / 2))
    assert named[2, 2] == pytest.approx(np.log(5 / 4))
    near = pages.near(count_words(["how to install packages"], 5))
    assert pages.nearest(near, 1).toarray().argmax(axis=1).tolist() == [0]


def test_what_is_missing_is_said(tasks):
    with pytest.raises(UserError, match="learned on dev"):
        Informed(Informed.Settings("bm25")).check(Lesson(train=tasks[0], work=Path("unused")))
    bare = msgspec.structs.replace(tasks[0], knowledge=None)
    with pytest.raises(UserError, match="names no knowledge"):
        Informed(Informed.Settings("bm25")).check(Lesson(train=bare, dev=tasks[1], work=Path("unused")))


def test_without_knowledge_none_is_asked_for(tasks, tmp_path):
    bare = [msgspec.structs.replace(task, knowledge=None) for task in tasks]
    Informed(Informed.Settings("bm25", "none")).check(Lesson(train=bare[0], dev=bare[1], work=Path("unused")))
    system = trained(bare, knowledge="none")
    system.save(tmp_path)
    again = Informed(system.settings)
    again.parts = system.parts
    again.load(tmp_path)
    assert again.predict(bare[2]).choices.equals(trained(tasks, knowledge="none").predict(tasks[2]).choices)
