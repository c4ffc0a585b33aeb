"""Retrieval from training exchanges, against scikit-learn and by hand."""

import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from rejoinder.systems.exchanges import Exchanges, KnownMessages
from rejoinder.systems.system import Lesson
from rejoinder.systems.words import count_words
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, OPTION_SCHEMA, SelectionTask

REPLIES = ["the lighthouse burns at night", "order a large pizza", "the keeper left the island", "bake bread slowly"]


def task(dialogues):
    """One example for each (turns, correct reply), all replies being the pool."""
    rows = [
        (str(n), [{"speaker": "ab"[i % 2], "text": text} for i, text in enumerate(turns)], None, [REPLIES.index(reply)])
        for n, (turns, reply) in enumerate(dialogues)
    ]
    options = pl.DataFrame([(f"o{n}", text) for n, text in enumerate(REPLIES)], schema=OPTION_SCHEMA, orient="row")
    return SelectionTask(pl.DataFrame(rows, schema=EXAMPLE_SCHEMA, orient="row"), options)


TRAIN = task([(["who lights the lamp by the sea"], REPLIES[0]), (["i am hungry for dinner"], REPLIES[1])])
ASKED = task([(["where did the keeper go", "no idea", "somebody hungry for dinner"], REPLIES[1])])


def best(tmp_path, **settings):
    system = Exchanges(Exchanges.Settings(**settings))
    system.fit(Lesson(train=TRAIN, work=tmp_path))
    system.save(tmp_path)
    loaded = Exchanges(system.settings)
    loaded.load(tmp_path)
    run = loaded.predict(ASKED)
    assert run.choices.equals(system.predict(ASKED).choices)
    return run.choices["option"][0], run


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"recency": 1.0}, "o2"),  # the context's keeper
        ({"message": 0.0, "feedback": 1.0}, "o1"),  # the reply to the most similar message
        ({"recency": 0.0, "feedback": 0.5}, "o1"),
        ({"recency": 1.0, "feedback": 0.1}, "o2"),  # too little feedback to change anything
    ],
)
def test_queries(tmp_path, settings, expected):
    assert best(tmp_path, **settings)[0] == expected


def test_scores_are_cosines_of_tfidf_vectors(tmp_path):
    _, run = best(tmp_path, recency=1.0)
    texts = [*REPLIES, *(turn["text"] for turns in TRAIN.examples["turns"] for turn in turns)]
    vectors = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=False).fit(texts)
    asked = vectors.transform([" ".join(turn["text"] for turn in ASKED.examples["turns"][0])])
    order = np.argsort(-(vectors.transform(REPLIES) @ asked.T).toarray().ravel(), kind="stable")
    assert [f"o{n}" for n in order[:2]] == run.choices["option"].to_list()[:2]


def test_the_most_similar_message_is_found():
    texts = [f"common words and rare{n} also{n % 7}" for n in range(50)]
    counts = count_words(texts, 0)
    seen = []
    known = KnownMessages(counts)
    found = known.nearest(count_words(["rare7", "rare31 also3 common", "unheard", "also6 rare13"], 0), seen.append)
    assert found.tolist() == [7, 31, -1, 13]
    assert sum(seen) == 4


def test_a_message_without_words_is_like_nothing(tmp_path):
    system = Exchanges(Exchanges.Settings())
    system.fit(Lesson(train=TRAIN, work=tmp_path))
    run = system.predict(task([(["where did the keeper go", "?!"], REPLIES[2])]))
    assert run.choices["score"].to_list() == [0] * len(REPLIES)


def test_a_message_like_no_other_is_answered_by_itself_alone(tmp_path):
    asked = task([(["where did the keeper go", "entirely unheard words"], REPLIES[2])])
    runs = []
    for feedback in (0.0, 1.0):
        system = Exchanges(Exchanges.Settings(feedback=feedback))
        system.fit(Lesson(train=TRAIN, work=tmp_path))
        runs.append(system.predict(asked).choices)
    assert runs[0].equals(runs[1])
