from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.systems.small_cascades import WIDTH, Projection, pool_tasks, project, recall, trained
from tests.systems.small_networks import recipe

from rejoinder.errors import UserError
from rejoinder.folders import alone_in
from rejoinder.measures.selection import score
from rejoinder.systems.cascade import Cascade, Texts
from rejoinder.systems.index import Index
from rejoinder.systems.ranking import Pairs, draw_lists, offered
from rejoinder.systems.retrieval import said_already
from rejoinder.systems.role import Role
from rejoinder.systems.system import Lesson
from rejoinder.systems.turns import turns_of
from rejoinder.tasks.build import Cut, build_pool_task, build_task
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, SHARED_SCHEMA, SelectionTask


@pytest.fixture(scope="module")
def tasks():
    return pool_tasks()


@pytest.fixture(scope="module")
def cascade(tasks):
    return trained(tasks)


def test_both_ways_of_searching_find_more_than_either(cascade, tasks):
    test = tasks[2]
    run = cascade.predict(test)
    words = cascade.words.predict(test)
    meaning = Projection(None).predict(test)
    assert recall(run, test) > max(recall(words, test), recall(meaning, test))
    assert run.choices.group_by("example").len()["len"].max() == 100
    assert (run.choices["score"] >= 0).all()


def test_the_pool_is_encoded_once(cascade, tasks):
    before = cascade.parts[0].encoded
    assert before == tasks[0].options.height
    cascade.predict(tasks[2])
    assert cascade.parts[0].encoded == before


def test_a_pool_is_not_encoded_for_a_dev_of_lists(tasks):
    train, dev, test = tasks
    cascade = trained([train, draw_lists(dev, 0), test])
    assert not cascade.index.segments
    assert cascade.parts[0].encoded < train.options.height
    searched = cascade.predict(test)  # a pool is indexed when it is asked for
    cascade.update_index(test)
    assert cascade.predict(test).choices.equals(searched.choices)


def test_examples_are_answered_in_blocks(cascade, tasks, monkeypatch):
    test = tasks[2]
    own = pl.Series([[]] * 20 + [None] * (test.examples.height - 20), dtype=pl.List(pl.UInt32))
    shared = test.options.with_columns(shared=np.arange(test.options.height) < 50)
    mixed = SelectionTask(test.examples.with_columns(options=own), shared)
    whole = [cascade.predict(task) for task in (test, mixed)]
    monkeypatch.setattr("rejoinder.systems.cascade._SEARCHES", 7)
    for task, run in zip((test, mixed), whole, strict=True):
        cascade.pool = None
        assert cascade.predict(task).choices.equals(run.choices)


def test_a_changed_pool_is_searched_without_the_old_and_with_the_new(tasks):
    cascade, test = trained(tasks), tasks[2]
    added = pl.DataFrame({"id": ["new"], "text": [test.contexts()[0] + " indeed"]})
    fewer = SelectionTask(
        test.examples.head(1).with_columns(correct=pl.lit(None, dtype=pl.List(pl.UInt32))),
        pl.concat([test.options.tail(900), added]),
    )
    encoded = cascade.parts[0].encoded
    run = cascade.predict(fewer)
    assert "new" in run.choices["option"]
    assert set(run.choices["option"]) <= set(fewer.options["id"])
    assert cascade.parts[0].encoded == encoded + 1
    assert "new" not in cascade.index.options()["id"]  # nothing is kept unless asked for
    assert cascade.update_index(fewer) == (1, test.options.height - 900)
    assert len(cascade.index) == 901
    assert cascade.predict(fewer).choices.equals(run.choices)
    assert cascade.update_index(fewer) == (0, 0)


