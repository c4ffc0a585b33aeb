import re
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.films import RELATIONS, read_kb
from rejoinder.corpora.movielens import read_likes
from rejoinder.corpora.ragged import from_lists
from rejoinder.sample import films
from rejoinder.tasks.film_dialogues import Playwright, converse
from rejoinder.tasks.film_questions import ASKED, all_questions, ask, divide, mixed, packaged_patterns, read_patterns
from rejoinder.tasks.film_talk import divide_discussions
from rejoinder.tasks.film_tastes import divide_users, draw_distinct, draw_tastes, listed
from rejoinder.tasks.selection import load_selection_task

SIZES = {"qa": 500, "recs": 300, "dialogue": 200, "talk": 300, "joint": 200, "eval": 60}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    films.write(folder, 120, 0)
    return folder


@pytest.fixture(scope="module")
def kb(world):
    return read_kb(world / "movie_kb.txt")


@pytest.fixture(scope="module")
def likes(world, kb):
    return read_likes(world / "ratings.csv", kb)


def build(cli, world, out, *more):
    sizes = [part for name, size in SIZES.items() for part in (f"--{name}-size", size)]
    files = ("--kb", world / "movie_kb.txt", "--ratings", world / "ratings.csv", "--threads", world / "threads.jsonl")
    return cli("build", "movies", *files, *sizes, "--candidates", 100, "--out", out, *more)


def texts(task):
    return task.examples.select(pl.col("turns").list.last().struct.field("text")).to_series().to_list()


@pytest.fixture
def built(cli, world, tmp_path):
    code, _, err = build(cli, world, tmp_path / "out")
    assert code == 0, err
    return tmp_path / "out"


def test_all_tasks_are_built(built):
    tasks = {
        (n, s): load_selection_task(built / f"task_{n}" / s) for n in range(1, 6) for s in ("train", "dev", "test")
    }
    heights = {key: task.examples.height for key, task in tasks.items()}
    assert (heights[1, "train"], heights[2, "train"], heights[3, "train"]) == (500, 300, 600)
    assert (heights[1, "dev"], heights[2, "test"], heights[3, "dev"], heights[5, "dev"]) == (60, 60, 180, 60)
    assert all(task.knowledge.is_file() for task in tasks.values())
    for split in ("dev", "test"):
        task = tasks[4, split]
        assert task.shared == 100
        assert all(len(task.candidates(number)) == 101 for number in range(task.examples.height))
    joint = tasks[5, "train"]
    assert set(joint.groups["task"]) == {1, 2, 3, 4}
    assert joint.truth().pool.len() == joint.options.height
    replies = set(tasks[4, "train"].options["text"])
    fours = joint.examples.filter(joint.groups["task"] == 4)["correct"].explode()
    assert set(joint.options["text"].gather(fours)) <= replies
    ones = joint.examples.filter(joint.groups["task"] == 1)
    known = dict(zip(texts(tasks[1, "train"]), tasks[1, "train"].examples["correct"].to_list(), strict=True))
    for turns, correct in zip(ones["turns"], ones["correct"].to_list(), strict=True):
        assert known[turns[-1]["text"]] == correct


