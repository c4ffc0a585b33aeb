"""Masked words: an encoder reads a domain's own dialogues before it learns to match (Devlin et al. 2019)."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rejoinder.errors import UserError
from rejoinder.nn.dialogues import Dialogues, RankingSettings, bucketed, place_letters, restore
from rejoinder.nn.encoders import FromWords, Pretrained, expect_room, make_encoder
from rejoinder.nn.sequences import joined
from rejoinder.training import WEIGHTS, load_arrays

WORD_VECTORS = "encoder.words.vectors.weight"


def load_encoder(network: nn.Module, folder: Path) -> None:
    """Start a network's encoder from the weights in a folder, whatever else they hold; or from word vectors alone."""
    from safetensors.torch import load_file

    try:
        state = load_file(folder / WEIGHTS)
    except Exception as error:  # safetensors has its own
        raise UserError(f"{folder / WEIGHTS}: not the weights of an earlier stage ({error})") from None
    own = {name.removeprefix("encoder."): value.float() for name, value in state.items() if name.startswith("encoder.")}
    encoder = network.encoder
    assert isinstance(encoder, FromWords | Pretrained)
    encoder.load_state_dict(own, strict=set(state) != {WORD_VECTORS})


class WordGuesser(nn.Module):
    """An encoder that guesses masked words; guesses share their vectors with the encoder's words."""

    def __init__(self, settings: RankingSettings, folder: Path) -> None:
        super().__init__()
        network = settings.network
        self.encoder = make_encoder(network.encoder, settings.known, folder)
        expect_room(self.encoder, network.context + network.reply + 3)
        size = self.encoder.size
        self.head = nn.Sequential(nn.Linear(size, size), nn.GELU(), nn.LayerNorm(size))
        vectors = self._vectors()
        self.bias = nn.Parameter(torch.zeros(len(vectors)))

    def _vectors(self) -> Tensor:
        encoder = self.encoder
        embedding = encoder.words.vectors if isinstance(encoder, FromWords) else encoder.model.get_input_embeddings()
        found: Tensor = embedding.weight
        return found

    def forward(self, tokens: Tensor, mask: Tensor, parts: Tensor, asked: Tensor) -> Tensor:
        """Return scores of all words for the places asked of."""
        states = self.head(self.encoder(tokens, mask, parts)[asked])
        return states @ self._vectors().T.to(states.dtype) + self.bias.to(states.dtype)


class MaskedWords:
    """Trains an encoder on a domain's own dialogues by masked words (Devlin et al. 2019), before it learns to match."""

    share = 0.15

    def __init__(self, settings: dict[str, Any], folder: Path, seed: int, device: torch.device) -> None:
        self.settings, self.seed, self.device = restore(settings), seed, device
        data = folder / self.settings.data
        self.network: nn.Module = WordGuesser(self.settings, data / "encoder")
        arrays = load_arrays(data)
        self.train = Dialogues(arrays, "train", self.settings, device)
        place_letters(self.network, arrays, device)
        if self.settings.start:
            load_encoder(self.network, folder / self.settings.start)

    def batches(self, epoch: int) -> list[Tensor]:
        """Return rows of contexts, in batches of similar length."""
        rng = np.random.default_rng([self.seed, epoch, 1])
        answered = np.flatnonzero(np.diff(self.train.correct_bounds))
        lengths = self.train.context.lengths.cpu().numpy()
        return [
            torch.as_tensor(part) for part in bucketed(rng.permutation(answered), lengths, self.settings.batch, rng)
        ]

    def loss(self, batch: Tensor) -> Tensor:
        """Return the mean loss of the guesses; of the words asked for 80% are masked, 10% replaced, 10% shown."""
        special, rows = self.settings.special, batch.to(self.device)
        right = self.train.correct[torch.as_tensor(self.train.correct_bounds[batch.numpy()]).to(self.device)]
        tokens, mask, parts = joined(self.train.contexts(rows), self.train.replies(right), special)
        fixed = torch.tensor([special.start, special.end, special.pad, *special.speakers], device=self.device)
        guessable = ~torch.isin(tokens, fixed) & (tokens < self.settings.known)  # beyond are words known by characters
        asked = (torch.rand(tokens.shape, device=self.device) < self.share) & guessable
        chance = torch.rand(tokens.shape, device=self.device)
        words = tokens[guessable]
        other = words[(torch.rand(tokens.shape, device=self.device) * len(words)).long()] if len(words) else tokens
        shown = torch.where(asked & (chance < 0.8), special.mask, torch.where(asked & (chance < 0.9), other, tokens))
        scores = self.network(shown, mask, parts, asked)
        # the mean, which of no guesses at all is 0
        return nn.functional.cross_entropy(scores.float(), tokens[asked], reduction="sum") / asked.sum().clamp(min=1)

    def evaluate(self) -> float | None:
        """Return nothing: the last weights are as good as any."""
        return None
