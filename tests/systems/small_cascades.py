"""A cascade on a small pool, with an encoder that needs no network."""

from functools import cache
from pathlib import Path

import numpy as np

from rejoinder.measures.selection import score
from rejoinder.sample import irc
from rejoinder.systems.cascade import Cascade
from rejoinder.systems.ranking import rank_by_products
from rejoinder.systems.retrieval import Tfidf
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.systems.words import count_words
from rejoinder.tasks.build import Cut, build_pool_task
from rejoinder.watch import unwatched

WIDTH = 64


class Projection(SelectionSystem):
    """An encoder without a network: a random projection of the words, whose products come near to shared words."""

    encoded = 0

    def encode_contexts(self, task, watch=unwatched):
        return project(task.contexts())

    def encode_replies(self, texts, watch=unwatched):
        self.encoded += len(texts)
        return project(texts)

    def predict(self, task, watch=unwatched):
        texts = task.options["text"].to_list()
        return rank_by_products(task, "projection", project(task.contexts()), project(texts))


def project(texts):
    counts = count_words(texts, 4)
    columns, place = np.unique(counts.indices, return_inverse=True)
    words = np.stack([np.random.default_rng(column).normal(size=WIDTH) for column in columns])
    rows = np.repeat(np.arange(len(texts)), np.diff(counts.indptr))
    found = np.zeros((len(texts), WIDTH))
    np.add.at(found, rows, words[place])
    return (found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)).astype(np.float32)


@cache
def pool_tasks():
    """Return train, dev and test that share a pool."""
    talks = [dialogue.turns for dialogue in irc.dialogues(700, seed=5)]
    cuts = [Cut(tuple((turn.speaker, turn.text) for turn in turns[:-1]), (turns[-1].text,)) for turns in talks]
    pool = list(dict.fromkeys(turn.text for turns in talks for turn in turns))
    parts = (cuts[:300], cuts[300:500], cuts[500:])
    return [build_pool_task(part, pool, first_id=1000 * number) for number, part in enumerate(parts)]


def trained(tasks, **settings):
    train, dev, _ = tasks
    cascade = Cascade(Cascade.Settings(**settings))
    cascade.parts = [Projection(None)]
    for _ in cascade.settings.rankers:
        ranker = Tfidf(Tfidf.Settings())
        ranker.fit(Lesson(train=train, work=Path("unused")))
        cascade.parts.append(ranker)
    cascade.fit(Lesson(train=train, dev=dev, work=Path("unused")))
    return cascade


def recall(run, task):
    return score(run, task.truth(), ["R@10"])["R@10"].mean()