def test_the_same_seed_gives_the_same_bytes(cli, world, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert build(cli, world, tmp_path / name, "--seed", seed)[0] == 0
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.*"))
    assert len(files) > 50
    assert all((tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes() for file in files)
    other = [file for file in files if (tmp_path / "a" / file).read_bytes() != (tmp_path / "c" / file).read_bytes()]
    assert {file.parent.parent.name for file in other} >= {f"task_{number}" for number in range(1, 6)}


def test_official_files_and_back(built, cli, world, tmp_path):
    code, _, err = cli("export", built, "--out", tmp_path / "official")
    assert code == 0
    assert [line.split(": ")[:3] for line in err.splitlines()] == [
        ["note", "left out", str(built / "task_5" / split)] for split in ("dev", "test", "train")
    ]
    assert not list((tmp_path / "official").glob("task5*"))
    for number, name in ((1, "qa"), (2, "recs"), (3, "qarecs")):
        path = tmp_path / "official" / f"task{number}_{name}_dev.txt"
        assert cli("import", "mdd", path, "--kb", world / "movie_kb.txt", "--out", tmp_path / "again")[0] == 0
        one, other = (load_selection_task(root / f"task_{number}" / "dev") for root in (built, tmp_path / "again"))
        assert one.examples.equals(other.examples)
        assert one.groups["response"].to_list() == other.groups["response"].to_list()
    talk = [tmp_path / "official" / name for name in ("task4_reddit_dev.txt", "task4_reddit_cand-valid.txt")]
    assert cli("import", "mdd", *talk, "--kb", world / "movie_kb.txt", "--out", tmp_path / "again")[0] == 0
    one, other = (load_selection_task(root / "task_4" / "dev") for root in (built, tmp_path / "again"))
    assert texts(one) == texts(other)
    assert one.groups.equals(other.groups)
    assert [one.options["text"].gather(one.candidates(n)).to_list() for n in range(5)] == [
        other.options["text"].gather(other.candidates(n)).to_list() for n in range(5)
    ]


def test_an_exchange_without_those_before_it_fits_no_official_file(built, cli, tmp_path):
    code, _, err = cli("export", built / "task_5" / "dev", "--out", tmp_path / "official")
    assert code == 2
    assert re.search(r"task_5/dev: example \d+: an exchange without those before it", err)
    assert not (tmp_path / "official" / "task5_joint_dev.txt").exists()


def test_only_film_tasks_are_exported(cli, save, tmp_path):
    (tmp_path / "t").mkdir()
    save("t/task.yaml", "{dataset: ubuntu, subtask: 1, split: dev, examples: 1, options: 1}")
    code, _, err = cli("export", tmp_path / "t", "--format", "mdd", "--out", tmp_path / "o")
    assert (code, "'ubuntu' is no film task" in err) == (2, True)


def test_official_questions_are_held_out_and_compared(built, cli, world, tmp_path):
    cli("export", built / "task_1" / "dev", "--format", "mdd", "--out", tmp_path / "official")
    official = tmp_path / "official" / "task1_qa_dev.txt"
    code, out, err = build(cli, world, tmp_path / "again", "--official", official)
    assert code == 0, err
    assert re.search(r"\| messages in a form that the other has \| \S+% \| 100.0% \|", out)
    kb = read_kb(world / "movie_kb.txt")
    held = asked_about(kb, load_selection_task(built / "task_1" / "dev"))
    for split in ("train", "dev", "test"):
        assert not held & asked_about(kb, load_selection_task(tmp_path / "again" / "task_1" / split))


def asked_about(kb, task):
    """Return (class, entity) of all questions, whose entity is found without the parser: by trying the patterns."""
    found = set()
    for text, name in zip(texts(task), task.groups["question"], strict=True):
        for pattern in packaged_patterns()[name]:
            before, after = f"{pattern}?".split("[]")
            entity = text.removeprefix(before).removesuffix(after)
            if text == f"{before}{entity}{after}" and entity in kb.numbers:
                found.add((name, entity))
    return found


def test_answers_are_complete(kb):
    questions = all_questions(kb, packaged_patterns())
    examples, groups = ask(kb, questions, packaged_patterns(), np.random.default_rng(0))
    triples = [
        (kb.entities[kb.titles[f]], RELATIONS[r], kb.entities[v])
        for f, r, v in zip(kb.film, kb.relation, kb.value, strict=True)
    ]
    expected = {}
    for title, relation, value in triples:
        for forward, entity, answer in ((True, title, value), (False, value, title)):
            expected.setdefault((relation, forward, entity), set()).add(answer)
    rows = zip(questions.entity.tolist(), groups["question"], examples["correct"].to_list(), strict=True)
    for entity, name, correct in rows:
        assert {kb.entities[row] for row in correct} == expected[*ASKED[name], kb.entities[entity]]
    asked = sum(way[:2] in ASKED.values() for way in expected)
    assert len(questions) == asked


@pytest.mark.parametrize("by_entity", [False, True])
def test_splits_share_no_question(kb, by_entity):
    questions = all_questions(kb, packaged_patterns())
    parts = divide(questions, [100, 100], by_entity, np.random.default_rng(0))
    keys = [set((part.entity if by_entity else part.keys(kb)).tolist()) for part in parts]
    assert not (keys[0] & keys[1] or keys[0] & keys[2] or keys[1] & keys[2])
    assert len(parts[0]) == 100
    if not by_entity:
        assert sum(map(len, parts)) == len(questions)


def test_the_mix_of_classes_is_that_of_the_annotations(kb):
    patterns = {name: Counter({"what of []": 7 if name == "movie to year" else 1}) for name in ASKED}
    chosen = mixed(all_questions(kb, patterns), patterns, 170, np.random.default_rng(0))
    counts = dict(zip(ASKED, np.bincount(chosen.class_, minlength=len(ASKED)).tolist(), strict=True))
    assert counts["movie to year"] == 70
    assert set(counts.values()) == {10, 70}
    assert len(np.unique(chosen.keys(kb))) == 170
    everything = all_questions(kb, patterns)
    assert len(mixed(everything, patterns, 10**9, np.random.default_rng(0))) == len(everything)
    nearly = len(everything) - 3
    assert len(mixed(everything, patterns, nearly, np.random.default_rng(0))) == nearly


def test_patterns_are_learned(kb, save, complaint):
    parser = Parser(kb.entities, kb.rank)
    title = next(kb.entities[t] for t in kb.titles.tolist() if kb.objects(kb.entities[t], "directed_by"))
    director = kb.objects(title, "directed_by")[0]
    films_ = "|".join(kb.subjects(director, "directed_by"))
    path = save(
        "q", f"who made [{title}], who directed?\t{director}\nwhat did [{director}] direct\t{films_}\nhm [x]\ty\n"
    )
    learned = read_patterns(path, kb, parser)
    assert learned == {
        "movie to director": Counter(["who made [], who directed?"]),
        "director to movie": Counter(["what did [] direct"]),
    }
    questions = all_questions(kb, learned)
    examples, _ = ask(kb, questions, learned, np.random.default_rng(0))
    asked = {turns[0]["text"] for turns in examples["turns"]}
    assert f"who made {title}, who directed?" in asked
    assert f"what did {director} direct?" in asked
    assert complaint(read_patterns, save("q", "who?\tme\n"), kb, parser).startswith("q: line 1: expected a question")
    assert complaint(read_patterns, save("q", "a [b]\tc\n"), kb, parser).startswith("q: holds no question")


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9)), min_size=1, max_size=20), st.integers(0, 99))
def test_drawn_places_are_different(rows, seed):
    sizes = np.array([size for size, _ in rows])
    counts = np.minimum(sizes, [count for _, count in rows])
    drawn = draw_distinct(sizes, counts, np.random.default_rng(seed))
    for row, size, count in zip(drawn.tolist(), sizes.tolist(), counts.tolist(), strict=True):
        chosen = [place for place in row if place >= 0]
        assert len(chosen) == len(set(chosen)) == count
        assert row[:count] == chosen
        assert all(place < size for place in chosen)


