"""Sequences read end to end, without padding, by an attention that keeps them apart: for encoders on a GPU."""

from typing import Any

import torch
from torch import Tensor, nn

PACKED = "rejoinder_packed"
"""What this attention is called among those of the transformers library."""


def register() -> None:
    """Make the attention known; where sequences are padded, it is the usual one."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(PACKED, attend)
    AttentionMaskInterface.register(PACKED, sdpa_mask)


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bounds: Tensor | None = None,
    **how: Any,
) -> tuple[Tensor, None]:
    """Attend within the sequences that `bounds` divides the one row of tokens into (1, heads, tokens, size)."""
    if bounds is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        usual: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, mask, **how)
        return usual
    from torch.nn.attention.varlen import varlen_attn

    asked, known, told = (heads.squeeze(0).transpose(0, 1) for heads in (query, key, value))
    found: Any = varlen_attn(asked, known, told, bounds, bounds, how["longest"], how["longest"], scale=how["scaling"])
    return found.unsqueeze(0), None


def encode_packed(model: Any, tokens: Tensor, mask: Tensor, parts: Tensor | None) -> Tensor:
    """Return the states of padded tokens, as a BERT or MPNet would, without reading the padding."""
    kept = mask.flatten().nonzero().squeeze(1)
    found = (_mpnet if model.config.model_type == "mpnet" else _bert)(model, tokens, mask, parts, kept)
    states = found.new_zeros(mask.numel(), found.shape[1]).index_copy(0, kept, found)
    return states.view(*mask.shape, -1)


def _bert(model: Any, tokens: Tensor, mask: Tensor, parts: Tensor | None, kept: Tensor) -> Tensor:
    bounds = nn.functional.pad(mask.sum(1).cumsum(0), (1, 0)).int()
    embedded = model.embeddings(
        input_ids=tokens.flatten()[kept].unsqueeze(0),
        position_ids=(kept % mask.shape[1]).unsqueeze(0),
        token_type_ids=None if parts is None else parts.flatten()[kept].unsqueeze(0),
    )
    found: Tensor = model.encoder(embedded, bounds=bounds, longest=mask.shape[1]).last_hidden_state.squeeze(0)
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
        told = torch.stack([own.q(states), own.k(states), own.v(states)])
        laid = told.new_zeros(3, len(mask) * room, told.shape[2]).index_copy(1, places, told)
        query, key, value = laid.view(3, len(mask), room, own.num_attention_heads, -1).transpose(2, 3)
        heard = nn.functional.scaled_dot_product_attention(query, key, value, nearness)
        heard = own.o(heard.transpose(1, 2).reshape(len(mask) * room, -1)[places])
        states = layer.attention.LayerNorm(layer.attention.dropout(heard) + states)
        states = layer.output(layer.intermediate(states), states)
    return states
