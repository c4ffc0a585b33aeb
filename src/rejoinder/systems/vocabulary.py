"""From texts to tokens: a vocabulary of words that is counted, or the one of a pretrained encoder."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import UserError
from rejoinder.files import BadInputError
from rejoinder.nn.encoders import CHARACTERS, LONGEST_WORD, EncoderSettings
from rejoinder.nn.sequences import Special
from rejoinder.records import read_json
from rejoinder.systems.sentence_encoder import token_numbers
from rejoinder.systems.word_vectors import find_vectors, learn_vectors
from rejoinder.text import tokens as split

Floats = NDArray[np.float32]
Ints = NDArray[np.integer[Any]]
_FIRST = 7
"""Words are numbered after the special tokens and the one for unknown words (1)."""


class TokenNumbers(msgspec.Struct, frozen=True):
    """Texts as tokens, end to end."""

    tokens: Ints
    offsets: Ints
    letters: Ints | None = None
    """Tokens x letters, where characters count."""


class Vocabulary(Protocol):
    """What turns texts into tokens."""

    special: Special
    size: int

    def tokenise(self, texts: Sequence[str]) -> TokenNumbers:
        """Return the tokens of texts."""


class _Words(msgspec.Struct, frozen=True):
    words: list[str]
    characters: bool


class WordVocabulary:
    """The most frequent words of a corpus, in lower case."""

    special = Special()

    def __init__(self, words: Sequence[str], characters: bool) -> None:
        self.words, self.characters = words, characters
        self.places = {word: place for place, word in enumerate(words, _FIRST)}
        self.size = _FIRST + len(words)

    @classmethod
    def count(cls, texts: Iterable[str], settings: EncoderSettings) -> "WordVocabulary":
        """Keep words that occur often enough, the most frequent first; equally frequent ones by the alphabet."""
        counts = Counter(word for text in texts for word in split(text))
        kept = sorted((-count, word) for word, count in counts.items() if count >= settings.rarest)
        return cls([word for _, word in kept[: settings.vocabulary]], settings.characters > 0)

    def tokenise(self, texts: Sequence[str]) -> TokenNumbers:
        """Return the tokens of texts; unknown words are 1, or numbered on for the sake of their characters."""
        found = [split(text) for text in texts]
        offsets = np.cumsum([0, *map(len, found)])
        if not self.characters:
            tokens = np.fromiter((self.places.get(word, 1) for word in chain(*found)), np.int32, int(offsets[-1]))
            return TokenNumbers(tokens, offsets)
        places = dict(self.places)
        numbers = (places.setdefault(word, _FIRST + len(places)) for word in chain(*found))
        tokens = np.fromiter(numbers, np.int32, int(offsets[-1]))
        return TokenNumbers(tokens, offsets, _letters(list(places)))

    def vectors(self, source: str, size: int, texts: Iterable[str], seed: int) -> tuple[Floats, int]:
        """Return a vector for each token, with as much variance as random ones, and how many words the source has.

        The others have random vectors.

        Source: `glove`, a file, or `learned` from texts.
        """
        if source == "learned":
            places, table = learn_vectors((split(text) for text in texts), size)
            table = np.pad(table, [(0, 0), (0, size - table.shape[1])])  # few words make few dimensions
        else:
            places, table = find_vectors(source)
        if table.shape[1] != size:
            raise UserError(f"{source}: vectors of {table.shape[1]} numbers; expected {size}, the recipe's embedding")
        found = np.random.default_rng(seed).standard_normal((self.size, size), dtype=np.float32)
        known = [word for word in self.words if word in places]
        rows = table[[places[word] for word in known]]
        found[[self.places[word] for word in known]] = rows / max(float(rows.std()), 1e-6) if known else rows
        found[self.special.pad] = 0
        return found, len(known)

    def save(self, folder: Path) -> None:
        """Write the words."""
        folder.mkdir(parents=True, exist_ok=True)
        content = _Words(list(self.words), self.characters)
        (folder / "words.json").write_bytes(msgspec.json.encode(content))


def _letters(words: list[str]) -> Ints:
    table = np.zeros((_FIRST + len(words), LONGEST_WORD), dtype=np.uint8)
    for row, word in enumerate(words, _FIRST):
        codes = [min(ord(letter), CHARACTERS - 1) for letter in word[:LONGEST_WORD]]
        table[row, : len(codes)] = codes
    return table


class PretrainedVocabulary:
    """The tokeniser of a pretrained encoder."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # transformers and tokenizers have many of their own
            problem = str(error).partition("\n")[0]
            raise BadInputError(
                folder, f"no words.json, nor a tokeniser that transformers can read ({problem})"
            ) from None
        known = self.tokenizer.get_vocab()
        end = self.tokenizer.sep_token_id
        self.special = Special(
            pad=self.tokenizer.pad_token_id,
            start=self.tokenizer.cls_token_id,
            end=end,
            speakers=(known.get("[unused1]", end), known.get("[unused2]", end)),
        )
        self.size = len(known)

    def tokenise(self, texts: Sequence[str]) -> TokenNumbers:
        """Return the tokens of texts."""
        rows = [np.array(found, dtype=np.int32) for found in self._numbers(texts)]
        tokens = np.concatenate([np.zeros(0, dtype=np.int32), *rows])
        return TokenNumbers(tokens, np.cumsum([0, *map(len, rows)]))

    def _numbers(self, texts: Sequence[str]) -> Iterable[list[int]]:
        if not self.tokenizer.is_fast:
            plain = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
            found: list[list[int]] = self.tokenizer(list(texts), **plain)["input_ids"]
            return found
        quick = self.tokenizer.backend_tokenizer  # asked directly: transformers makes an object of each text
        quick.no_truncation()
        quick.no_padding()
        return token_numbers(quick, texts)


def load_vocabulary(folder: Path) -> Vocabulary:
    """Read a vocabulary of words, or a pretrained encoder's."""
    if (folder / "words.json").is_file():
        return WordVocabulary(**msgspec.structs.asdict(read_json(folder / "words.json", _Words)))
    return PretrainedVocabulary(folder)
