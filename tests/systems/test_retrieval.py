from pathlib import Path

import bm25s
import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from rejoinder.arrays import read_arrays, write_arrays
from rejoinder.errors import UserError
from rejoinder.measures.selection import score
from rejoinder.model import Assignment, load_model, predict, train_model
from rejoinder.recipe import read_recipe
from rejoinder.sample import irc
from rejoinder.systems.ranking import rank_by_products
from rejoinder.systems.retrieval import Bm25, Random, Tfidf, Unsaid, _count_each_once
from rejoinder.systems.system import Lesson
from rejoinder.systems.turns import number_texts, turns_of
from rejoinder.systems.words import WordStatistics, count_words, split_words
from rejoinder.tasks.build import Cut, build_pool_task, build_task
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, OPTION_SCHEMA, SelectionTask

TEXTS = ["restart the network manager", "install the nvidia driver", "check your partition table", "what a nice day"]
PLAIN = {"recency": 1.0, "stem": 0, "rarity": 1.0}


def task_of(contexts, options, correct):
    turns = [[{"speaker": "a", "text": text} for text in said.split("|")] for said in contexts]
    ids = [str(number) for number in range(len(contexts))]
    examples = pl.DataFrame({"id": ids, "turns": turns, "options": options, "correct": correct}, schema=EXAMPLE_SCHEMA)
    return SelectionTask(examples, pl.DataFrame({"id": list("wxyz"), "text": TEXTS}, schema=OPTION_SCHEMA))


def trained(class_, train, **settings):
    system = class_(class_.Settings(**settings))
    system.fit(Lesson(train=train, work=Path("unused")))
    return system


@pytest.fixture(scope="module")
def dialogues():
    return [dialogue.turns for dialogue in irc.dialogues(150, seed=3)]


@pytest.fixture(scope="module")
def task(dialogues):
    cuts = [Cut(tuple((turn.speaker, turn.text) for turn in turns[:-1]), (turns[-1].text,)) for turns in dialogues]
    return build_task(cuts, [(turn.text,) for turns in dialogues for turn in turns], 20, seed=1)


@pytest.mark.parametrize("class_", [Tfidf, Bm25])
def test_shared_words_rank_first(class_):
    contexts = ["my network manager is down", "nvidia driver crash", "partition table gone", "zzz qqq"]
    task = task_of(contexts, [[0, 1, 2, 3]] * 4, [[0], [1], [2], [3]])
    run = trained(class_, task).predict(task)
    assert score(run, task.truth(), ["R@1"])["R@1"].tolist()[:3] == [1, 1, 1]
    # no shared word: all are tied and keep the order in which they were offered
    assert run.choices.filter(pl.col("example") == 3)["option"].to_list() == list("wxyz")


@pytest.mark.parametrize("class_", [Tfidf, Bm25])
def test_an_example_without_options_ranks_the_pool_as_one_with_all_of_them_does(class_, task):
    pool = task.examples.with_columns(options=pl.lit(None, dtype=pl.List(pl.UInt32)))
    everything = pl.lit(list(range(task.options.height)), dtype=pl.List(pl.UInt32))
    system = trained(class_, task)
    found = system.predict(SelectionTask(pool, task.options)).choices
    wanted = system.predict(SelectionTask(task.examples.with_columns(options=everything), task.options)).choices
    best = wanted.group_by("example", maintain_order=True).head(100)
    assert found["score"].to_numpy() == pytest.approx(best["score"].to_numpy(), rel=1e-5)
    sure = found["score"] > 0  # of the many that share no word, any may be among the first hundred
    assert (found.filter(sure)["option"] == best.filter(sure)["option"]).mean() > 0.99


@pytest.mark.parametrize("class_", [Tfidf, Bm25])
def test_of_equal_options_of_a_pool_the_first_are_kept(class_):
    texts = ["alpha beta" if place % 3 == 0 else "gamma" for place in range(1000)]
    options = pl.DataFrame({"id": [f"o{place}" for place in range(1000)], "text": texts}, schema=OPTION_SCHEMA)
    turns = [[{"speaker": "a", "text": text}] for text in ("alpha", "unheard of")]
    examples = {"id": ["1", "2"], "turns": turns, "options": [None, None], "correct": [[0], [0]]}
    task = SelectionTask(pl.DataFrame(examples, schema=EXAMPLE_SCHEMA), options)
    run = trained(class_, task).predict(task).choices
    for example, step in enumerate((3, 1)):
        kept = run.filter(pl.col("example") == example)["option"].to_list()
        assert kept == [f"o{step * place}" for place in range(100)]


