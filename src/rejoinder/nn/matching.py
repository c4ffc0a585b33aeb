"""Networks that say how well a reply fits a context; all take padded tokens with their masks.

Towers score all replies of a batch for all its contexts. Cross and Esim take as many replies for each context, one or
more, those of one context after those of another, and score these.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from rejoinder.errors import expect_least
from rejoinder.nn.encoders import EncoderSettings, FromWords, Pooling, expect_room, make_encoder, pool, recur
from rejoinder.nn.sequences import Special, framed, joined, lay_turns, stacked

Padded = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class MatchSettings:
    """What a matching network is built from."""

    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    match: Literal["dot", "bilinear", "poly", "late", "memory", "esim", "cross"] = "dot"
    pool: Pooling = "mean"
    scale: float = 20.0
    """What cosines are multiplied with before the softmax; 0: dot products as they are, as bilinear's always."""
    codes: int = 16
    """How many vectors a poly-encoder keeps of a context."""
    hops: int = 2
    """How often a memory network looks at the context's turns."""
    context: int = 160
    """Most tokens of a context; the last ones are kept."""
    reply: int = 40
    """Most tokens of a reply; the first ones are kept."""
    turns: int = 10
    """Most turns of a context; the last ones are kept."""

    def __post_init__(self) -> None:
        """Refuse what leaves nothing to read."""
        expect_least(self, codes=1, hops=1, context=1, reply=1, turns=1, scale=0)