def test_a_text_that_changed_under_its_id_is_encoded_anew(tasks):
    cascade, test = trained(tasks), tasks[2]
    changed = test.options.with_columns(
        text=pl.when(pl.col("id") == test.options["id"][0]).then(pl.lit(test.contexts()[0] + " yes")).otherwise("text")
    )
    run = cascade.predict(SelectionTask(test.examples.head(1), changed))
    assert test.options["id"][0] in run.choices["option"]
    assert test.options["id"][0] not in cascade.predict(test).choices["option"].head(100)
    assert cascade.update_index(SelectionTask(test.examples, changed)) == (1, 1)


def test_lists_hold_what_there_is(tasks):
    pool = tasks[1]
    small = msgspec.structs.replace(pool, examples=pool.examples.with_columns(correct=[0, 3]), options=pool.options[:7])
    assert draw_lists(small, 1, 100).examples["options"].to_list() == [[*range(7)]] * small.examples.height
    many = msgspec.structs.replace(pool, examples=pool.examples.with_columns(correct=list(range(30))))
    assert draw_lists(many, 1, 10).examples["options"].list.len().unique().to_list() == [30]
    shared = pl.int_range(pl.len()) < 50
    mixed = msgspec.structs.replace(
        pool,
        examples=pool.examples.with_columns(options=[60, 61], correct=[61]),
        options=pool.options.with_columns(shared=shared),
    )
    listed = draw_lists(mixed, 1, 10)
    assert listed.shared == 0
    assert listed.truth().correct.equals(mixed.truth().correct)
    for rows in listed.examples["options"].to_list():
        places = [int(place) for place in listed.options["id"].gather(rows).replace_strict(_places(pool))]
        assert len(places) == 10
        assert sum(place < 50 for place in places) == 8


def _places(task):
    return {option: place for place, option in enumerate(task.options["id"].to_list())}


def test_options_of_their_own_are_ranked_too(cascade, tasks):
    wrong = [(text,) for text in tasks[2].options["text"].to_list()]
    cuts = [
        Cut((("a", context),), (tasks[2].options["text"][correct[0]],))
        for context, correct in zip(tasks[2].contexts(), tasks[2].examples["correct"].to_list(), strict=True)
    ]
    own = build_task(cuts, wrong, 30, seed=1)
    run = cascade.predict(own)
    assert run.choices.group_by("example").len()["len"].unique().to_list() == [30]
    assert score(run, own.truth(), ["MRR"])["MRR"].mean() > 0.25  # 0.13 at random
    nothing = pl.when(pl.int_range(pl.len()) > 0).then("options").otherwise([])
    lacking = msgspec.structs.replace(own, examples=own.examples.with_columns(options=nothing))
    run = trained(tasks, rankers={"tfidf": 20}).predict(lacking)
    assert run.choices["example"].unique().to_list() == [*range(1, own.examples.height)]


def test_examples_may_use_the_same_ids_for_options_of_their_own(tasks):
    cascade = trained(tasks, rankers={"words": 5})
    listed = draw_lists(tasks[2], 1, 5)
    local = _numbered_by_example(listed)
    assert local.options["id"].n_unique() == 5
    there, here = (score(cascade.predict(task), task.truth(), ["MRR"])["MRR"].tolist() for task in (listed, local))
    assert here == there


def _numbered_by_example(task):
    """Return a task with five options each, whose ids are 0 to 4 in every example."""
    rows = np.arange(5 * task.examples.height).reshape(-1, 5)
    right = [own.index(answer[0]) for own, answer in task.examples.select("options", "correct").iter_rows()]
    texts = task.options["text"].gather(offered(task).row)
    lists = {
        "options": pl.Series(rows.tolist(), dtype=pl.List(pl.UInt32)),
        "correct": pl.Series(rows[np.arange(len(rows)), right][:, None].tolist(), dtype=pl.List(pl.UInt32)),
    }
    options = pl.DataFrame({"id": (rows.ravel() % 5).astype(str), "text": texts})
    return msgspec.structs.replace(task, options=options, examples=task.examples.with_columns(**lists))


