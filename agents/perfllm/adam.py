"""Adam (Kingma and Ba, 2015), with weight decay as in AdamW (Loshchilov and Hutter, 2019).

PyTorch's own optimizers do the same, number for number. But making one imports PyTorch's compiler, two
seconds of each process that trains, and nothing here is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

EPSILON = 1e-8


class Adam:
    """``rate`` may be set between steps. ``moments``: by the number of a parameter how often it was moved
    (``step``), and the running means of its gradient and of its square (``exp_avg``, ``exp_avg_sq``)."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        decay: float = 0.0,
    ) -> None:
        self.parameters, self.rate, self.betas, self.decay = list(parameters), rate, betas, decay
        self.moments: dict[int, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move each parameter that has a gradient."""
        first, second = self.betas
        for number, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            if number not in self.moments:
                self.moments[number] = {
                    "step": torch.tensor(0.0),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
            moments = self.moments[number]
            moments["step"] += 1
            taken = moments["step"].item()
            if self.decay:
                parameter.mul_(1 - self.rate * self.decay)
            mean = moments["exp_avg"].lerp_(parameter.grad, 1 - first)
            square = moments["exp_avg_sq"].mul_(second)
            square.addcmul_(parameter.grad, parameter.grad, value=1 - second)
            deviation = (square.sqrt() / (1 - second**taken) ** 0.5).add_(EPSILON)
            parameter.addcdiv_(mean, deviation, value=-self.rate / (1 - first**taken))
