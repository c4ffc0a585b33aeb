import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from rejoinder.tasks.build import Cut, build_task, option_id, similar_by_words
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


def wordy(count: int, seed: int) -> list[str]:
    """Texts whose words are as unequally frequent as real ones."""
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{word}" for word in rng.zipf(1.4, size=9) % 500) for _ in range(count)]


def cosines(contexts: list[str], texts: list[str]) -> np.ndarray:
    vectors = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+|[^\w\s]").fit(texts)
    return (vectors.transform(contexts) @ vectors.transform(texts).T).toarray()


def test_what_is_similar_is_what_comparing_all_pairs_finds():
    contexts, texts = wordy(100, 1), wordy(900, 2)
    found = similar_by_words(most=40)([Cut((("a", text),), ("-",)) for text in contexts], [(text,) for text in texts])
    for rows, scores in zip(found, cosines(contexts, texts), strict=True):
        best = np.sort(scores)[::-1][:40]
        np.testing.assert_allclose(np.sort(scores[rows])[::-1], best[best > 0])


def test_of_frequent_words_those_are_looked_at_that_use_them_most():
    contexts, texts = wordy(50, 1), wordy(3_000, 2)
    cuts, wrong = [Cut((("a", text),), ("-",)) for text in contexts], [(text,) for text in texts]
    found = list(similar_by_words(most=40, champions=200)(cuts, wrong))
    scores = cosines(contexts, texts)
    chosen = np.mean([own[rows].mean() for rows, own in zip(found, scores, strict=True)])
    best = np.sort(scores, axis=1)[:, -40:].mean()
    assert 3 * scores.mean() < 0.8 * best < chosen < best


def test_a_context_that_shares_no_word_gets_any_wrong_options():
    cuts = [Cut((("a", "unheard of"),), ("right",))]
    assert build_task(cuts, WRONG, candidates=20, similar=similar_by_words()).examples["options"].list.len()[0] == 20
