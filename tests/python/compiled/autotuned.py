"""A softmax over rows as a Triton kernel of the program's own, with an autotuner."""

import counted
import torch
import triton
import triton.language as tl
from torch import nn

ROWS, COLUMNS = 256, 1024
CONFIGURATIONS = [triton.Config({}, num_warps=warps) for warps in (4, 8, 16)]


@triton.autotune(CONFIGURATIONS, key=["columns"])
@triton.jit
def softmax_kernel(x, result, columns, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    values = tl.load(x + row + places, places < columns, -float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(result + row + places, values / tl.sum(values, 0), places < columns)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        result = torch.empty_like(x)
        softmax_kernel[(ROWS,)](x, result, COLUMNS, BLOCK=COLUMNS)
        context.save_for_backward(result)
        return result

    @staticmethod
    def backward(context, gradient):
        (result,) = context.saved_tensors
        return result * (gradient - (gradient * result).sum(-1, keepdim=True))


model = nn.Linear(64, COLUMNS).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(counted.STEPS):
    counted.begin(step)
    Softmax.apply(model(torch.randn(ROWS, 64, device="cuda"))).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
kernels = [kernel for cache in softmax_kernel.fn.device_caches.values()
           for kernel in cache[0].values()]  # fmt: skip
best = softmax_kernel.best_config
(chosen,) = (kernel for kernel in kernels if kernel.metadata.num_warps == best.num_warps)
times = sorted(softmax_kernel.configs_timings.values())
counted.tell(warps=best.num_warps, registers=chosen.n_regs, times=times)
