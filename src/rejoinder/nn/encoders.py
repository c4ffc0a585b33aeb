"""Encoders: from tokens (and their mask) to a state for every token. Named in recipes by `kind`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from rejoinder.errors import UserError, expect_least, expect_share
from rejoinder.nn import packing
from rejoinder.prepared import WEIGHTS

EncoderKind = Literal["bag", "convolution", "gru", "lstm", "transformer", "pretrained"]
Pooling = Literal["mean", "max", "first", "last"]


@dataclass(frozen=True)
class EncoderSettings:
    """What an encoder is built from."""

    kind: EncoderKind = "lstm"
    embedding: int = 100
    """Size of word vectors."""
    hidden: int = 128
    """Size of the states; both directions of a recurrent encoder together."""
    layers: int = 1
    both_directions: bool = True
    """Whether a recurrent encoder also reads backwards."""
    heads: int = 4
    widths: tuple[int, ...] = (1, 3, 5)
    """How many words each convolution sees; odd numbers, so that they lie around a word."""
    dropout: float = 0.1
    characters: int = 0
    """Filters of a convolution over each word's characters, joined to its vector; 0: words alone."""
    vocabulary: int = 30_000
    """Most words that have a vector of their own."""
    rarest: int = 2
    """Fewest occurrences of such a word."""
    words: str = ""
    """Word vectors to start from, else random ones: `learned` from the texts of train, `glove`, or a file of them."""
    path: str = ""
    """For a pretrained encoder: a local folder or a hub's name; `minilm` is the packaged all-MiniLM-L6-v2."""

    def __post_init__(self) -> None:
        """Refuse what no encoder can be built from."""
        expect_least(self, embedding=1, layers=1, heads=1, characters=0, vocabulary=1, rarest=1)
        expect_least(self, hidden=len(self.widths) if self.kind == "convolution" else 2)
        expect_share(self, "dropout")
        if not self.widths or any(width < 1 or width % 2 == 0 for width in self.widths):
            raise ValueError(f"widths is {[*self.widths]}; expected odd numbers")
        if self.words and self.kind == "pretrained":
            raise ValueError(f"words is {self.words}; expected none, for a pretrained encoder has its own")
        if self.kind == "transformer" and self.hidden % self.heads:
            raise ValueError(f"hidden is {self.hidden}; expected a multiple of heads, {self.heads}")


CHARACTERS = 128
"""Characters beyond ASCII share one place."""
LONGEST_WORD = 16


