"""Who would say a text: those who reply write other words (`you`, `try`) than all who talk (`my`, `thanks`)."""

from pathlib import Path

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.files import BadInputError, read_parquet, write_atomically
from rejoinder.systems.ranking import answers_of, pools
from rejoinder.tasks.selection import SelectionTask
from rejoinder.text import TOKEN

Floats = NDArray[np.float64]

_ROLE = "role.parquet"
_SCHEMA = {"word": pl.String, "weight": pl.Float64}
_LEAST = 5
"""Texts that a word must be in to tell anything."""
_LOOSENESS = 0.3
"""How far weights may be from zero: the inverse of scikit-learn's penalty, the best of three on dev of real logs."""


class Role(msgspec.Struct, frozen=True):
    """What each word says for a text being a reply: the weights of a logistic regression.

    Its inputs are a text's different known words and marks, each as 1 over the square root of how many there are.
    """

    weights: pl.DataFrame
    """Columns `word` and `weight`; where nothing was to be learned, no row."""

    @classmethod
    def learn(cls, train: SelectionTask, dev: SelectionTask) -> "Role":
        """Learn which of a pool are replies; lists teach nothing, for what is wrong there is mostly a reply, too.

        Dev's replies, which nobody gave in train, would be learned as none: they are left out, so that dev can say what
        all this is worth. Test's in the same pool, which nobody knows, are learned as none and so said a little less.
        """
        nothing = cls(pl.DataFrame(schema=_SCHEMA))
        if not pools(train):
            return nothing
        texts = train.options["text"].head(max(size for _, size in pools(train)))
        replied = np.isin(np.arange(len(texts)), answers_of(train).values)
        kept = replied | ~texts.is_in(dev.options["text"].gather(answers_of(dev).values).implode()).to_numpy()
        texts, replied = texts.filter(pl.Series(kept)), replied[kept]
        return cls.of(texts, replied) if 0 < replied.sum() < len(texts) else nothing

    @classmethod
    def of(cls, texts: pl.Series, replied: NDArray[np.bool_]) -> "Role":
        """Learn from texts, some of which are replies."""
        from sklearn.linear_model import LogisticRegression

        found = _words_of(texts)
        known = found.group_by("word").len().filter(pl.col("len") >= _LEAST).select("word").sort("word")
        if not known.height:
            return cls(pl.DataFrame(schema=_SCHEMA))
        found = found.join(known.with_row_index("column"), on="word", maintain_order="left")
        row, column = found["row"].to_numpy(), found["column"].to_numpy()
        values = 1 / np.sqrt(np.bincount(row, minlength=len(texts)))[row]
        inputs = sparse.csr_matrix((values, (row, column)), (len(texts), known.height))
        learned = LogisticRegression(C=_LOOSENESS, max_iter=1000).fit(inputs, replied)
        return cls(known.with_columns(weight=learned.coef_[0]))

    def scores(self, texts: pl.Series) -> Floats:
        """Return how much each text is like a reply."""
        found = _words_of(texts).join(self.weights, on="word", maintain_order="left")
        row = found["row"].to_numpy()
        count = np.bincount(row, minlength=len(texts))
        return np.bincount(row, found["weight"].to_numpy(), len(texts)) / np.sqrt(np.maximum(count, 1))

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        with write_atomically(folder / _ROLE) as file:
            self.weights.write_parquet(file)

    @classmethod
    def load(cls, folder: Path) -> "Role":
        """Read what was learned."""
        if not (folder / _ROLE).exists():
            raise BadInputError(folder / _ROLE, "no such file; the model is not whole, or an old one: train it anew")
        weights = read_parquet(folder / _ROLE)
        known = weights.schema == _SCHEMA and not weights.null_count().sum_horizontal().sum()
        if not (known and weights["weight"].is_finite().all() and weights["word"].is_unique().all()):
            raise BadInputError(folder / _ROLE, "not a weight for each word; the model is damaged: train it anew")
        return cls(weights)


def _words_of(texts: pl.Series) -> pl.DataFrame:
    """Return the different words and marks of each text (columns `row`, `word`), in the order of the texts."""
    lowered = pl.col("text").str.normalize("NFC").str.to_lowercase()
    words = lowered.str.extract_all(TOKEN).list.unique(maintain_order=True)
    numbered = texts.to_frame("text").lazy().select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("row"), word=words)
    return numbered.explode("word", empty_as_null=False).collect()