def test_every_draw_is_as_likely():
    drawn = draw_distinct(np.full(60_000, 4), np.full(60_000, 2), np.random.default_rng(0))
    counts = Counter(map(tuple, drawn.tolist()))
    assert len(counts) == 12
    assert max(abs(count / 60_000 - 1 / 12) for count in counts.values()) < 0.005


def test_tastes_are_users_own(likes):
    splits = divide_users(likes, np.random.default_rng(0))
    users = {split: Counter(map(tuple, part.lists())) for split, part in splits.items()}
    assert users["train"] + users["dev"] + users["test"] == Counter(map(tuple, likes.lists()))  # each one once
    assert all(users.values())
    tastes = draw_tastes(splits["train"], 2_000, np.random.default_rng(0))
    for liked, answer in zip(tastes.liked.tolist(), tastes.answer.tolist(), strict=True):
        own = {film for film in liked if film >= 0}
        assert answer not in own
        assert 1 <= len(own) <= 8
        assert any(own | {answer} <= set(user) for user in users["train"])
    assert listed(["A"]) == "A"
    assert listed(["A", "B"]) == "A and B"
    assert listed(["A", "B", "C"]) == "A, B, and C"


@pytest.mark.parametrize("users", [1, 2])
def test_fewer_users_than_splits_are_refused(cli, world, save, tmp_path, users):
    liked = [line.partition(",")[0] for line in (world / "movies.csv").read_text().splitlines()[1:4]]
    rows = [f"{user},{film},{5 if user < users else 1},0" for user in range(3) for film in liked]
    ratings = save("ratings.csv", "userId,movieId,rating,timestamp\n" + "\n".join(rows) + "\n")
    save("movies.csv", (world / "movies.csv").read_text())
    given_files = ("--kb", world / "movie_kb.txt", "--ratings", ratings)
    code, _, err = cli("build", "movies", *given_files, "--out", tmp_path / "out")
    who = f"{users} user{'s' * (users > 1)} with five stars for two films of the knowledge base"
    assert (code, err) == (2, f"error: {ratings}: holds {who}; tasks 2 and 3 need 3 at least\n")
    assert not (tmp_path / "out").exists()


