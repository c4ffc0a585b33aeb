"""Sequences read end to end by the layers of a BERT or an MPNet, without padding, or with little of it on a CPU."""

from typing import Any

import torch
from torch import Tensor, nn

_TOGETHER = 8
"""Sequences of similar length that a CPU lets attend to themselves at once."""


def encode_packed(model: Any, tokens: Tensor, mask: Tensor, parts: Tensor | None) -> Tensor:
    """Return the states of padded tokens, as a BERT or MPNet would, without reading all of the padding."""
    cells = EndToEnd(mask) if tokens.is_cuda else InGroups(mask)
    found = (_mpnet if model.config.model_type == "mpnet" else _bert)(model, tokens, parts, cells)
    states = found.new_zeros(mask.numel(), found.shape[1]).index_copy(0, cells.read, found)
    return states.view(*mask.shape, -1)


class EndToEnd:
    """No padding at all, and attention that knows where sequences end: for a GPU."""

    def __init__(self, mask: Tensor) -> None:
        self.mask, self.width = mask, mask.shape[1]
        self.read = mask.flatten().nonzero().squeeze(1)
        self.ends = nn.functional.pad(mask.sum(1).cumsum(0), (1, 0)).int()

    def masked(self, nearness: Tensor | None) -> Tensor | None:
        """Return how near tokens are to each other, as far as they may attend to each other; for all layers."""
        if nearness is None:
            return None
        hidden = ~nn.functional.pad(self.mask, (0, nearness.shape[-1] - self.width))[:, None, None]
        return nearness.masked_fill(hidden, torch.finfo(nearness.dtype).min)

    def attend(self, told: Tensor, heads: int, near: Tensor | None) -> Tensor:
        """Let each sequence attend to itself; where it does so by nearness, padding is there meanwhile."""
        if near is not None:
            return self._attend_padded(told, heads, near)
        query, key, value = told.view(len(told), 3, heads, -1).unbind(1)
        # what torch.nn.attention.varlen calls, whose own gradient is Python's and keeps the GPU waiting
        heard: Any = torch.ops.aten._flash_attention_forward(
            query, key, value, self.ends, self.ends, self.width, self.width, 0.0, False, False
        )[0]
        return heard.flatten(1)

    def _attend_padded(self, told: Tensor, heads: int, near: Tensor) -> Tensor:
        room = near.shape[-1]
        places = self.read // self.width * room + self.read % self.width
        laid = told.new_zeros(len(self.mask) * room, told.shape[1]).index_copy(0, places, told)
        thirds = laid.view(len(self.mask), room, -1).chunk(3, dim=-1)  # whose gradients are put together by one copy
        query, key, value = (third.unflatten(-1, (heads, -1)).transpose(1, 2) for third in thirds)
        heard = nn.functional.scaled_dot_product_attention(query, key, value, near)
        return heard.transpose(1, 2).reshape(len(self.mask) * room, -1)[places]


class InGroups:
    """Those of similar length side by side, padded at their ends to the longest of a few: for a CPU."""

    def __init__(self, mask: Tensor) -> None:
        lengths = mask.sum(1)
        groups = lengths.argsort(stable=True).split(_TOGETHER)
        widths = [max(1, int(lengths[rows[-1]])) for rows in groups]
        cells = torch.arange(mask.numel()).view(mask.shape)
        self.read = torch.cat([cells[rows, :width].flatten() for rows, width in zip(groups, widths, strict=True)])
        self.hidden = [~mask[rows, :width] for rows, width in zip(groups, widths, strict=True)]

    def masked(self, nearness: Tensor | None) -> list[Tensor]:
        """Return how near tokens are to each other, as far as they may attend to each other; for all layers."""
        widths = [hidden.shape[1] for hidden in self.hidden]
        near = [torch.zeros(1) if nearness is None else nearness[..., :width, :width] for width in widths]
        # where all is hidden, all is heard alike
        return [own.masked_fill(hidden[:, None, None], -1e4) for own, hidden in zip(near, self.hidden, strict=True)]

    def attend(self, told: Tensor, heads: int, near: list[Tensor]) -> Tensor:
        """Let each sequence attend to itself."""
        parts = told.split([hidden.numel() for hidden in self.hidden])
        return torch.cat([_attended(*group, heads) for group in zip(parts, self.hidden, near, strict=True)])


def _attended(told: Tensor, hidden: Tensor, near: Tensor, heads: int) -> Tensor:
    query, key, value = told.view(*hidden.shape, 3, heads, -1).permute(2, 0, 3, 1, 4)
    near = near.to(query.dtype)
    if torch.is_grad_enabled():  # the fused attention's gradient takes longer here than all else
        heard = (query @ key.transpose(2, 3) * query.shape[-1] ** -0.5 + near).softmax(-1) @ value
    else:
        heard = nn.functional.scaled_dot_product_attention(query, key, value, near)
    return heard.transpose(1, 2).reshape(hidden.numel(), -1)


def _bert(model: Any, tokens: Tensor, parts: Tensor | None, cells: Any) -> Tensor:
    """Return the states of the tokens that are read."""
    states = model.embeddings(
        input_ids=tokens.flatten()[cells.read].unsqueeze(0),
        position_ids=(cells.read % tokens.shape[1]).unsqueeze(0),
        token_type_ids=None if parts is None else parts.flatten()[cells.read].unsqueeze(0),
    ).squeeze(0)
    near = cells.masked(None)
    for layer in model.encoder.layer:
        own = layer.attention.self
        heard = cells.attend(_side_by_side(states, own.query, own.key, own.value), own.num_attention_heads, near)
        states = layer.attention.output(heard, states)
        states = layer.output(layer.intermediate(states), states)
    found: Tensor = states
    return found


def _mpnet(model: Any, tokens: Tensor, parts: Tensor | None, cells: Any) -> Tensor:
    """Return the states of the tokens that are read, which attend to each other by their distances."""
    width = tokens.shape[1]
    first = model.embeddings.padding_idx + 1
    places = (cells.read % width + first).unsqueeze(0)
    states = model.embeddings(tokens.flatten()[cells.read].unsqueeze(0), position_ids=places).squeeze(0)
    near = cells.masked(model.encoder.compute_position_bias(states.new_zeros(1, width + -width % 8)))  # fast by eights
    for layer in model.encoder.layer:
        own = layer.attention.attn
        heard = own.o(cells.attend(_side_by_side(states, own.q, own.k, own.v), own.num_attention_heads, near))
        states = layer.attention.LayerNorm(layer.attention.dropout(heard) + states)
        states = layer.output(layer.intermediate(states), states)
    return states


def _side_by_side(states: Tensor, *layers: nn.Linear) -> Tensor:
    """Return what several layers make of states, by one product: small ones keep a GPU waiting for the next."""
    weight, bias = torch.cat([layer.weight for layer in layers]), torch.cat([layer.bias for layer in layers])
    return nn.functional.linear(states, weight, bias)


class Halves(torch.autograd.Function):
    """Casts weights, all at once, and their gradients back."""

    @staticmethod
    def forward(ctx: Any, half: torch.dtype, *weights: Tensor) -> tuple[Tensor, ...]:
        """Return them in half precision."""
        ctx.set_materialize_grads(False)
        return tuple(_cast(weights, half))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return the gradients in full precision, of weights that were used."""
        cast = iter(_cast([own for own in gradients if own is not None], torch.float32))
        return None, *(None if own is None else next(cast) for own in gradients)


def _cast(tensors: tuple[Tensor, ...] | list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    found = [torch.empty_like(tensor, dtype=dtype) for tensor in tensors]
    torch._foreach_copy_(found, tensors)
    return found
