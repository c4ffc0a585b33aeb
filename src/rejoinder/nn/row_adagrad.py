"""Adagrad for large tables of vectors, of which a step changes a few: one sum of squares for each vector.

With one sum for each number, as usual, rarely seen vectors jump to the corners of a cube, and twice the memory is used.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from rejoinder.errors import UserError

_LEAST = 1e-10


class RowAdagrad(Optimizer):
    """Divides each vector's step by the root of the mean squares that it has had; gradients must be sparse.

    What a step makes longer than `longest` is shortened to it: here, and not where vectors are read, for several
    processes read different ones, and would no longer have the same table.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, longest: float = math.inf) -> None:
        super().__init__(parameters, {"lr": lr})
        self.longest = longest
        for group in self.param_groups:
            for table in group["params"]:
                self.state[table]["sum"] = torch.zeros(len(table), device=table.device)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Change the vectors that have a gradient."""
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None:
                    if not table.grad.is_sparse:
                        raise UserError("adagrad is for tables of vectors alone; take `optimizer: adamw`")
                    gradient = table.grad.coalesce()
                    rows, values = gradient.indices()[0], gradient.values()
                    total = self.state[table]["sum"].index_add_(0, rows, values.square().mean(dim=1))
                    table.index_add_(0, rows, values / (total[rows].sqrt() + _LEAST).unsqueeze(1), alpha=-group["lr"])
                    table[rows] = torch.renorm(table[rows], 2, 0, self.longest)