def test_tfidf_is_scikit_learns_cosine(task):
    texts = turns_of(task).texts
    peer = TfidfVectorizer(token_pattern=r"(?u)\w+", sublinear_tf=False)
    peer.fit([*task.options["text"].to_list(), *texts])
    run = trained(Tfidf, task, **PLAIN).predict(once(task))
    options, contexts = (peer.transform(of) for of in (once(task).options["text"].to_list(), once(task).contexts()))
    cosines = (contexts @ options.T).toarray()
    rows = {id_: row for row, id_ in enumerate(task.options["id"])}
    found = run.choices["score"].to_numpy()
    wanted = [cosines[example, rows[option]] for example, option, _ in run.choices.iter_rows()]
    assert found == pytest.approx(wanted, abs=1e-4)


def once(task):
    """Let every word stand once in its text: then log(1 + tf) and tf differ by a factor alone, which norms remove."""
    words = pl.element().struct.field("text").str.to_lowercase().str.extract_all(r"\w+").list.unique().list.join(" ")
    turns = pl.col("turns").list.eval(pl.struct(pl.lit("a").alias("speaker"), words.alias("text")))
    last = turns.list.tail(1)
    options = task.options.with_columns(
        text=pl.col("text").str.to_lowercase().str.extract_all(r"\w+").list.unique().list.join(" ")
    )
    return SelectionTask(task.examples.with_columns(turns=last), options)


def test_bm25_is_that_of_bm25s(task):
    """Fitted on the options alone, so that both know the same texts; k3 is so large that repetitions count in full."""
    alone = SelectionTask(task.examples.with_columns(turns=pl.col("turns").list.head(0)), task.options)
    run = trained(Bm25, alone, **PLAIN, k1=1.5, b=0.75, k3=1e9).predict(task)
    peer = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    split = {"token_pattern": r"(?u)\w+", "stopwords": None, "show_progress": False}
    peer.index(bm25s.tokenize(task.options["text"].to_list(), **split), show_progress=False)
    rows = {id_: row for row, id_ in enumerate(task.options["id"])}
    for example, words in enumerate(bm25s.tokenize(task.contexts(), return_ids=False, **split)[:20]):
        scores = peer.get_scores([word for word in words if word in peer.vocab_dict])
        found = run.choices.filter(pl.col("example") == example)
        wanted = [2.5 * scores[rows[option]] for option in found["option"]]  # Lucene leaves k1 + 1 out
        assert found["score"].to_list() == pytest.approx(wanted, rel=1e-3, abs=1e-4)


def test_rarity_is_a_power_of_how_rare_words_are():
    """By hand: two options that share one word each with the context, the second a rarer one."""
    task = task_of(["network nvidia"], [[0, 1]], [[1]])
    texts = pl.DataFrame({"id": list("wxyz"), "text": ["network", "nvidia", "network a", "network b"]})
    task = SelectionTask(task.examples, texts.cast(OPTION_SCHEMA))
    common, rare = (
        trained(Bm25, task, recency=1.0, stem=0, rarity=rarity).predict(task).choices.sort("option")["score"].to_list()
        for rarity in (1.0, 2.0)
    )
    idf = {"network": np.log(1 + (5 - 4 + 0.5) / (4 + 0.5)), "nvidia": np.log(1 + (5 - 2 + 0.5) / (2 + 0.5))}
    assert common[1] / common[0] == pytest.approx(idf["nvidia"] / idf["network"])
    assert rare[1] / rare[0] == pytest.approx((idf["nvidia"] / idf["network"]) ** 2)
    assert Bm25.Settings().rarity == 2.0


def test_recency_prefers_what_was_said_last():
    task = task_of(["nvidia driver|partition table"], [[1, 2]], [[2]])
    for class_ in (Tfidf, Bm25):
        assert trained(class_, task, recency=0.3).predict(task).choices["option"][0] == "y"
        assert trained(class_, task, recency=3.0).predict(task).choices["option"][0] == "x"