def test_what_is_another_examples_own_takes_no_place_of_the_pools():
    """Every example has an option of its own, liker to all contexts than anything in the pool they share."""
    count = 60
    shared = [f"reply about thing{place} word{place % 17}" for place in range(count)]
    own = [f"printer help thing{place} please" for place in range(count)]
    options = {"id": [f"p{place}" for place in range(count)] + [f"o{place}" for place in range(count)]}
    options |= {"text": shared + own, "shared": [True] * count + [False] * count}
    turns = [[{"speaker": "a", "text": f"printer help please thing{place}"}] for place in range(count)]
    examples = {"id": [str(place) for place in range(count)], "turns": turns}
    examples |= {"options": [[count + place] for place in range(count)], "correct": [[place] for place in range(count)]}
    task = SelectionTask(pl.DataFrame(examples, schema=EXAMPLE_SCHEMA), pl.DataFrame(options, schema=SHARED_SCHEMA))
    cascade = Cascade(Cascade.Settings(found=10))
    cascade.parts = [Projection(None)]
    cascade.fit(Lesson(train=task, dev=task, work=Path("unused")))
    run = cascade.predict(task).choices
    found = run.filter(pl.col("option").str.starts_with("p")).group_by("example").len()["len"]
    assert (len(found), found.min()) == (count, 10)
    others = run.filter(pl.col("option").str.starts_with("o"))
    assert others["option"].to_list() == [f"o{example}" for example in others["example"]]


def test_it_is_saved_and_mapped(cascade, tasks, tmp_path):
    cascade.save(tmp_path)
    again = Cascade(cascade.settings)
    again.parts = cascade.parts
    again.load(tmp_path)
    assert isinstance(again.index.segments[0].vectors.base, np.memmap)
    assert again.predict(tasks[2]).choices.equals(cascade.predict(tasks[2]).choices)


def test_an_index_for_another_encoder_is_told_by_every_command(cascade, tasks, tmp_path, complaint, monkeypatch):
    cascade.save(tmp_path / "model")
    again = Cascade(cascade.settings)
    again.parts = cascade.parts
    again.load(tmp_path / "model")
    told = f"model/index: holds vectors of {WIDTH}, not of {WIDTH - 7} components"
    whole = project
    monkeypatch.setitem(project.__globals__, "project", lambda texts: whole(texts)[:, 7:])
    assert complaint(again.predict, tasks[2]) == told
    new = pl.DataFrame({"id": ["new"], "text": ["something new"]})
    more = msgspec.structs.replace(tasks[2], options=pl.concat([tasks[2].options, new]))
    assert complaint(again.predict, more) == told
    assert complaint(again.update_index, more) == told


def test_what_it_needs_is_said(cascade, tasks):
    with pytest.raises(UserError, match="learns on dev"):
        Cascade(Cascade.Settings()).check(Lesson(train=tasks[0], work=Path("unused")))
    empty = msgspec.structs.replace(tasks[2], options=tasks[2].options.head(0))
    with pytest.raises(UserError, match="the pool is empty"):
        cascade.predict(empty)
    assert isinstance(cascade.index, Index)


def test_only_a_whole_turn_was_said_already():
    task = build_task([Cut((("a", "look at this"), ("b", " Look at WHAT")), ("ok",))], [("look", "look at what")], 3)
    texts = task.options["text"].to_list()
    again = said_already(turns_of(task), task.options["text"], offered(task))
    rows = offered(task).row
    assert {texts[row]: said for row, said in zip(rows, again, strict=True)} == {"ok": 0, "look": 0, "look at what": 1}


@pytest.mark.parametrize(
    "settings",
    [{"found": 0}, {"rankers": {"tfidf": 1}}, {"words": {"k1": -1}}, {"words": {"b": 5}}, {"words": {"stem": -3}}],
)
def test_settings_that_find_nothing_are_refused(settings):
    with pytest.raises(msgspec.ValidationError, match="expected"):
        msgspec.convert(settings, Cascade.Settings)