def test_films_that_few_like_are_answers_more_often():
    likes = from_lists([[0, 1, 2], [0, 1], [0, 3]])  # liked by three, two, one, one
    tastes = draw_tastes(likes, 60_000, np.random.default_rng(0))
    shares = np.bincount(tastes.answer) / 60_000
    expected = [2 / 11 + 2 / 5 + 1 / 4, 3 / 11 + 3 / 5, 6 / 11, 3 / 4]
    assert np.abs(shares - np.array(expected) / 3).max() < 0.01


def test_dialogues_go_on_from_one_another(kb, likes):
    rng = np.random.default_rng(0)
    script = Playwright(kb, likes).write(2_000, rng)
    assert len(script.film) > 1_000
    examples, groups = converse(kb, script, rng)
    assert groups["response"].to_list()[:6] == [1, 2, 3, 1, 2, 3]
    facts = {(kb.titles[f], r, v) for f, r, v in zip(kb.film, kb.relation, kb.value, strict=True)}
    has = {(t, v) for t, _, v in facts}
    rows = zip(script.tastes.answer, script.wish, script.relation, script.other, script.film, strict=True)
    for number, (film, wish, relation, other, another) in enumerate(rows):
        assert (film, wish) in has
        assert (another, wish) in has
        assert (another, relation, other) in facts
        assert (film, relation, other) not in facts
        assert another not in {film, *script.tastes.liked[number]}
        first, second, third = examples["correct"][3 * number : 3 * number + 3].to_list()
        assert (first, third) == ([film], [another])
        assert set(second) == {v for t, r, v in facts if (t, r) == (film, relation)} if number < 50 else True
    turns = [turn["text"] for turn in examples["turns"][2]]
    assert turns[1] == kb.entities[script.tastes.answer[0]]
    assert kb.entities[script.other[0]] in turns[4]
    assert kb.entities[script.wish[0]] in turns[0]


def test_candidates_are_used_for_nothing_else():
    dialogues = [(f"q{n}", f"r{n}", f"s{n}", "thanks") for n in range(100)]
    splits, wrong = divide_discussions(dialogues, 1_000, 7, 12, np.random.default_rng(0))
    assert [len(splits[split]) for split in ("train", "dev", "test")] == [66, 7, 7]
    said = {text for chosen in splits.values() for dialogue in chosen for text in dialogue}
    assert {split: len(texts_) for split, texts_ in wrong.items()} == {"dev": 10, "test": 10}
    assert not said & {*wrong["dev"], *wrong["test"]}
    assert not set(wrong["dev"]) & set(wrong["test"])


def test_what_cannot_be_built(cli, world, tmp_path, save):
    few = save("few.jsonl", '{"id": "a", "body": "x"}\n{"id": "b", "parent_id": "a", "body": "y"}\n')
    code, _, err = cli("build", "movies", "--kb", world / "movie_kb.txt", "--threads", few, "--out", tmp_path / "o")
    assert (code, err) == (2, f"error: {few}: holds 1 discussion with a reply; task 4 needs 10 at least\n")
    assert not (tmp_path / "o").exists()


def test_questions_alone_will_do(cli, world, tmp_path):
    files = ("--kb", world / "movie_kb.txt", "--qa-size", 50, "--eval-size", 10, "--joint-size", 20)
    assert cli("build", "movies", *files, "--out", tmp_path / "o")[0] == 0
    assert sorted(path.name for path in (tmp_path / "o").glob("task_*")) == ["task_1", "task_5"]


def test_no_dialogue_without_shared_facts(kb):
    alone = from_lists([[int(kb.titles[0]), int(kb.titles[1])]])
    script = Playwright(kb, alone).write(50, np.random.default_rng(0))
    assert set(script.tastes.answer.tolist()) <= {int(kb.titles[0]), int(kb.titles[1])}


def test_a_knowledge_base_of_two_facts_is_too_small(cli, save, tmp_path):
    path = save("movie_kb.txt", "1 Kismet directed_by William Dieterle\n2 Kismet release_year 1944\n")
    code, _, err = cli("build", "movies", "--kb", path, "--out", tmp_path / "movies")
    assert (code, err.strip()) == (2, "error: the knowledge base answers 3 questions; it takes 30 to divide them")
    assert not (tmp_path / "movies").exists()
