"""Retrieval from training exchanges (Dodge et al. 2016, section 3.6 and appendix A).

An option is as good as the cosine of its TF-IDF vector with a query: the message itself ("most similar response"), the
reply that the most similar training message got ("most similar message"), or a sum of both (relevance feedback).
"""

from functools import cached_property
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.arrays import find
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.ranking import answers_of, blocks, rank_by_products
from rejoinder.systems.retrieval import Tfidf
from rejoinder.systems.system import Lesson
from rejoinder.systems.turns import turns_of
from rejoinder.systems.words import Matrix, count_words
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Advance, Watch, unwatched

_BLOCK = 256
_RARE, _RARE_SHARE = 1_000, 0.01
"""Messages are looked for by words that at most so many of them have: others cost much and tell little."""


class Exchanges(Tfidf):
    """Ranks by the cosine with the message, with what a similar message was answered, or with both."""

    class Settings(msgspec.Struct, frozen=True):
        """What the query is made of."""

        recency: float = 0.0
        """The weight of each earlier turn, next to the one after it; 0: the message alone, 1: all context alike."""
        message: float = 1.0
        feedback: float = 0.0
        """The weight of the reply to the most similar training message."""
        stem: int = 0
        rarity: float = 1.0

    messages: Matrix
    replies: Matrix

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn how rare words are, and keep the exchanges if they are needed."""
        super().fit(lesson)
        if not self.settings.feedback:
            return
        answers = answers_of(lesson.train)
        texts = lesson.train.options["text"].gather(answers.values).to_list()
        said = [" ".join(texts[start:end]) for start, end in pairwise(answers.starts.tolist())]
        self.messages = self.weigh_contexts(turns_of(lesson.train))
        self.replies = self.weigh_options(count_words(said, self.settings.stem))

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        options = self.weigh_options(count_words(task.options["text"].to_list(), self.settings.stem))
        asked = self.weigh_contexts(turns_of(task))
        query = self.settings.message * asked
        if self.settings.feedback:
            with watch("looking for similar messages", asked.shape[0]) as advance:
                nearest = self._known.nearest(asked, advance)
            replies = self.replies[np.maximum(nearest, 0)]
            replies.data *= np.repeat(nearest >= 0, np.diff(replies.indptr))  # what shares no word has no like
            query = query + self.settings.feedback * replies
        return rank_by_products(task, self.name, query.tocsr().sorted_indices(), options, watch)

    @cached_property
    def _known(self) -> "KnownMessages":
        return KnownMessages(self.messages)

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        super().save(folder)
        if self.settings.feedback:
            sparse.save_npz(folder / "messages.npz", self.messages)
            sparse.save_npz(folder / "replies.npz", self.replies)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        super().load(folder)
        if self.settings.feedback:
            self.messages = sparse.csr_matrix(sparse.load_npz(folder / "messages.npz"))
            self.replies = sparse.csr_matrix(sparse.load_npz(folder / "replies.npz"))


class KnownMessages:
    """Messages by their rare words: which of very many is most similar is found without looking at the others."""

    def __init__(self, messages: Matrix) -> None:
        words, frequency = np.unique(messages.indices, return_counts=True)
        self._rare = words[frequency <= max(_RARE, _RARE_SHARE * messages.shape[0])]
        self._index = _columns(messages, self._rare).T.tocsr()

    def nearest(self, asked: Matrix, advance: Advance) -> NDArray[np.int64]:
        """Return for each row asked the message with the greatest product, by rare words alone; -1: it shares none."""
        asked = _columns(asked, self._rare)
        found = np.empty(asked.shape[0], np.int64)
        for block in blocks(asked.shape[0], _BLOCK):
            products = asked[block] @ self._index
            found[block] = np.where(np.diff(products.indptr), np.asarray(products.argmax(axis=1)).ravel(), -1)
            advance(block.stop - block.start)
        return found


def _columns(rows: Matrix, kept: NDArray[np.int32]) -> sparse.csr_matrix:
    """Keep some columns, and number them from 0 on."""
    place, known = find(kept, rows.indices)
    ends = np.append(0, np.cumsum(known))[rows.indptr]
    return sparse.csr_matrix((rows.data[known], place[known], ends), (rows.shape[0], max(len(kept), 1)))
