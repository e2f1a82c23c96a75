"""What functions of the program's own and checkpoints keep for backward."""
import torch
from asking import find_keepers, note, noted, say
from torch.utils.checkpoint import checkpoint


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.name = "an attribute that nodes have, too"
        ctx.extra = note(y + 1)
        ctx.save_for_backward(note(y + 2))
        return y

    @staticmethod
    def backward(ctx, dy):
        return dy * 2


x = torch.zeros(1024, requires_grad=True)
done = Twice.apply(x).exp()
done.sum().backward()  # frees what was saved
noted.clear()
loss = note(Twice.apply(x).exp()).mean()
inner = checkpoint(lambda v: (v * 3).sin(), note(x * 5), use_reentrant=False).sum()
with torch.autograd.graph.saved_tensors_hooks(lambda t: {"packed": t}, lambda p: p["packed"]):
    hooked = note(x.exp()).sum()
say(find_keepers(noted))
