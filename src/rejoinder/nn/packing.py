"""Sequences read end to end, without padding, by the layers of a BERT or an MPNet: for encoders on a GPU."""

from typing import Any

import torch
from torch import Tensor, nn


def encode_packed(model: Any, tokens: Tensor, mask: Tensor, parts: Tensor | None) -> Tensor:
    """Return the states of padded tokens, as a BERT or MPNet would, without reading the padding."""
    kept = mask.flatten().nonzero().squeeze(1)
    found = (_mpnet if model.config.model_type == "mpnet" else _bert)(model, tokens, mask, parts, kept)
    states = found.new_zeros(mask.numel(), found.shape[1]).index_copy(0, kept, found)
    return states.view(*mask.shape, -1)


def _bert(model: Any, tokens: Tensor, mask: Tensor, parts: Tensor | None, kept: Tensor) -> Tensor:
    """Return the states of the tokens kept; an attention that knows where sequences end keeps them apart."""
    from torch.nn.attention.varlen import varlen_attn

    width = mask.shape[1]
    ends = nn.functional.pad(mask.sum(1).cumsum(0), (1, 0)).int()
    states = model.embeddings(
        input_ids=tokens.flatten()[kept].unsqueeze(0),
        position_ids=(kept % width).unsqueeze(0),
        token_type_ids=None if parts is None else parts.flatten()[kept].unsqueeze(0),
    ).squeeze(0)
    for layer in model.encoder.layer:
        own = layer.attention.self
        told = _side_by_side(states, own.query, own.key, own.value)
        query, key, value = told.view(len(states), 3, own.num_attention_heads, -1).unbind(1)
        heard: Any = varlen_attn(query, key, value, ends, ends, width, width)
        states = layer.attention.output(heard.flatten(1), states)
        states = layer.output(layer.intermediate(states), states)
    found: Tensor = states
    return found


def _mpnet(model: Any, tokens: Tensor, mask: Tensor, parts: Tensor | None, kept: Tensor) -> Tensor:
    """Return the states of the tokens kept; padding is there where they attend to each other, by their distances."""
    width = mask.shape[1]
    room = width + -width % 8  # attention is fastest by eights
    places = kept // width * room + kept % width
    first = model.embeddings.padding_idx + 1
    embedded = model.embeddings(tokens.flatten()[kept].unsqueeze(0), position_ids=(kept % width + first).unsqueeze(0))
    states = embedded.squeeze(0)
    nearness = model.encoder.compute_position_bias(states.new_zeros(1, room))
    hidden = ~nn.functional.pad(mask, (0, room - width))[:, None, None]
    nearness = nearness.masked_fill(hidden, torch.finfo(nearness.dtype).min)
    for layer in model.encoder.layer:
        own = layer.attention.attn
        told = _side_by_side(states, own.q, own.k, own.v)
        laid = told.new_zeros(len(mask) * room, told.shape[1]).index_copy(0, places, told)
        thirds = laid.view(len(mask), room, -1).chunk(3, dim=-1)  # whose gradients are put together by one copy
        query, key, value = (third.unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2) for third in thirds)
        heard = nn.functional.scaled_dot_product_attention(query, key, value, nearness)
        heard = own.o(heard.transpose(1, 2).reshape(len(mask) * room, -1)[places])
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
