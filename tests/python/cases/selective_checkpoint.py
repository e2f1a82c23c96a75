"""A selective checkpoint keeps the results of products and of attention from forward to backward,
though autograd does not save them."""

import functools

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint
from torch.utils.checkpoint import create_selective_checkpoint_contexts

aten = torch.ops.aten
KEPT = {
    aten._scaled_dot_product_flash_attention.default,
    aten._scaled_dot_product_cudnn_attention.default,
    aten._scaled_dot_product_efficient_attention.default,
    aten.mm.default,
}


def policy(_context, op, *_args, **_kwargs):
    return CheckpointPolicy.MUST_SAVE if op in KEPT else CheckpointPolicy.PREFER_RECOMPUTE


contexts = functools.partial(create_selective_checkpoint_contexts, policy)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(1024, 3072, bias=False)
        self.out = nn.Linear(1024, 1024, bias=False)

    def work(self, x):
        q, k, v = self.qkv(x).view(4, -1, 3, 16, 64).permute(2, 0, 3, 1, 4)  # here
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(x.shape))

    def forward(self, x):
        return checkpoint(self.work, x, use_reentrant=False, context_fn=contexts)


net = nn.Sequential(*(Block() for _ in range(4))).cuda().bfloat16()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(4, 2048, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    net(x).float().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