class Towers(nn.Module):
    """A context and a reply are encoded apart, by the same weights, and compared: dot, bilinear, poly or late.

    bilinear: the dual encoder of Lowe et al. (2015), c' M r, without the bias, which ranks nothing. poly: Humeau et al.
    (2020), where learned codes attend to the context's states and the reply attends to what they found. late: each
    token of the reply looks for the likest one of the context (Khattab and Zaharia 2020, section 3.3); what they find
    is summed by learned weights, and added to what dot compares. Where replies are normalised, poly's products with
    them are multiplied by the root of their size, or all codes would be attended to alike.
    """

    def __init__(self, settings: MatchSettings, special: Special, known: int, folder: Path) -> None:
        super().__init__()
        self.settings, self.special = settings, special
        self.scale = 0.0 if settings.match == "bilinear" else settings.scale
        self.encoder = make_encoder(settings.encoder, known, folder)
        size = self.encoder.size
        if settings.match == "bilinear":
            self.relation = nn.Parameter(torch.eye(size) + torch.randn(size, size) * 0.01)
        if settings.match == "poly":
            self.codes = nn.Parameter(torch.randn(settings.codes, size) / size**0.5)
        if settings.match == "late":
            self.importance = nn.Linear(size, 1)
            nn.init.zeros_(self.importance.weight)  # at first all tokens weigh alike

    @property
    def reply_size(self) -> int:
        """Return how many numbers a reply may come to."""
        return self.encoder.size * (self.settings.reply + 3 if self.settings.match == "late" else 1)

    def contexts(self, padded: Padded) -> Tensor:
        """Return a vector for each context; for poly one for each code, for late one more for each token."""
        tokens, mask = framed(*padded, self.special)
        return self._gist(self.encoder(tokens, mask), mask)

    def replies(self, padded: Padded) -> Tensor:
        """Return a vector for each reply, for late one more for each token."""
        tokens, mask = framed(*padded, self.special)
        return self._point(self.encoder(tokens, mask), mask)

    def _gist(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return what a context's states come to."""
        if self.settings.match == "poly":
            return attend(self.codes.to(states.dtype), states, mask)
        vector = pool(states, mask, self.settings.pool)
        if self.settings.match == "bilinear":
            vector = vector @ self.relation.to(vector.dtype)
        if self.settings.match == "late":
            shown = torch.where(mask.unsqueeze(-1), states, states[:, :1])  # padding can be nobody's likest
            vector = torch.cat([vector.unsqueeze(1), shown], dim=1)
        return self._scaled(vector) * (self.scale or 1)

    def _point(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return what a reply's states come to."""
        vector = self._scaled(pool(states, mask, self.settings.pool))
        if self.settings.match == "late":
            weights = self.importance(states).float().masked_fill(~mask.unsqueeze(-1), -1e4).softmax(1)
            vector = torch.cat([vector.unsqueeze(1), self._scaled(states) * weights], dim=1)
        return vector

    def _scaled(self, vectors: Tensor) -> Tensor:
        return nn.functional.normalize(vectors, dim=-1) if self.scale else vectors

    def compare(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """Score replies for contexts: (B, ...) with (N, ...) gives B x N; with (B, N, D) too, but for late, its own."""
        late = self.settings.match == "late"
        of_tokens = _likest(contexts[:, 1:], replies[:, 1:]) if late else 0
        contexts, replies = (contexts[:, 0], replies[:, 0]) if late else (contexts, replies)
        with torch.autocast(contexts.device.type, enabled=False):  # in half precision many would score the same
            return of_tokens + self._compare(contexts.float(), replies.float())

    def _compare(self, contexts: Tensor, replies: Tensor) -> Tensor:
        if self.settings.match == "poly":
            return self._compare_poly(contexts, replies)
        return products(contexts, replies)

    def _compare_poly(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """Return the products of replies with the means of contexts' codes, each reply weighing the codes its own way.

        A mean is as long as the codes' products with each other say, so that none of the B x N has to be made; of one
        that is a thousandth as long as a code, rounding alone would be left.
        """
        agreement = replies @ contexts.transpose(1, 2)
        weights = torch.softmax(agreement * (replies.shape[-1] ** 0.5 if self.scale else 1), dim=-1)
        found = (weights * agreement).sum(-1)
        if not self.scale:
            return found
        together = contexts @ contexts.transpose(1, 2)
        squares = (weights @ together * weights).sum(-1)
        least = 1e-6 * together.diagonal(dim1=1, dim2=2).amax(1, keepdim=True) + 1e-24
        return self.scale * found / squares.maximum(least).sqrt()

    def forward(self, context: Padded, reply: Padded) -> Tensor:
        """Score all replies of a batch for all its contexts: B x N."""
        if not self.encoder.packs_now(context[0]):
            return self.compare(self.contexts(context), self.replies(reply))
        heard, said = framed(*context, self.special), framed(*reply, self.special)
        tokens, mask = stacked(heard, said)
        first, second = self.encoder(tokens, mask).split([len(heard[0]), len(said[0])])
        first, second = first[:, : heard[0].shape[1]], second[:, : said[0].shape[1]]
        return self.compare(self._gist(first, heard[1]), self._point(second, said[1]))


class Memory(Towers):
    """The last turn looks for what it needs in the turns before it (MemN2N: Dodge et al. 2016, section 3.1).

    Each hop weighs the memories by their products with the question, and adds their rotated sum to it; memories know
    how long ago they were said. Replies are encoded like turns, which are cut as they are.
    """

    def __init__(self, settings: MatchSettings, special: Special, known: int, folder: Path) -> None:
        super().__init__(settings, special, known, folder)
        self.times = nn.Embedding(settings.turns, self.encoder.size)
        self.rotation = nn.Linear(self.encoder.size, self.encoder.size, bias=False)
        nn.init.normal_(self.times.weight, std=0.1)
        nn.init.orthogonal_(self.rotation.weight)

    def contexts(self, padded: Padded) -> Tensor:
        """Return a vector for each context."""
        laid, owner, place = lay_turns(*padded, self.special, self.settings.reply)
        tokens, mask = framed(laid, laid != self.special.pad, self.special)
        vectors = pool(self.encoder(tokens, mask), mask, self.settings.pool)
        last = torch.bincount(owner, minlength=len(padded[0])) - 1
        ago = (last[owner] - place).clamp(max=self.settings.turns - 1)
        earlier = ago > 0
        question = vectors[~earlier]
        memories = vectors.new_zeros(len(question), max(1, int(last.max())), vectors.shape[-1])
        memories[owner[earlier], place[earlier]] = vectors[earlier] + self.times(ago[earlier]).to(vectors.dtype)
        held = torch.arange(memories.shape[1], device=last.device) < last.unsqueeze(1)
        for _ in range(self.settings.hops):
            found = attend(question.unsqueeze(1), memories, held).squeeze(1)
            question = question + self.rotation(found)
        return self._scaled(question) * (self.scale or 1)

    def forward(self, context: Padded, reply: Padded) -> Tensor:
        """Score all replies of a batch for all its contexts: B x N."""
        return self.compare(self.contexts(context), self.replies(reply))


def in_full(layer: nn.Module, states: Tensor) -> Tensor:
    """Return what a layer makes of states in full precision: in half precision many would score the same."""
    with torch.autocast(states.device.type, enabled=False):
        found: Tensor = layer(states.float())
    return found


def products(contexts: Tensor, replies: Tensor) -> Tensor:
    """Multiply contexts (B, D) with replies: the same for all (N, D), or each one's own (B, N, D); both give B x N."""
    return contexts @ replies.T if replies.ndim == 2 else (replies @ contexts.unsqueeze(-1)).squeeze(-1)


def _likest(contexts: Tensor, replies: Tensor) -> Tensor:
    """Sum over the tokens of each reply their largest products with a token of each context."""
    products = contexts.flatten(0, 1) @ replies.flatten(0, 1).T
    return products.view(*contexts.shape[:2], -1).amax(1).view(len(contexts), *replies.shape[:2]).float().sum(-1)


def attend(queries: Tensor, states: Tensor, mask: Tensor) -> Tensor:
    """Return for each query (Q, D), or (B, Q, D), the mean of the states (B, T, D), weighted by their dot products."""
    weights = queries @ states.transpose(1, 2)
    weights = weights.masked_fill(~mask.unsqueeze(1), torch.finfo(weights.dtype).min).softmax(-1)
    return weights @ states


class Cross(nn.Module):
    """A context and a reply are read together, as one sequence."""

    def __init__(self, settings: MatchSettings, special: Special, known: int, folder: Path) -> None:
        super().__init__()
        self.settings, self.special = settings, special
        self.encoder = make_encoder(settings.encoder, known, folder)
        self.dropout = nn.Dropout(settings.encoder.dropout)
        self.verdict = nn.Linear(self.encoder.size, 1)

    def forward(self, context: Padded, reply: Padded) -> Tensor:
        """Score each context's replies."""
        each = len(reply[0]) // len(context[0])
        repeated = context[0].repeat_interleave(each, 0), context[1].repeat_interleave(each, 0)
        tokens, mask, parts = joined(repeated, reply, self.special)
        vectors = pool(self.encoder(tokens, mask, parts), mask, self.settings.pool)
        return in_full(self.verdict, self.dropout(vectors)).squeeze(-1)


class Esim(nn.Module):
    """Enhanced sequential inference (Chen et al. 2017), the winners' choice in DSTC7, turn by turn.

    Each turn of the context is softly aligned with the reply, both are enhanced by what they were aligned with,
    composed by a recurrent network and pooled; attention over the turns, asked by the reply, weighs them. Where word
    vectors are learned from scratch they are part of what is aligned: from the first step, equal words find each other.
    """

    def __init__(self, settings: MatchSettings, special: Special, known: int, folder: Path) -> None:
        super().__init__()
        self.settings, self.special = settings, special
        self.encoder = make_encoder(settings.encoder, known, folder)
        size, hidden = self.encoder.size, settings.encoder.hidden // 2 * 2
        if isinstance(self.encoder, FromWords):
            size += self.encoder.words.size
        self.projection, self.dropout = nn.Linear(4 * size, hidden), nn.Dropout(settings.encoder.dropout)
        self.composition = nn.LSTM(hidden, hidden // 2, batch_first=True, bidirectional=True)
        self.query = nn.Linear(2 * hidden, 2 * hidden)
        self.order = nn.GRU(4 * hidden, hidden // 2, batch_first=True, bidirectional=True)
        self.verdict = nn.Sequential(
            nn.Linear(6 * hidden + hidden, hidden),
            nn.ReLU(),
            nn.Dropout(settings.encoder.dropout),
            nn.Linear(hidden, 1),
        )

    def forward(self, context: Padded, reply: Padded) -> Tensor:
        """Score each context's replies."""
        each = len(reply[0]) // len(context[0])
        tokens, owner, places = lay_turns(*context, self.special, self.settings.reply)
        mask = tokens != self.special.pad
        turn = torch.arange(len(tokens), device=tokens.device).repeat_interleave(each)
        pair = (owner.unsqueeze(1) * each + torch.arange(each, device=tokens.device)).flatten()
        heard, said = self._states(tokens, mask), self._states(*reply)
        first, second = self._aligned(heard, mask, turn, said, reply[1], pair)
        return self._weighed(first, second, pair, places[turn], len(reply[0]))

    def _states(self, tokens: Tensor, mask: Tensor) -> Tensor:
        if not isinstance(self.encoder, FromWords):
            return self.encoder(tokens, mask)
        words = self.encoder.words(tokens)
        return torch.cat([words, self.encoder.states(words, mask)], dim=-1)

    def _aligned(
        self, heard: Tensor, heard_mask: Tensor, turn: Tensor, said: Tensor, said_mask: Tensor, pair: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Align each turn with the reply beside it and enhance both (section 3.2), then compose them (3.3)."""
        heard_own, heard_given = self._shares(heard)
        said_own, said_given = self._shares(said)
        heard, heard_own, heard_given, heard_mask = (part[turn] for part in (heard, heard_own, heard_given, heard_mask))
        said, said_own, said_given, said_mask = (part[pair] for part in (said, said_own, said_given, said_mask))
        similar = heard @ said.transpose(1, 2) / heard.shape[-1] ** 0.5
        lowest = torch.finfo(similar.dtype).min
        of_said = similar.masked_fill(~said_mask.unsqueeze(1), lowest).softmax(2)
        of_heard = similar.masked_fill(~heard_mask.unsqueeze(2), lowest).softmax(1).transpose(1, 2)
        return (
            self._composed(heard, of_said @ said, heard_own + of_said @ said_given, heard_mask),
            self._composed(said, of_heard @ heard, said_own + of_heard @ heard_given, said_mask),
        )

    def _shares(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return what states add to the projection of [own, other, own - other, own * other] as own, and as other.

        That is known before they are paired; the products alone are not.
        """
        own, other, less, _ = self.projection.weight.chunk(4, dim=1)
        linear = nn.functional.linear
        return linear(states, own + less, self.projection.bias), linear(states, other - less)

    def _composed(self, own: Tensor, other: Tensor, shares: Tensor, mask: Tensor) -> Tensor:
        products = nn.functional.linear(own[mask] * other[mask], self.projection.weight.chunk(4, dim=1)[3])
        enhanced = self.dropout((shares[mask] + products).relu())
        laid = enhanced.new_zeros(*mask.shape, enhanced.shape[-1])
        laid[mask] = enhanced
        states = recur(self.composition, laid, mask)
        return torch.cat([pool(states, mask, "mean"), pool(states, mask, "max")], dim=-1)

    def _weighed(self, first: Tensor, second: Tensor, turn: Tensor, places: Tensor, rows: int) -> Tensor:
        width = int(places.max()) + 1
        laid = first.new_zeros(rows, width, 2 * first.shape[-1])
        laid[turn, places] = torch.cat([first, second], dim=-1)
        mask = torch.zeros(rows, width, dtype=torch.bool, device=first.device)
        mask[turn, places] = True
        heard, said = laid.chunk(2, dim=-1)
        asked = (said.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)).unsqueeze(1)
        attended = attend(self.query(asked) / asked.shape[-1] ** 0.5, heard, mask).squeeze(1)
        story = pool(recur(self.order, laid, mask), mask, "max")
        best = said.masked_fill(~mask.unsqueeze(-1), -1e4).amax(1)
        return in_full(self.verdict, torch.cat([attended, asked.squeeze(1), best, story], dim=-1)).squeeze(-1)


def make_matcher(settings: MatchSettings, special: Special, known: int, folder: Path) -> Towers | Cross | Esim:
    """Build the network that a recipe names."""
    kinds: dict[str, type[Towers | Cross | Esim]] = {"memory": Memory, "cross": Cross, "esim": Esim}
    network = kinds.get(settings.match, Towers)(settings, special, known, folder)
    context, reply = settings.context, settings.reply
    longest = {"cross": context + reply + 3, "esim": reply, "memory": reply + 2}
    expect_room(network.encoder, longest.get(settings.match, max(context, reply) + 2))
    return network