def test_an_index_is_of_a_pool(tasks):
    cascade = trained(tasks)
    before = len(cascade.index)
    own = build_task([Cut((("a", "hello"),), ("hi",))], [("bye",)], 2)
    with pytest.raises(UserError, match="has no pool"):
        cascade.update_index(own)
    assert len(cascade.index) == before


def test_what_an_option_looks_like():
    task = build_task([Cut((("a", "hm"),), ("why? ",))], [("为何？", "no")], 3)
    role = Role(pl.DataFrame({"word": ["why", "为", "?"], "weight": [1.0, 2.0, 3.0]}))
    looks = dict(zip(task.options["text"], Texts.of(task.options["text"], role).looks.tolist(), strict=True))
    assert looks == {
        "why? ": [1, np.log1p(5), 4 / 2**0.5],
        "为何？": [1, np.log1p(3), 2],
        "no": [0, np.log1p(2), 0],
    }


def test_looks_are_those_of_the_options_whether_a_pool_is_held_or_not(cascade, tasks):
    test = msgspec.structs.replace(tasks[2], examples=tasks[2].examples.head(3))
    pairs = Pairs(np.array([0, 0, 1, 2]), np.array([7, 3, 5, 3]))
    cascade.predict(test)
    held = cascade._looks(test, turns_of(test), pairs)
    again = msgspec.structs.replace(test, options=test.options.clone())
    assert cascade.pool.options is not again.options
    assert np.array_equal(held, cascade._looks(again, turns_of(again), pairs))
    texts = test.options["text"].gather(pairs.row).to_list()
    assert held[:, 1].tolist() == [text.rstrip().endswith("?") for text in texts]
    assert held[:, 2] == pytest.approx([np.log1p(len(text)) for text in texts])


def test_nothing_is_learned_of_a_voice_that_dev_does_not_hear(tasks):
    train, dev, test = (draw_lists(task, 0) for task in tasks)
    few = dev.examples.with_columns(pl.col("turns").list.tail(1))
    silent = trained([train, msgspec.structs.replace(dev, examples=few), test])
    assert silent.weights[-1] == 0
    assert trained([train, dev, test]).weights[-1] != 0


def test_a_dev_that_teaches_no_weights_is_refused(tasks):
    alone = build_task([Cut((("a", "hello"),), ("hi",))], [("hi",)], 1)
    with pytest.raises(UserError, match="dev teaches no weights"):
        trained((tasks[0], alone, tasks[2]))


def test_of_equal_options_the_first_of_the_pool_comes_first_however_the_index_grew(cascade, tasks):
    twins = tasks[2].options.with_columns(id=pl.col("id") + " twin")
    nothing = pl.lit(None, dtype=pl.List(pl.UInt32))
    task = msgspec.structs.replace(
        tasks[2], options=pl.concat([twins, tasks[2].options]), examples=tasks[2].examples.with_columns(correct=nothing)
    )
    chosen = cascade.predict(task).choices
    places = {row[:2]: number for number, row in enumerate(chosen.iter_rows())}
    pairs = [(place, places.get((example, f"{option} twin"))) for (example, option), place in places.items()]
    compared = [(own, twin) for own, twin in pairs if twin is not None]
    assert len(compared) > 100
    assert all(twin < own for own, twin in compared)


def test_of_equal_options_the_first_of_the_pool_are_found_however_the_index_grew(tasks):
    twins = tasks[2].options.with_columns(id=pl.col("id") + " twin")
    nothing = pl.lit(None, dtype=pl.List(pl.UInt32))
    task = msgspec.structs.replace(
        tasks[2], options=pl.concat([tasks[2].options, twins]), examples=tasks[2].examples.with_columns(correct=nothing)
    )
    cascade, found = trained(tasks, found=15), []
    for first in (tasks[2].options, twins):
        cascade.index, cascade.pool = Index(), None
        cascade.update_index(msgspec.structs.replace(task, options=first))
        found.append(cascade.predict(task).choices)
    assert found[0].equals(found[1])