def test_turns_that_count_for_nothing_leave_scores_finite():
    task = build_task([Cut((("a", "sound card"), ("b", "yes"), ("a", "no sound")), ("sound",))], [("card",)], 2)
    system = Bm25(Bm25.Settings(recency=0, k3=0))
    system.fit(Lesson(train=task, work=Path("unused")))
    scores = system.predict(task).choices["score"]
    assert scores.is_finite().all()
    assert scores.to_list()[1] == 0  # the word of an older turn alone


def test_words_are_weighed_as_they_were_in_training(task, tmp_path):
    system = trained(Bm25, task)
    system.save(tmp_path)
    again = Bm25(Bm25.Settings())
    again.load(tmp_path)
    assert again.predict(task).choices.equals(system.predict(task).choices)


def test_a_damaged_model_is_named(tmp_path, complaint):
    system = Bm25(Bm25.Settings())
    assert "words.npz: no such file" in complaint(system.load, tmp_path)
    (tmp_path / "words.npz").write_bytes(b"PK nonsense")
    assert "words.npz: damaged" in complaint(system.load, tmp_path)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("found", np.zeros(0, np.int32)),
        ("found", np.ones(9, np.int32)),
        ("words", np.ones((2, 1), np.int32)),
        ("texts", np.ones(2)),
        ("mean_length", np.ones(0)),
    ],
)
def test_statistics_that_do_not_fit_each_other_are_named(tmp_path, complaint, name, other):
    WordStatistics.of(count_words(["one two", "two"], 0), np.array([1, 1])).save(tmp_path / "words.npz")
    arrays = read_arrays(tmp_path / "words.npz")
    assert len(arrays["words"]) == len(arrays["found"]) == 2
    write_arrays(tmp_path / "words.npz", arrays | {name: other})
    told = complaint(WordStatistics.load, tmp_path / "words.npz")
    assert told.startswith(f"words.npz: {name} has the shape {other.shape}, expected ")
    assert told.endswith("; the model is damaged, or an old one: train it anew")


def test_an_empty_pool_and_wordless_texts(task):
    nothing = build_pool_task([Cut((("a", "?!"),), ("...",))], ["...", "?", "hello there"])
    for class_ in (Random, Tfidf, Bm25):
        assert trained(class_, task).predict(nothing).choices.height == 3
        empty = SelectionTask(nothing.examples, nothing.options.head(0))
        with pytest.raises(UserError, match="the pool is empty"):
            trained(class_, task).predict(empty)


def test_random_order_is_seeded_and_fair(tmp_path):
    task = task_of(["x"] * 2000, [[0, 1, 2, 3]] * 2000, [[0]] * 2000)
    task.save(tmp_path / "task")
    runs = []
    for number, seed in enumerate((1, 1, 2)):
        given = Assignment(recipe=read_recipe("random"), train=(tmp_path / "task", task), seed=seed)
        train_model(given, tmp_path / str(number))
        runs.append(predict(*load_model(tmp_path / str(number)), tmp_path / "task", task))
    first, again, other = runs
    assert first.choices.equals(again.choices)
    assert not first.choices.equals(other.choices)
    assert np.mean(score(first, task.truth(), ["R@1"])["R@1"]) == pytest.approx(0.25, abs=0.04)


def shared_task(shared, examples):
    """Every example chooses from `shared` options and one of its own, the correct one; no words are shared."""
    texts = [f"option{number}" for number in range(shared + examples)]
    options = pl.DataFrame({"id": texts, "text": texts, "shared": [place < shared for place in range(len(texts))]})
    own = [[shared + number] for number in range(examples)]
    turns = [[{"speaker": "a", "text": "hello"}]] * examples
    ids = [str(number) for number in range(examples)]
    table = pl.DataFrame({"id": ids, "turns": turns, "options": own, "correct": own}, schema=EXAMPLE_SCHEMA)
    return SelectionTask(table, options)


@pytest.mark.parametrize("class_", [Tfidf, Bm25])
def test_a_tie_with_a_shared_pool_gives_nothing_away(class_):
    task = shared_task(150, 5)
    run = trained(class_, task).predict(task)
    assert set(run.choices["score"]) == {0}
    assert score(run, task.truth(), ["hits@100"])["hits@100"].tolist() == [0] * 5


