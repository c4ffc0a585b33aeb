"""Learners that train matching networks, and the masked-word learner that makes an encoder at home in its domain.

Arrays of a data folder: every utterance once (`tokens`, `offsets`); for `train` and `dev` the contexts (`_turns` and
`_speakers` by `_bounds`) and correct replies (`_correct` by `_correct_bounds`); for dev the options (`dev_options` by
`dev_option_bounds`); `letters` where words have characters.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from rejoinder.nn.encoders import EncoderSettings, FromWords, Pretrained, make_encoder
from rejoinder.nn.matching import MatchSettings, Padded, Towers, make_matcher
from rejoinder.nn.sequences import Ints, Sequences, Special, joined, lay_contexts
from rejoinder.training import LEARNER, WEIGHTS, load_arrays

Arrays = Mapping[str, Ints]


@dataclass(frozen=True)
class RankingSettings:
    """What a ranking learner needs besides its arrays."""

    network: MatchSettings = field(default_factory=MatchSettings)
    special: Special = field(default_factory=Special)
    known: int = 0
    """Words of the vocabulary."""
    loss: Literal["softmax", "binary"] = "softmax"
    """softmax: the right reply among the batch's, or among `negatives`; binary: right or wrong, one wrong for each."""
    negatives: int = 0
    """Wrong replies for each context, where the network reads both together; 0: those of the batch."""
    hard: float = 0.0
    """Share of these that the network of `miner` holds for likely; the others are any."""
    batch: int = 128
    data: str = "../data"
    start: str = ""
    """A folder whose weights the encoder starts from."""
    miner: str = ""
    """A folder with a trained two-tower network."""


def restore(data: dict[str, Any]) -> RankingSettings:
    """Read settings back from JSON."""
    network = dict(data["network"])
    encoder = dict(network.pop("encoder"))
    encoder["widths"] = tuple(encoder["widths"])
    special = dict(data["special"])
    special["speakers"] = tuple(special["speakers"])
    others = {key: value for key, value in data.items() if key not in ("network", "special")}
    matcher = MatchSettings(**network, encoder=EncoderSettings(**encoder))
    return RankingSettings(network=matcher, special=Special(**special), **others)


class Dialogues:
    """Contexts and replies of one split, on the device."""

    def __init__(self, arrays: Arrays, split: str, settings: RankingSettings, device: torch.device) -> None:
        tokens, offsets = arrays["tokens"], arrays["offsets"]
        turns, speakers, bounds = last_turns(
            arrays[f"{split}_turns"], arrays[f"{split}_speakers"], arrays[f"{split}_bounds"], settings.network.turns
        )
        laid, ends = lay_contexts(tokens, offsets, turns, speakers, bounds, settings.special)
        self.settings, self.device = settings, device
        self.context = Sequences(laid, ends, device)
        self.utterances = Sequences(tokens, offsets, device)
        self.correct = torch.as_tensor(arrays[f"{split}_correct"].astype(np.int64)).to(device)
        self.correct_bounds = arrays[f"{split}_correct_bounds"].astype(np.int64)

        padded = np.full((len(self), max(1, int(np.diff(self.correct_bounds).max(initial=1)))), -1)
        row = np.repeat(np.arange(len(self)), np.diff(self.correct_bounds))
        padded[row, np.arange(len(row)) - self.correct_bounds[row]] = self.correct.cpu().numpy()
        self.correct_padded = torch.from_numpy(padded).to(device)

    def __len__(self) -> int:
        return len(self.context)

    def is_correct(self, rows: Tensor, utterances: Tensor) -> Tensor:
        """Say of each row's utterances (rows x any) which are correct replies."""
        return (utterances.unsqueeze(2) == self.correct_padded[rows].unsqueeze(1)).any(2)

    def contexts(self, rows: Tensor) -> Padded:
        """Return padded contexts."""
        return self.context.padded(rows, self.settings.network.context, self.settings.special, from_end=True)

    def replies(self, utterances: Tensor) -> Padded:
        """Return padded replies, by their utterances' rows."""
        return self.utterances.padded(utterances, self.settings.network.reply, self.settings.special)