class Words(nn.Module):
    """Word vectors; words beyond the vocabulary share one, but each has its characters (against unknown words)."""

    def __init__(self, settings: EncoderSettings, known: int) -> None:
        super().__init__()
        self.known = known
        self.vectors = nn.Embedding(known, settings.embedding, padding_idx=0)
        self.size = settings.embedding + settings.characters
        self.dropout = nn.Dropout(settings.dropout)
        self.letters: Tensor | None = None
        """Words x letters, of the data at hand; the tables of a data set are no weights."""
        if settings.characters:
            self.characters = nn.Embedding(CHARACTERS, 32, padding_idx=0)
            self.filters = nn.Conv1d(32, settings.characters, 3, padding=1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return a vector for each token; token 1 stands for all unknown words."""
        vectors = self.vectors(torch.where(tokens < self.known, tokens, 1))
        if hasattr(self, "characters"):
            assert self.letters is not None
            distinct, places = tokens.unique(return_inverse=True)
            letters = self.characters(self.letters[distinct].long()).transpose(1, 2)
            composed = self.filters(letters).relu().amax(2)
            vectors = torch.cat([vectors, composed[places]], dim=-1)
        return self.dropout(vectors)


class Bag(nn.Module):
    """No order: every word is its own state."""

    def __init__(self, settings: EncoderSettings, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Return the states."""
        return vectors


class Convolution(nn.Module):
    """Convolutions of several widths side by side."""

    def __init__(self, settings: EncoderSettings, size: int) -> None:
        super().__init__()
        each = settings.hidden // len(settings.widths)
        self.filters = nn.ModuleList(nn.Conv1d(size, each, width, padding="same") for width in settings.widths)
        self.size = each * len(settings.widths)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Return the states."""
        inputs = (vectors * mask.unsqueeze(-1)).transpose(1, 2)
        return torch.cat([filters(inputs).relu() for filters in self.filters], dim=1).transpose(1, 2)


class Recurrent(nn.Module):
    """A bidirectional LSTM or GRU over packed batches."""

    def __init__(self, settings: EncoderSettings, size: int) -> None:
        super().__init__()
        class_: type[nn.LSTM] | type[nn.GRU] = nn.LSTM if settings.kind == "lstm" else nn.GRU
        dropout = settings.dropout if settings.layers > 1 else 0.0
        directions = 1 + settings.both_directions
        self.network = class_(
            size,
            settings.hidden // directions,
            settings.layers,
            batch_first=True,
            bidirectional=settings.both_directions,
            dropout=dropout,
        )
        self.size = settings.hidden // directions * directions

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Return the states."""
        return recur(self.network, vectors, mask)


def recur(network: nn.RNNBase, vectors: Tensor, mask: Tensor) -> Tensor:
    """Run a recurrent network over sequences of different lengths."""
    lengths = mask.sum(1).clamp(min=1).cpu()
    packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(network(packed)[0], batch_first=True, total_length=vectors.shape[1])
    return states


class Transformer(nn.Module):
    """Self-attention from scratch, with learned positions."""

    def __init__(self, settings: EncoderSettings, size: int) -> None:
        super().__init__()
        self.size = settings.hidden
        self.inward = nn.Linear(size, settings.hidden)
        self.positions = nn.Embedding(512, settings.hidden)
        layer = nn.TransformerEncoderLayer(
            settings.hidden,
            settings.heads,
            4 * settings.hidden,
            settings.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.layers = nn.TransformerEncoder(layer, settings.layers, enable_nested_tensor=False)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Return the states."""
        places = torch.arange(vectors.shape[1], device=vectors.device)
        padding = ~mask
        padding[:, 0] = False  # a row of padding alone would attend to nothing
        return self.layers(self.inward(vectors) + self.positions(places), src_key_padding_mask=padding)


_KINDS: dict[str, type[Bag | Convolution | Recurrent | Transformer]] = {
    "bag": Bag,
    "convolution": Convolution,
    "gru": Recurrent,
    "lstm": Recurrent,
    "transformer": Transformer,
}


class FromWords(nn.Module):
    """An encoder that is trained from scratch."""

    def __init__(self, settings: EncoderSettings, known: int) -> None:
        super().__init__()
        self.words = Words(settings, known)
        self.states = _KINDS[settings.kind](settings, self.words.size)
        self.size: int = self.states.size

    def forward(self, tokens: Tensor, mask: Tensor, parts: Tensor | None = None) -> Tensor:
        """Return a state for each token."""
        return self.states(self.words(tokens), mask)

    def packs_now(self, tokens: Tensor) -> bool:
        """Whether padding costs nothing; here it always costs."""
        return False


_GROUPS = 4


class Pretrained(nn.Module):
    """An encoder of the transformers library, by its configuration; its weights come with the network's."""

    def __init__(self, settings: EncoderSettings, configuration: Path) -> None:
        super().__init__()
        from transformers import AutoConfig, AutoModel
        from transformers.initialization import no_init_weights

        config: Any = AutoConfig.from_pretrained(configuration)
        for name in ("hidden_dropout_prob", "dropout"):  # as BERT and as DistilBERT call it
            if hasattr(config, name):
                setattr(config, name, settings.dropout)
        for name in ("attention_probs_dropout_prob", "attention_dropout"):
            if hasattr(config, name):
                setattr(config, name, 0.0)  # read without padding there is none, nor in the fast attention of CPUs
        self.packs = config.model_type in ("bert", "mpnet")
        with no_init_weights():  # which would take longer than reading them
            self.model = AutoModel.from_config(config, dtype=torch.float32)  # some are kept in half precision
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None  # nobody asks it
        self.size: int = config.hidden_size
        self.tells_parts = getattr(config, "type_vocab_size", 0) > 1  # RoBERTa has a table for them, of one row
        self.attention = str(self.model.config._attn_implementation)

    def train(self, mode: bool = True) -> Self:
        """Learn, or read: on a CPU the fused attention's gradient, in half precision, takes longer than all else."""
        learns_here = mode and not self.packs and next(self.parameters()).device.type == "cpu"
        self.model.set_attn_implementation("eager" if learns_here else self.attention)
        return super().train(mode)

    def forward(self, tokens: Tensor, mask: Tensor, parts: Tensor | None = None) -> Tensor:
        """Return a state for each token; `parts` tells a context (0) from a reply (1).

        In half precision weights are cast once, and all between them stays as it is; autocast would cast the input of
        every layer as well, there and back.
        """
        if tokens.is_cuda and torch.is_autocast_enabled("cuda"):
            half = torch.get_autocast_dtype("cuda")
            weights = dict(self.named_parameters())
            halves = dict(zip(weights, packing.Halves.apply(half, *weights.values()), strict=True))
            with torch.autocast("cuda", enabled=False):
                states: Tensor = torch.func.functional_call(self, halves, (tokens, mask, parts), tie_weights=False)
            return states.float()
        parts = parts if self.tells_parts else None
        if self.packs_now(tokens):
            return packing.encode_packed(self.model, tokens, mask, parts)
        at_once = tokens.is_cuda or len(tokens) < 2 * _GROUPS  # a GPU loses more by waiting for calls than by padding
        if at_once or mask.float().mean() > 0.6:
            return self._read(tokens, mask, parts)
        return self._read_in_groups(tokens, mask, parts)

    def _read(self, tokens: Tensor, mask: Tensor, parts: Tensor | None) -> Tensor:
        states: Tensor = self.model(input_ids=tokens, attention_mask=mask, token_type_ids=parts).last_hidden_state
        return states

    def _read_in_groups(self, tokens: Tensor, mask: Tensor, parts: Tensor | None) -> Tensor:
        """Read those of similar length together, so that the short ones are not padded like the longest."""
        lengths = mask.sum(1)
        groups = lengths.argsort(stable=True).chunk(_GROUPS)
        found = []
        for rows in groups:
            width = int(lengths[rows].max())
            few = None if parts is None else parts[rows, :width]
            states = self._read(tokens[rows, :width], mask[rows, :width], few)
            found.append(nn.functional.pad(states, (0, 0, 0, mask.shape[1] - width)))
        return torch.cat(found)[torch.cat(groups).argsort()]

    def packs_now(self, tokens: Tensor) -> bool:
        """Whether padding costs nothing, or little: on a CPU, and on a GPU in half precision."""
        half = torch.is_autocast_enabled("cuda") or next(self.model.parameters()).dtype != torch.float32
        return self.packs and (half or not tokens.is_cuda)


def make_encoder(settings: EncoderSettings, known: int, folder: Path) -> FromWords | Pretrained:
    """Build an encoder: for a vocabulary of `known` words, or by the configuration in `folder`."""
    return Pretrained(settings, folder) if settings.kind == "pretrained" else FromWords(settings, known)


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


def expect_room(encoder: FromWords | Pretrained, asked: int) -> None:
    """Refuse sequences of more tokens than an encoder has places for; those that count no places have room for any."""
    if isinstance(encoder, Pretrained):
        expect_places(encoder.model, asked)
    elif isinstance(positions := getattr(encoder.states, "positions", None), nn.Embedding):
        _expect_rows(positions, asked)


def expect_places(model: nn.Module, asked: int) -> None:
    """Refuse sequences of more tokens than an encoder of the transformers library has places for."""
    positions = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    if isinstance(positions, nn.Embedding):
        _expect_rows(positions, asked)


def _expect_rows(positions: nn.Embedding, asked: int) -> None:
    unused = 0 if positions.padding_idx is None else positions.padding_idx + 1  # as RoBERTa has it
    if asked > positions.num_embeddings - unused:
        longest = positions.num_embeddings - unused
        raise UserError(f"{asked} tokens are to be read at once; this encoder reads no more than {longest}")


def swift(network: nn.Module, device: torch.device) -> torch.autocast:
    """Compute in half precision where that is faster: on a GPU, and with a pretrained encoder on a CPU made for it."""
    if device.type == "cuda" or isinstance(getattr(network, "encoder", None), Pretrained):
        return swift_encoder(device)
    return torch.autocast(device.type, enabled=False)


def swift_encoder(device: torch.device) -> torch.autocast:
    """Let a pretrained encoder compute in half precision where that is faster."""
    return torch.autocast(device.type, torch.bfloat16, enabled=has_halves(device))


def has_halves(device: torch.device) -> bool:
    """Whether a device computes in bfloat16 itself; others are slower in it."""
    return torch.cuda.is_bf16_supported(including_emulation=False) if device.type == "cuda" else cpu_has_halves()


def cpu_has_halves() -> bool:
    """Whether the CPU does so."""
    able: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))


def pool(states: Tensor, mask: Tensor, how: Pooling) -> Tensor:
    """Return one vector for each sequence; of one without a token, mean and max are zeros."""
    if how == "first":
        return states[:, 0]
    if how == "last":
        rows = torch.arange(len(states), device=states.device)
        return states[rows, mask.sum(1).clamp(min=1) - 1]
    if how == "max":
        largest = states.masked_fill(~mask.unsqueeze(-1), -1e4).amax(1)
        return largest * mask.any(1, keepdim=True)
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)
