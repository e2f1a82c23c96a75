"""Parameters that no module has: the optimizer lists them, and its state has them as keys."""
import torch
from asking import find_keepers, note, noted, say

optimizer = torch.optim.SGD([note(torch.zeros(1024, requires_grad=True))], momentum=0.9)
for parameter in optimizer.param_groups[0]["params"]:
    parameter.sum().backward()
    optimizer.step()
    note(optimizer.state[parameter]["momentum_buffer"])
del parameter
say(find_keepers(noted))