def last_turns(turns: Ints, speakers: Ints, bounds: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """Keep the last turns of each context."""
    sizes = np.minimum(np.diff(bounds), most)
    ends = np.cumsum(sizes)
    rows = np.repeat(np.asarray(bounds)[1:] - ends, sizes) + np.arange(ends[-1] if len(ends) else 0)
    return np.asarray(turns)[rows], np.asarray(speakers)[rows], np.concatenate([[0], ends])


class Ranking:
    """Trains a matching network to prefer the right reply."""

    def __init__(self, settings: dict[str, Any], folder: Path, seed: int, device: torch.device) -> None:
        self.settings, self.seed, self.device = restore(settings), seed, device
        data = folder / self.settings.data
        self.network: nn.Module = make_matcher(
            self.settings.network, self.settings.special, self.settings.known, data / "encoder"
        )
        arrays = load_arrays(data)
        listed = "train_options" in arrays
        self.train = (Options if listed else Dialogues)(arrays, "train", self.settings, device)
        self.dev = Options(arrays, "dev", self.settings, device) if "dev_options" in arrays else None
        place_letters(self.network, arrays, device)
        if self.settings.start:
            load_encoder(self.network, folder / self.settings.start)
        self.mined = self._mine(folder / self.settings.miner) if self.settings.hard else None

    def batches(self, epoch: int) -> list[Tensor]:
        """Return rows of contexts with a correct reply, in batches of similar length."""
        rng = np.random.default_rng([self.seed, epoch])
        answered = np.flatnonzero(np.diff(self.train.correct_bounds))
        lengths = self.train.context.lengths.cpu().numpy()
        rows = bucketed(rng.permutation(answered), lengths, self.settings.batch, rng)
        return [torch.as_tensor(part) for part in rows]

    def loss(self, batch: Tensor) -> Tensor:
        """Return the mean loss of one batch of contexts."""
        rows = batch.to(self.device)
        right = self._right(batch)
        if isinstance(unwrapped(self.network), Towers):
            return self._loss_in_batch(rows, right)
        return self._loss_of_pairs(rows, right)

    def _right(self, batch: Tensor) -> Tensor:
        """Return one correct reply for each context; of several, now one and now another."""
        bounds = self.train.correct_bounds
        first, count = bounds[batch.numpy()], np.diff(bounds)[batch.numpy()]
        chosen = first + (torch.rand(len(count)).numpy() * count).astype(np.int64)
        return self.train.correct[torch.as_tensor(chosen).to(self.device)]

    def _loss_in_batch(self, rows: Tensor, right: Tensor) -> Tensor:
        scores = self.network(self.train.contexts(rows), self.train.replies(right))
        own = torch.eye(len(rows), dtype=torch.bool, device=self.device)
        also_right = self.train.is_correct(rows, right.expand(len(rows), -1)) & ~own
        if self.settings.loss == "binary":
            wrong = scores.roll(1, 1).diagonal()
            targets = torch.cat([torch.ones_like(wrong), torch.zeros_like(wrong)])
            both = torch.cat([scores.diagonal(), wrong])
            return nn.functional.binary_cross_entropy_with_logits(both, targets)
        return nn.functional.cross_entropy(
            scores.masked_fill(also_right, -1e4), torch.arange(len(rows), device=self.device)
        )

    def _loss_of_pairs(self, rows: Tensor, right: Tensor) -> Tensor:
        wrong = self._wrong(rows)
        options = torch.cat([right.unsqueeze(1), wrong], dim=1)
        repeated = rows.repeat_interleave(options.shape[1])
        scores = self.network(self.train.contexts(repeated), self.train.replies(options.flatten())).view(options.shape)
        also_right = nn.functional.pad(self.train.is_correct(rows, wrong), (1, 0))
        scores = scores.float().masked_fill(also_right, -1e4)
        return nn.functional.cross_entropy(scores, torch.zeros(len(rows), dtype=torch.long, device=self.device))

    def _wrong(self, rows: Tensor) -> Tensor:
        """Draw replies from an example's own options, where it has them, else from all."""
        count = self.settings.negatives or 1
        chance = torch.rand(len(rows), count).to(self.device)
        if isinstance(self.train, Options):
            anything = self.train.draw(rows, chance)
        else:
            anything = self.train.correct[(chance * len(self.train.correct)).long()]
        if self.mined is None:
            return anything
        chosen = torch.randint(self.mined.shape[1], (len(rows), count)).to(self.device)
        likely = torch.rand(len(rows), count).to(self.device) < self.settings.hard
        return torch.where(likely, self.mined[rows].gather(1, chosen), anything)

    @torch.no_grad()
    def _mine(self, folder: Path, most: int = 50) -> Tensor:
        """Return for each context the replies that a two-tower network ranks high, the very first ones left out.

        Those are too often right as well, though somebody else gave them.
        """
        towers = load_trained(folder, self.device)
        texts = self.train.correct.unique()
        vectors = encode_replies(towers, self.train, texts)
        found = []
        for rows in torch.arange(len(self.train), device=self.device).split(512):
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
                contexts = towers.contexts(self.train.contexts(rows))
            scores = towers.compare(contexts, vectors)
            found.append(texts[scores.topk(min(most, len(texts)), dim=1).indices[:, min(3, len(texts) - 1) :]])
        return torch.cat(found)

    def evaluate(self) -> float | None:
        """Return MRR on dev."""
        if self.dev is None:
            return None
        return self.dev.mean_reciprocal_rank(unwrapped(self.network))


class Options(Dialogues):
    """Contexts with options to rank."""

    def __init__(self, arrays: Arrays, split: str, settings: RankingSettings, device: torch.device) -> None:
        super().__init__(arrays, split, settings, device)
        self.options = torch.as_tensor(arrays[f"{split}_options"].astype(np.int64)).to(device)
        self.option_bounds = arrays[f"{split}_option_bounds"].astype(np.int64)
        self.bounds = torch.from_numpy(np.array(self.option_bounds)).to(device)

    def draw(self, rows: Tensor, chance: Tensor) -> Tensor:
        """Return options of rows, by numbers between 0 and 1."""
        first, end = (self.bounds[rows + step].unsqueeze(1) for step in (0, 1))
        return self.options[first + (chance * (end - first)).long()]

    @torch.no_grad()
    def scores(self, network: nn.Module, advance: Callable[[int], object] = lambda _: None) -> Tensor:
        """Score all options of all contexts, one after the other."""
        network.eval()
        if isinstance(network, Towers):
            return self._score_apart(network, advance)
        sizes = np.diff(self.option_bounds)
        context = torch.as_tensor(np.repeat(np.arange(len(sizes)), sizes)).to(self.device)
        lengths = self.context.lengths[context] + self.utterances.lengths[self.options]
        order = lengths.argsort()
        scores = torch.zeros(len(context), device=self.device)
        for rows in order.split(256):
            scores[rows] = network(self.contexts(context[rows]), self.replies(self.options[rows])).float()
            advance(len(rows))
        return scores

    def _score_apart(self, network: Towers, advance: Callable[[int], object]) -> Tensor:
        distinct, places = self.options.unique(return_inverse=True)
        replies = encode_replies(network, self, distinct)
        parts = []
        for first in range(0, len(self), 64):
            rows = torch.arange(first, min(first + 64, len(self)), device=self.device)
            contexts = network.contexts(self.contexts(rows))
            for row, context in zip(rows.tolist(), contexts, strict=True):
                own = replies[places[self.option_bounds[row] : self.option_bounds[row + 1]]]
                parts.append(network.compare(context.unsqueeze(0), own).squeeze(0))
                advance(len(own))
        return torch.cat(parts)

    def mean_reciprocal_rank(self, network: nn.Module) -> float:
        """Return MRR; of tied options the one listed first counts as better."""
        scores = self.scores(network).cpu()
        options, correct = self.options.cpu(), self.correct.cpu()
        found = []
        for row in range(len(self)):
            own = slice(self.option_bounds[row], self.option_bounds[row + 1])
            order = scores[own].argsort(descending=True, stable=True)
            right = correct[self.correct_bounds[row] : self.correct_bounds[row + 1]]
            hits = torch.isin(options[own][order], right).nonzero()
            if len(right):
                found.append(1 / (1 + int(hits[0])) if len(hits) else 0.0)
        return float(np.mean(found)) if found else 0.0


def encode_replies(network: Towers, dialogues: Dialogues, utterances: Tensor) -> Tensor:
    """Return the vectors of replies, by their utterances' rows; those of similar length are encoded together."""
    order = dialogues.utterances.lengths[utterances].argsort()
    parts = []
    for rows in order.split(512):
        with torch.autocast(dialogues.device.type, torch.bfloat16, enabled=dialogues.device.type == "cuda"):
            parts.append(network.replies(dialogues.replies(utterances[rows])).float())
    vectors = torch.cat(parts)
    return vectors[order.argsort()]


def bucketed(rows: Ints, lengths: Ints, batch: int, rng: np.random.Generator, span: int = 50) -> list[Ints]:
    """Divide shuffled rows into batches of similar length, and shuffle these."""
    parts = []
    for first in range(0, len(rows), batch * span):
        near = rows[first : first + batch * span]
        near = near[np.argsort(lengths[near], kind="stable")]
        parts += [near[place : place + batch] for place in range(0, len(near), batch)]
    parts = [part for part in parts if len(part) > 1] or parts
    return [parts[place] for place in rng.permutation(len(parts))]


def unwrapped(network: nn.Module) -> nn.Module:
    """Return the network itself where accelerate wrapped it."""
    found: nn.Module = getattr(network, "module", network)
    return found


def place_letters(network: nn.Module, arrays: Arrays, device: torch.device) -> None:
    """Give the network the letters of the data's words."""
    encoder = getattr(network, "encoder", None)
    if isinstance(encoder, FromWords) and "letters" in arrays:
        encoder.words.letters = torch.as_tensor(np.array(arrays["letters"])).to(device)


def load_encoder(network: nn.Module, folder: Path) -> None:
    """Start a network's encoder from the weights in a folder, whatever else they hold."""
    from safetensors.torch import load_file

    state = load_file(folder / WEIGHTS)
    own = {name.removeprefix("encoder."): value.float() for name, value in state.items() if name.startswith("encoder.")}
    encoder = network.encoder
    assert isinstance(encoder, FromWords | Pretrained)
    encoder.load_state_dict(own)


def load_trained(folder: Path, device: torch.device) -> Towers:
    """Read a trained two-tower network with its settings."""
    from safetensors.torch import load_file

    settings = restore(json.loads((folder / LEARNER).read_text())["settings"])
    data = folder / settings.data
    network = make_matcher(settings.network, settings.special, settings.known, data / "encoder")
    assert isinstance(network, Towers)
    network.load_state_dict(load_file(folder / WEIGHTS))
    place_letters(network, load_arrays(data), device)
    return network.to(device).eval()


class WordGuesser(nn.Module):
    """An encoder that guesses masked words; guesses share their vectors with the encoder's words."""

    def __init__(self, settings: RankingSettings, folder: Path) -> None:
        super().__init__()
        self.encoder = make_encoder(settings.network.encoder, settings.known, folder)
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
        asked = (torch.rand(tokens.shape, device=self.device) < self.share) & ~torch.isin(tokens, fixed)
        chance = torch.rand(tokens.shape, device=self.device)
        other = tokens.flatten()[torch.randint(tokens.numel(), tokens.shape, device=self.device)]
        shown = torch.where(asked & (chance < 0.8), special.mask, torch.where(asked & (chance < 0.9), other, tokens))
        scores = self.network(shown, mask, parts, asked)
        return nn.functional.cross_entropy(scores.float(), tokens[asked])

    def evaluate(self) -> float | None:
        """Return nothing: the last weights are as good as any."""
        return None
