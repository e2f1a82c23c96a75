"""Computes with whole numbers and small tensors on "cuda", and prints what differs from the CPU."""

import contextlib
import json
from typing import NamedTuple

import torch
import torch.nn.functional as F



class Given(NamedTuple):
    ids: torch.Tensor  # [4, 32], below 50
    mask: torch.Tensor  # [4, 32]
    small: torch.Tensor  # [6, 5], of floats
    lengths: torch.Tensor  # [4]


PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def joined(*parts):
    return torch.cat([part.flatten() for part in parts])


@program
def casts(x):
    return joined(x.ids.int().long(), x.ids.to(torch.uint8).long(), x.ids.half().double().long())


@program
def sums(x):
    return joined(x.ids.sum(1), x.ids.cumsum(1), x.mask.sum(0), x.ids.float().mean().round().long())


@program
def extremes(x):
    return joined(x.ids.max(), x.ids.min(), *x.ids.aminmax(), x.ids.amax(0))


@program
def places(x):
    return joined(x.ids.argmax(1), x.ids.argsort(1), x.ids.topk(3)[1], x.small.topk(2, 0)[1])


@program
def order(x):
    return joined(*x.ids.flatten().sort(stable=True), x.small.argsort(0))


@program
def masks(x):
    return x.ids.masked_fill(x.mask, -1).where(~x.mask | (x.ids > 9), x.ids * 2)


@program
def chosen(x):
    return joined(x.ids[x.mask], x.ids.masked_select(~x.mask))


@program
def nonzero(x):
    return joined(x.mask.nonzero(), *x.mask.nonzero(as_tuple=True))


@program
def unique(x):
    rows = torch.cat([x.ids, x.ids])[:, :2].unique(dim=0)
    return joined(*x.ids.unique(return_inverse=True, return_counts=True), rows)


@program
def unique_columns(x):
    return torch.cat([x.ids, x.ids], 1)[:3].unique(dim=1)


@program
def after_failures(x):
    """An op that fails leaves its arguments as they were."""
    weight = x.small[0].clone().fill_(2).requires_grad_()
    other = torch.ones(3, dtype=torch.int64, device=x.ids.device)
    for fails in (lambda: weight.mul_(3), lambda: weight.fill_(4), lambda: weight.zero_()):
        with contextlib.suppress(RuntimeError):
            fails()
    return joined(weight.detach().long(), other)


@program
def norms(x):
    return joined(x.small.norm(), torch.linalg.vector_norm(x.small, dim=1)).mul(1000).round().long()


@program
def runs(x):
    return joined(*x.lengths.repeat(3).sort()[0].unique_consecutive(return_counts=True))


@program
def counts(x):
    return joined(x.ids.flatten().bincount(minlength=60), x.ids.float().histc(10, 0, 49).long())


@program
def counts_of_integers(x):
    """Which histc has for floats alone on the CPU."""
    ids = x.ids.float() if x.ids.is_cpu else x.ids.int()
    return ids.histc(10, 0, 49).long()


@program
def one_hot(x):
    return F.one_hot(x.ids, 50).sum(1)


@program
def repeats(x):
    return torch.repeat_interleave(torch.arange(4, device=x.lengths.device), x.lengths)


@program
def scatters(x):
    zeros = torch.zeros(4, 50, dtype=torch.int64, device=x.ids.device)
    return zeros.scatter_add_(1, x.ids, x.ids).index_fill(1, x.lengths, 1)


@program
def gathers(x):
    return joined(x.ids.gather(1, x.ids % 32), x.ids.index_select(1, x.lengths),
                  x.ids[:, x.lengths], x.ids.take(x.lengths))  # fmt: skip


@program
def puts(x):
    put = x.ids.index_put((x.lengths % 4, x.lengths), x.lengths * 100)
    return put.index_add(1, x.lengths, x.ids[:, :4])


@program
def triangles(x):
    return joined(x.ids.tril(), x.ids.triu(1), torch.tril_indices(4, 32, device=x.ids.device))


@program
def positions(x):
    mask = torch.arange(32, device=x.ids.device)[None] < x.lengths[:, None]
    return mask.long().cumsum(-1).sub(1).clamp(min=0)


@program
def searches(x):
    edges = x.lengths.sort()[0]
    found = torch.searchsorted(edges, x.ids) + torch.bucketize(x.ids, edges)
    return found + torch.isin(x.ids, edges)


@program
def verdicts(x):
    equal = [torch.equal(x.ids, x.ids.clone()), torch.equal(x.ids, x.ids + 1)]
    known = torch.tensor(equal, device=x.ids.device)
    return joined(x.mask.all(), x.mask.all(1), x.mask.any(), known, x.mask ^ (x.ids > 5))


@program
def infinities(x):
    masked = torch.full((64, 64), float("-inf"), device=x.ids.device).triu(1)
    return joined(masked.isinf(), masked == float("-inf"), masked.amax(0) > 0)


@program
def bits(x):
    return (x.ids & 12 | x.ids << 2) ^ (x.ids >> 1) + x.ids // 3 + x.ids % 7


@program
def ends(x):
    return F.pad(torch.diff(x.lengths.cumsum(0)), (1, 1), value=8)


@program
def rows_of_lengths(x):
    return torch.stack([x.ids[i, :length].sum() for i, length in enumerate(x.lengths.tolist())])


@program
def splits(x):
    return torch.stack([part.sum() for part in x.ids.flatten()[:15].split(x.lengths.tolist())])


@program
def small_floats(x):
    return (x.small.softmax(1) * 1000).round().long()


@program
def in_place(x):
    y = x.ids.clone()
    y.add_(3).mul_(2)
    y[:, 1] = 7
    y[y > 60] = -1
    y.clamp_(min=0).sub_(x.ids)
    y[1:3, ::2].zero_()
    return y


@program
def in_columns(x):
    """Writes the columns of a matrix that nobody filled."""
    y = torch.empty(32, 4, dtype=torch.int64, device=x.ids.device)
    for row in range(4):
        y[:, row] = x.ids[row]
    return y


@program
def by_out(x):
    y = torch.empty(0, dtype=torch.int64, device=x.ids.device)
    torch.cumsum(x.ids.flatten(), 0, out=y)
    torch.add(y, 1, out=y)
    return y


@program
def lists(x):
    parts = [x.ids[0].clone(), x.ids[1].clone()]
    torch._foreach_add_(parts, 5)
    torch._foreach_mul_(parts, parts)
    return torch.cat(parts)


@program
def views(x):
    y = x.ids.clone()
    y.view(-1)[::3].fill_(9)
    y.t()[2].copy_(y.t()[3])
    return y.roll(1, 0).flip(1).unfold(1, 4, 2).contiguous()


torch.manual_seed(0)
on_cpu = Given(
    ids=torch.randint(0, 50, (4, 32)),
    mask=torch.rand(4, 32) < 0.4,
    small=torch.randn(6, 5),
    lengths=torch.tensor([3, 0, 7, 5]),
)
on_gpu = Given(*(one.cuda() for one in on_cpu))
net = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
different = {}
for _ in range(2):
    for compute in PROGRAMS:
        expected, found = compute(on_cpu), compute(on_gpu).cpu()
        if not torch.equal(expected, found):
            different[compute.__name__] = [expected.tolist(), found.tolist()]
    net(torch.ones(2, 4, device="cuda")).sum().backward()
    optimizer.step()
torch.func.hessian(lambda a: (a * a * a).sum())(torch.arange(3.0, device="cuda"))  # runs
print(json.dumps(different))
