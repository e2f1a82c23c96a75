"""LAMB (You et al., arXiv 1904.00962, algorithm 2) in the ops of models/training/optimizers.cpp."""

import math

import torch


class Lamb(torch.optim.Optimizer):
    """AdamW's direction of each tensor, d = m̂ / (sqrt(v̂) + eps) + decay · w, as long as its
    weights: w -= lr · |w| / |d| · d. Where |w| or |d| is 0, their ratio counts as 1."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [one for one in group["params"] if one.grad is not None]
            if weights:
                self._update(group, weights)
        return loss

    def _update(self, group: dict, weights: list[torch.Tensor]) -> None:
        for weight in weights:
            if not self.state[weight]:
                self.state[weight] |= {
                    "step": 0,
                    "exp_avg": torch.zeros_like(weight),
                    "exp_avg_sq": torch.zeros_like(weight),
                }
            self.state[weight]["step"] += 1
        means = [self.state[one]["exp_avg"] for one in weights]
        squares = [self.state[one]["exp_avg_sq"] for one in weights]
        gradients = [one.grad for one in weights]
        beta1, beta2 = group["betas"]
        steps = self.state[weights[0]]["step"]
        correction1, correction2 = 1 - beta1**steps, 1 - beta2**steps
        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
        directions = torch._foreach_sqrt(squares)
        torch._foreach_mul_(directions, correction1 / math.sqrt(correction2))
        torch._foreach_add_(directions, correction1 * group["eps"])
        torch._foreach_reciprocal_(directions)
        torch._foreach_mul_(directions, means)
        torch._foreach_add_(directions, weights, alpha=group["weight_decay"])
        of_weights = torch.stack(torch._foreach_norm(weights))
        of_directions = torch.stack(torch._foreach_norm(directions))
        has_ratio = (of_weights > 0) & (of_directions > 0)
        ratios = torch.where(has_ratio, of_weights / of_directions, 1.0)
        torch._foreach_mul_(directions, ratios.unbind())
        torch._foreach_add_(weights, directions, alpha=-group["lr"])
