"""Sequences read end to end, without padding, by an attention that keeps them apart: for encoders on a GPU."""

from typing import Any

import torch
from torch import Tensor

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
    """Return the states of padded tokens, as a BERT would, without reading the padding."""
    kept = mask.flatten().nonzero().squeeze(1)
    bounds = torch.nn.functional.pad(mask.sum(1).cumsum(0), (1, 0)).int()
    embedded = model.embeddings(
        input_ids=tokens.flatten()[kept].unsqueeze(0),
        position_ids=(kept % mask.shape[1]).unsqueeze(0),
        token_type_ids=None if parts is None else parts.flatten()[kept].unsqueeze(0),
    )
    found = model.encoder(embedded, bounds=bounds, longest=mask.shape[1]).last_hidden_state.squeeze(0)
    states = found.new_zeros(mask.numel(), found.shape[1]).index_copy(0, kept, found)
    return states.view(*mask.shape, -1)
