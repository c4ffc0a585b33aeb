"""Texts as words and punctuation marks, each distinct one kept once."""

from collections.abc import Sequence

import msgspec
import polars as pl

from rejoinder.corpora.ragged import Ints, Numbers, to_starts
from rejoinder.text import WORD_OR_MARK


class Tokens(msgspec.Struct, frozen=True):
    """The words and marks of some texts, one after the other; text t has those at `starts[t]:starts[t + 1]`."""

    starts: Ints
    codes: Numbers
    """The place of each one in `words`."""
    words: pl.Series
    """The distinct ones, composed (NFC)."""

    def __len__(self) -> int:
        return len(self.codes)

    def lower(self) -> pl.Series:
        """Return the distinct ones in lower case."""
        return self.words.str.to_lowercase()


def tokenise(texts: Sequence[str] | pl.Series) -> Tokens:
    """Cut texts into words and punctuation marks; white space is lost."""
    found = pl.Series("text", texts, dtype=pl.String).str.extract_all(WORD_OR_MARK)
    coded = found.list.explode(empty_as_null=False, keep_nulls=False).cast(pl.Categorical(pl.Categories.random()))
    distinct = coded.unique()
    words = distinct.cast(pl.String).gather(distinct.to_physical().arg_sort()).str.normalize("NFC")
    return Tokens(to_starts(found.list.len().to_numpy()), coded.to_physical().cast(pl.Int32).to_numpy(), words)
