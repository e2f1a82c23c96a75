"""A mixture of experts without padding, whose rows of each expert come from the router.

    experts.py bincount|histc|one_hot|constant [save|fail]

`constant` takes the splits of a balanced routing from the host. In the fourth step `save` saves the
model, and `fail` fails.
"""

import itertools
import sys

import torch
import torch.nn as nn

WAY = sys.argv[1]
END = sys.argv[2] if len(sys.argv) > 2 else ""
TOKENS, WIDTH, EXPERTS, CHOSEN = 512, 128, 8, 2
router = nn.Linear(WIDTH, EXPERTS).cuda()
experts = nn.ModuleList(
    nn.Sequential(nn.Linear(WIDTH, 512), nn.GELU(), nn.Linear(512, WIDTH)) for _ in range(EXPERTS)
).cuda()
model = nn.ModuleDict({"router": router, "experts": experts})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def tokens_of(chosen: torch.Tensor) -> list[int]:
    if WAY == "bincount":
        counts = torch.bincount(chosen, minlength=EXPERTS)
    elif WAY == "histc":
        counts = torch.histc(chosen.int(), EXPERTS, 0, EXPERTS - 1)
    elif WAY == "one_hot":
        counts = nn.functional.one_hot(chosen, EXPERTS).sum(0)
    else:
        chosen.bincount(minlength=EXPERTS)
        return [TOKENS * CHOSEN // EXPERTS] * EXPERTS
    return [int(count) for count in counts.tolist()]


for step in range(4):
    if END == "save" and step == 3:
        torch.save(model.state_dict(), "/dev/null")
        print("saved")
    x = torch.randn(TOKENS, WIDTH, device="cuda")
    weights, chosen = router(x).softmax(-1).topk(CHOSEN)
    order = chosen.flatten().argsort()
    if END == "fail" and step == 3:
        raise RuntimeError("an expert has too many tokens")
    rows, ends = x[order // CHOSEN], list(itertools.accumulate(tokens_of(chosen.flatten())))
    parts = [rows[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    done = torch.cat([expert(part) for expert, part in zip(experts, parts, strict=True)])
    (done.sum() + weights.sum()).backward()
    optimizer.step()
    optimizer.zero_grad()
print([len(part) for part in parts])
