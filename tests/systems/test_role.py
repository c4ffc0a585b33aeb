"""What words say about who would say a text."""

import msgspec
import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from tests.systems.small_cascades import pool_tasks, trained

from rejoinder.files import BadInputError
from rejoinder.systems.ranking import draw_lists
from rejoinder.systems.role import Role
from rejoinder.tasks.build import Cut, build_pool_task
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, SelectionTask

ASKING, OTHERS, REPLYING = "my {} is gone, please help", "where is my {}", "you can try {}"


def things(count):
    return [f"thing{number}" for number in range(count)]


def pool(count, first=0):
    """Somebody asks about a thing; the pool has the reply, and what others, in as many letters, ask about it."""
    named = things(first + count)[first:]
    cuts = [Cut((("a", ASKING.format(name)),), (REPLYING.format(name),)) for name in named]
    return build_pool_task(cuts, [*(OTHERS.format(name) for name in named), *(cut.replies[0] for cut in cuts)])


def test_weights_are_those_of_a_logistic_regression_on_normalised_words():
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(["I", "you", "my", "Try!", "it", "thanks"], size)) for size in rng.integers(1, 9, 200)]
    replied = np.array([text.count("you") + rng.random() > 1 for text in texts])
    vectorizer = CountVectorizer(binary=True, token_pattern=r"\w+|[^\w\s]")
    inputs = normalize(vectorizer.fit_transform(texts).astype(float))
    peer = LogisticRegression(C=0.3, max_iter=1000).fit(inputs, replied)
    role = Role.of(pl.Series(texts), replied)
    assert role.weights["word"].to_list() == sorted(vectorizer.vocabulary_)
    assert role.weights["weight"].to_numpy() == pytest.approx(peer.coef_[0], abs=1e-3)
    assert role.scores(pl.Series(texts)) == pytest.approx(inputs @ peer.coef_[0], abs=1e-3)


def test_words_are_the_same_however_their_accents_were_typed():
    role = Role.of(pl.Series(["caf\u00e9"] * 6 + ["me"] * 6), np.arange(12) < 6)
    assert role.weights["word"].to_list() == ["caf\u00e9", "me"]
    assert len({*role.scores(pl.Series(["caf\u00e9", "Cafe\u0301", "CAF\u00c9"])).tolist()}) == 1


def test_what_is_an_examples_own_is_not_of_the_pool():
    task = pool(30)
    own = pl.DataFrame({"id": [f"own {number}" for number in range(9)], "text": "offered here alone", "shared": False})
    options = task.options.with_columns(shared=True).vstack(own)
    examples = task.examples.with_columns(options=pl.lit([*range(60, 69)], dtype=pl.List(pl.UInt32)))
    mixed = SelectionTask(examples, options)
    assert Role.learn(mixed, mixed).weights.equals(Role.learn(task, task).weights)


def test_words_that_are_rare_or_new_tell_nothing():
    texts = pl.Series(["rare you", *["you"] * 5, *["me"] * 6])
    role = Role.of(texts, np.arange(12) < 6)
    assert role.weights["word"].to_list() == ["me", "you"]
    assert role.scores(pl.Series(["never heard", "", "rare you", "you"])).tolist() == [
        *(0, 0),
        *role.scores(pl.Series(["you", "you"])),
    ]


def test_chinese_is_read_by_characters():
    texts = pl.Series(["请你试试", "我的没了"] * 6)
    role = Role.of(texts, np.arange(12) % 2 == 0)
    assert role.weights["word"].to_list() == sorted("请你试我的没了")
    asked, replied = role.scores(pl.Series(["我没有", "你试过吗"]))
    assert asked < 0 < replied


def test_a_pool_teaches_what_replies_are_like_and_lists_do_not():
    task = pool(30)
    weights = dict(Role.learn(task, task).weights.iter_rows())
    assert weights["you"] > 0 > weights["my"]
    assert Role.learn(draw_lists(task, 0), task).weights.is_empty()
    every = SelectionTask(task.examples.head(2).with_columns(correct=[*range(60)]), task.options)
    nobody = SelectionTask(task.examples.clear().cast(EXAMPLE_SCHEMA), task.options)
    assert Role.learn(every, task).weights.is_empty()
    assert Role.learn(nobody, task).weights.is_empty()
    assert Role.learn(pool(2), task).weights.is_empty()  # no word is in five texts


def test_replies_of_dev_are_not_learned_as_what_nobody_would_reply():
    whole = pool(30)
    train, dev = (msgspec.structs.replace(whole, examples=part) for part in (whole.examples[:20], whole.examples[20:]))
    asked, replied = whole.options["text"].to_list()[:30], whole.options["text"].to_list()[30:]
    alone = Role.of(pl.Series([*asked, *replied[:20]]), np.arange(50) >= 30)
    assert Role.learn(train, dev).weights.equals(alone.weights)
    elsewhere = msgspec.structs.replace(dev, options=dev.options.with_columns(id="dev " + pl.col("id")))
    assert Role.learn(train, elsewhere).weights.equals(alone.weights)
    assert not Role.learn(train, train).weights.equals(alone.weights)


def test_a_cascade_tells_replies_from_questions_by_their_words():
    tasks = [pool(60), pool(60, first=60), pool(60, first=120)]
    cascade = trained(tasks)
    names = things(180)[120:]
    assert best_texts(cascade, tasks[2]) == [REPLYING.format(name) for name in names]
    cascade.role = Role(cascade.role.weights.with_columns(-pl.col("weight")))
    cascade.pool = None
    assert best_texts(cascade, tasks[2]) == [OTHERS.format(name) for name in names]


def best_texts(cascade, task):
    best = cascade.predict(task).choices.group_by("example", maintain_order=True).first()
    return best.join(task.options, left_on="option", right_on="id", maintain_order="left")["text"].to_list()


def test_what_was_learned_is_kept_and_damage_is_told(tmp_path):
    role = Role.learn(pool(30), pool(1))
    role.save(tmp_path)
    assert Role.load(tmp_path).weights.equals(role.weights)
    for wrong in (
        role.weights.rename({"weight": "value"}),
        role.weights.with_columns(weight=pl.lit(float("nan"))),
        role.weights.with_columns(weight=pl.lit(None, dtype=pl.Float64)),
        role.weights.with_columns(word=pl.when(pl.col("word") != "you").then("word")),
        pl.concat([role.weights, role.weights]),
    ):
        wrong.write_parquet(tmp_path / "role.parquet")
        with pytest.raises(BadInputError, match=r"role\.parquet: not a weight for each word; .* train it anew"):
            Role.load(tmp_path)
    (tmp_path / "role.parquet").unlink()
    with pytest.raises(BadInputError, match=r"role\.parquet: no such file; the model is .* an old one: train it anew"):
        Role.load(tmp_path)


def test_one_pool_gives_one_model():
    train, dev, _ = pool_tasks()
    assert Role.learn(train, dev).weights.equals(Role.learn(train, dev).weights)
