import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from rejoinder.tasks.description import ALIKE, describe, is_known, overlap


def test_diversity_by_hand():
    found = describe([["a b", "c"], ["a b", "a b", "d e f"]])
    assert found.dialogues == 2
    assert found.utterances_per_dialogue == 5 / 2
    assert found.tokens_per_utterance == (2 + 1 + 2 + 2 + 3) / 5
    assert found.utterances_per_unique_utterance == 5 / 3
    assert found.tokens_per_unique_token == 10 / 6


def test_overlap_finds_the_same_and_the_nearly_same():
    known = ["try sudo apt-get install foo and reboot", "Thanks!", "no idea"]
    new = ["thanks!", "try sudo apt-get install foo and reboot now", "something else entirely", "NO  idea"]
    found = overlap(known, new)
    assert (found.replies, found.same, found.alike) == (4, 2, 3)


def test_nothing_in_common():
    assert overlap(["a b"], ["c d"]).alike == 0


def compare_with_each(known, new):
    """Say of each new text whether its vector is near any known one's, by looking at all of them."""
    vectors = TfidfVectorizer(token_pattern=r"(?u)\S+", sublinear_tf=True)
    cosines = vectors.fit_transform(dict.fromkeys(known)) @ vectors.transform(new).T
    return cosines.toarray().max(axis=0) >= ALIKE


TEXTS = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8).map(" ".join), min_size=1)


@given(TEXTS, TEXTS)
def test_near_duplicates_are_found_as_by_comparing_with_each(known, new):
    assert is_known(known, new).tolist() == compare_with_each(known, new).tolist()


def test_near_duplicates_among_thousands_are_found_as_by_comparing_with_each():
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(2_000)])
    known = [" ".join(words[(2_000 * rng.random(rng.integers(1, 9)) ** 3).astype(int)]) for _ in range(3_000)]
    new = [f"{text} {words[int(rng.integers(2_000))]}" for text in known[:1_000]]
    found = is_known(known, new)
    assert 100 < found.sum() < 900
    assert found.tolist() == compare_with_each(known, new).tolist()