def test_the_index_of_a_part_is_brought_up_to_date(cli, save, tasks, tmp_path):
    pytest.importorskip("torch")
    for split, task in zip(("train", "dev"), tasks, strict=False):
        SelectionTask(task.examples.head(50), task.options).save(tmp_path / split)
    save("network.yaml", msgspec.to_builtins(recipe("dot", training={"epochs": 1})))
    save("search.yaml", {"about": "", "system": "cascade", "settings": {"encoder": str(tmp_path / "network.yaml")}})
    members = [str(tmp_path / "search.yaml"), "bm25"]
    save("both.yaml", {"about": "", "system": "ensemble", "settings": {"members": members, "method": "ranks"}})
    none = save("none.yaml", {"about": "", "system": "abstain", "settings": {"ranker": str(tmp_path / "both.yaml")}})
    assert cli("train", none, "--task", tmp_path, "--out", tmp_path / "model")[0] == 0
    fewer, size = tmp_path / "fewer", tasks[2].options.height
    unknown = tasks[2].examples.head(3).with_columns(correct=pl.lit(None, dtype=pl.List(pl.UInt32)))
    SelectionTask(unknown, tasks[2].options.head(size - 7)).save(fewer)
    for removed in (7, 0):
        code, out, _ = cli("index", tmp_path / "model", "--task", fewer)
        assert (code, f"0 options added, {removed} removed, {size - 7:,} in the index" in out) == (0, True)
    with alone_in(tmp_path / "model", tmp_path / "model"):
        code, _, err = cli("index", tmp_path / "model", "--task", fewer)
    assert (code, err) == (2, f"error: {tmp_path / 'model'}: another process is writing this folder\n")
    assert "no such model" in cli("index", tmp_path / "nowhere", "--task", fewer)[2]
    assert not (tmp_path / "nowhere").exists()
    assert cli("predict", tmp_path / "model", "--task", fewer, "--out", tmp_path / "run.json")[0] == 0
    assert cli("train", "bm25", "--task", tmp_path, "--out", tmp_path / "words")[0] == 0
    assert "bm25 searches no index" in cli("index", tmp_path / "words", "--task", fewer)[2]


def test_it_hears_the_voice_of_who_will_reply_in_lists_and_in_pools():
    """All say the same words, half of them with a capital and a stop: nothing else tells the right options."""
    rng = np.random.default_rng(3)
    names = [f"disk{number}" for number in range(40)]
    cuts = []
    for _ in range(120):
        neat, other = rng.random(2) < 0.5
        drawn = zip(rng.choice(names, 3), (neat, other, neat), strict=True)
        said = [f"{name.capitalize()}." if tidy else name for name, tidy in drawn]
        cuts.append(Cut(tuple(zip("aba", said, strict=True))[:2], (said[2],)))
    every = [text for name in names for text in (name, f"{name.capitalize()}.")]
    pooled = [build_pool_task(part, every) for part in (cuts[:50], cuts[50:90], cuts[90:])]
    listed = [build_task(part, [(text,) for text in every], 20, seed=1) for part in (cuts[:50], cuts[50:90], cuts[90:])]
    for tasks in (pooled, listed):
        cascade = trained(tasks)
        assert cascade.weights[-1] > 0.3
        run, task = cascade.predict(tasks[2]), tasks[2]
        texts = run.choices.join(task.options.unique("id"), left_on="option", right_on="id", maintain_order="left")
        best = texts.group_by("example", maintain_order=True).head(5)
        neat = [cut.turns[0][1].endswith(".") for cut in cuts[90:]]
        alike = best["text"].str.ends_with(".").to_numpy() == np.array(neat)[best["example"].to_numpy()]
        assert alike.mean() > 0.9
