"""The symbols of Appendix A (Dodge et al. 2016): all entities, then every other word that is frequent enough."""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from rejoinder.corpora.entities import Parsed, Parser
from rejoinder.corpora.ragged import Numbers
from rejoinder.corpora.tokens import tokenise

FEWEST = 5
"""How often a word must occur to be in the dictionary."""


class Dictionary:
    """Turns texts into symbols: those of the parser's entities come first, then the words in their order."""

    def __init__(self, parser: Parser, words: Sequence[str]) -> None:
        self.parser, self.words = parser, list(words)
        self._known = pl.DataFrame({"word": self.words}).with_row_index("symbol", offset=parser.symbols)

    def __len__(self) -> int:
        return self.parser.symbols + len(self.words)

    def parse(self, texts: Sequence[str] | pl.Series) -> Parsed:
        """Return the entities and known words of each text; other words are left out."""
        tokens = tokenise(texts)
        parsed, places = self.parser.parse_tokens(tokens)
        known = tokens.lower().to_frame("word").join(self._known, on="word", how="left", maintain_order="left")
        word: Numbers = known["symbol"].cast(pl.Int32).fill_null(-1).to_numpy()
        symbols = np.where(parsed.symbols < 0, word[tokens.codes[places]], parsed.symbols)
        kept = np.flatnonzero(symbols >= 0)
        starts = np.searchsorted(kept, parsed.starts)
        return Parsed(starts, symbols[kept], parsed.entities[kept], parsed.exact[kept])


def build_dictionary(parser: Parser, batches: Iterable[Sequence[str]], fewest: int = FEWEST) -> Dictionary:
    """Count the words that are part of no entity, batch by batch; the most frequent ones come first."""
    counted = pl.DataFrame(schema={"word": pl.String, "count": pl.UInt32})
    for texts in batches:
        tokens = tokenise(texts)
        parsed, places = parser.parse_tokens(tokens)
        counts = np.bincount(tokens.codes[places[parsed.symbols < 0]], minlength=len(tokens.words))
        more = pl.DataFrame({"word": tokens.lower(), "count": counts.astype(np.uint32)})
        counted = pl.concat([counted, more]).group_by("word").agg(pl.col("count").sum())
    frequent = counted.filter(pl.col("count") >= fewest).sort("count", "word", descending=[True, False])
    return Dictionary(parser, frequent["word"].to_list())
