"""The measures of DialEval-1 (Zeng et al. 2020, section 3) as losses: the same values as `measures`, with gradients.

All functions take tensors of shape (..., labels), the system's distributions first.
"""

import torch
from torch import Tensor


def nmd(p: Tensor, truth: Tensor) -> Tensor:
    """Return the Normalised Match Distance (equations 1 and 2) of rows of distributions."""
    return (p.cumsum(-1) - truth.cumsum(-1)).abs().sum(-1) / (p.shape[-1] - 1)


def rsnod(p: Tensor, truth: Tensor) -> Tensor:
    """Return the Root Symmetric Normalised Order-aware Divergence (equations 3 to 6)."""
    places = torch.arange(p.shape[-1], device=p.device, dtype=p.dtype)
    apart = (places[:, None] - places[None, :]).abs()
    weighted = ((p - truth) ** 2).unsqueeze(-2).mul(apart).sum(-1)  # no matrix product: half precision would spoil it
    both = (_mean_over_support(weighted, truth) + _mean_over_support(weighted, p)) / 2
    return _root(both / (p.shape[-1] - 1))


def _mean_over_support(weighted: Tensor, distribution: Tensor) -> Tensor:
    support = (distribution > 0).to(weighted.dtype)
    return (weighted * support).sum(-1) / support.sum(-1)


def jsd(p: Tensor, truth: Tensor) -> Tensor:
    """Return the Jensen-Shannon divergence with base 2 (equations 8 and 9 in the standard form)."""
    middle = (p + truth) / 2
    return (_kld(p, middle) + _kld(truth, middle)) / 2


def _kld(p: Tensor, q: Tensor) -> Tensor:
    return torch.where(p > 0, p * (p.clamp_min(1e-12) / q.clamp_min(1e-12)).log2(), 0.0).sum(-1)


def rnss(p: Tensor, truth: Tensor) -> Tensor:
    """Return the Root Normalised Sum of Squares (equation 7)."""
    return _root(((p - truth) ** 2).sum(-1) / 2)


def _root(square: Tensor) -> Tensor:
    return square.clamp_min(1e-12).sqrt()  # the root's slope at zero is infinite
