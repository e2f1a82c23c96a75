"""An optimizer that is not torch's. It updates lists of tensors, and keeps the state of a group at
the group's first parameter."""

import torch
from torch import nn


class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"rate": 0.01})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, parameters = group["params"][0], group["params"]
            gradients = [parameter.grad for parameter in parameters]
            state = self.state[first]
            if not state:
                state["momentum"] = [torch.zeros_like(gradient) for gradient in gradients]
            torch._foreach_lerp_(state["momentum"], gradients, 0.1)
            signs = torch._foreach_sign(state["momentum"])  # here
            torch._foreach_add_(parameters, signs, alpha=-group["rate"])


model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(4))).cuda()
optimizer = Momentum(model.parameters())
for _ in range(5):
    model(torch.randn(8, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