def test_equal_options_of_a_pool_are_equal_wherever_they_stand():
    """What products of whole blocks round off would go by an option's place."""
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(70, 33)).astype(np.float32)
    options = np.repeat(rng.normal(size=(7, 33)).astype(np.float32), 13, axis=0)[rng.permutation(91)]
    texts = [f"option{number}" for number in range(91)]
    turns = [[{"speaker": "a", "text": "hello"}]] * 70
    columns = {
        "id": [str(number) for number in range(70)],
        "turns": turns,
        "options": [None] * 70,
        "correct": [[0]] * 70,
    }
    task = SelectionTask(pl.DataFrame(columns, schema=EXAMPLE_SCHEMA), pl.DataFrame({"id": texts, "text": texts}))
    found = rank_by_products(task, "products", contexts, options).choices
    assert found.group_by("example").agg(pl.col("score").n_unique())["score"].to_list() == [7] * 70


def test_chance_is_chance_beside_a_shared_pool():
    task = shared_task(999, 4_000)
    hits = score(Random(Random.Settings()).predict(task), task.truth(), ["hits@10", "hits@100"])
    assert hits["hits@10"].mean() == pytest.approx(0.01, abs=0.006)
    assert hits["hits@100"].mean() == pytest.approx(0.1, abs=0.02)


def test_what_was_said_comes_last():
    cuts = [
        Cut((("a", "Hello, caf\u00e9"), ("b", "what is wrong?")), ("it hangs",)),
        Cut((("a", "it hangs"), ("b", "since when?")), ("hello, caf\u00e9",)),
    ]
    wrong = [("hello, cafe\u0301 ",), ("it hangs",), ("nothing",), ("since",)]
    task = build_task(cuts, wrong, 4, seed=1)
    run = Unsaid(None).predict(task)
    said = run.choices.filter(pl.col("score") == 0).join(task.options, left_on="option", right_on="id")
    assert sorted(said.select("example", "text").rows()) == [(0, "hello, cafe\u0301 "), (1, "it hangs")]
    last = run.choices.group_by("example", maintain_order=True).last()
    assert last["score"].to_list() == [0, 0]
    with pytest.raises(UserError, match="an example's own options alone"):
        Unsaid(None).predict(build_pool_task(cuts, ["hello, caf\u00e9", "it hangs", "nothing"], 1))


def test_unsaid_is_not_for_pools_and_says_so_before_anything_is_trained(tmp_path):
    task = build_pool_task([Cut((("a", "hello"),), ("hi",))], ["hi", "bye"])
    own = build_task([Cut((("a", "hello"),), ("hi",))], [("bye",)], 2)
    Unsaid(None).check(Lesson(train=task, dev=own, work=tmp_path))  # as from every turn of the training days
    with pytest.raises(UserError, match="own options alone"):
        Unsaid(None).check(Lesson(train=task, dev=task, work=tmp_path))
    with pytest.raises(UserError, match="own options alone"):
        Unsaid(None).predict(task)


def test_chinese_is_matched_by_its_characters():
    assert split_words("我的手机 iPhone5 broken坏了", 5) == ["我", "的", "手", "机", "iphone5", "broke", "坏", "了"]
    assert split_words("हिन्दीभाषी สวัสดีครับ_2", 5) == ["हिन्द", "สวัสดีครับ_2"]
    options = ["请重启手机", "您的订单已发货", "天气不错", "已经退款了"]
    cuts = [Cut((("a", "手机坏了怎么办"),), (options[0],)), Cut((("a", "我的订单在哪里"),), (options[1],))]
    task = build_task(cuts, [(text,) for text in options], 4, seed=1)
    run = trained(Bm25, task).predict(task)
    assert score(run, task.truth(), ["R@1"])["R@1"].tolist() == [1, 1]


def test_texts_that_come_again_are_counted_as_if_each_were_new():
    texts = ["a red b", "blue", "a red b", "", "blue", "a"]
    assert (_count_each_once(texts, 5) != count_words(texts, 5)).nnz == 0


def test_words_are_counted_in_texts_as_often_as_these_stand():
    texts = ["one two two", "two", "one two two", "three", "two", "two"]
    many = WordStatistics.of(count_words(texts, 0), np.ones(6, np.intp))
    distinct, rows = number_texts(texts)
    few = WordStatistics.of(count_words(distinct, 0), np.bincount(rows))
    assert (few.texts, few.mean_length) == (6, many.mean_length) == (6, pytest.approx(10 / 6))
    words = count_words(["one", "two", "three", "four"], 0).indices
    assert few.frequency(words).tolist() == many.frequency(words).tolist() == [2, 5, 1, 0]
