"""Programs whose sizes or branches hang on values of the GPU. Prints what the steps saw.

    reads.py CASE cuda|cpu
"""

import json
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

CASE, DEVICE = sys.argv[1:]
WIDTH, WORDS, BATCH, LENGTH = 64, 1000, 8, 128
EXPERTS = 8
IGNORED = -100


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.block = nn.TransformerEncoderLayer(WIDTH, 4, 128, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, WORDS)

    def hidden(self, ids):
        return self.block(self.embedding(ids))

    def forward(self, ids):
        return self.head(self.hidden(ids))


def batch(least: int = 0) -> torch.Tensor:
    return torch.randint(least, WORDS, (BATCH, LENGTH)).to(DEVICE)


def loss_of(scores: torch.Tensor) -> torch.Tensor:
    return scores.logsumexp(-1).mean()


def labels_where_masked():
    """BERT's head runs only where a token was masked."""
    ids = torch.randint(0, WORDS, (BATCH, LENGTH))
    labels = torch.where(torch.rand(BATCH, LENGTH) < 0.15, ids, IGNORED).to(DEVICE)
    kept = labels != IGNORED
    hidden = net.hidden(ids.to(DEVICE))[kept]
    return hidden.shape[0], F.cross_entropy(net.head(hidden), labels[kept])


def mask_after_many_numbers():
    """More than is computed with floats in one call of a model: masks are computed all the same."""
    for _ in range(80):
        torch.eye(2048, device=DEVICE)
    return labels_where_masked()


def masked_in_graph(ids: torch.Tensor, labels: torch.Tensor):
    kept = (labels != IGNORED) & (ids > 3)
    return kept.flatten(), net.embedding(ids).flatten(0, 1) * 2


def mask_of_a_compiled_graph():
    """The graph breaks where the mask selects."""
    ids = torch.randint(0, WORDS, (BATCH, LENGTH))
    labels = torch.where(torch.rand(BATCH, LENGTH) < 0.15, ids, IGNORED).to(DEVICE)
    function = torch.compile(masked_in_graph) if DEVICE == "cuda" else masked_in_graph
    kept, hidden = function(ids.to(DEVICE), labels)
    rows = hidden[kept]
    return rows.shape[0], F.cross_entropy(net.head(rows), labels.flatten()[kept])


def changed_in_graph(ids: torch.Tensor, labels: torch.Tensor):
    kept = labels != IGNORED
    kept[:, 0] = False
    return kept.flatten(), net.embedding(ids).flatten(0, 1) * 2


def mask_that_a_graph_changes():
    """It is unknown, and not the one before the change."""
    ids = batch()
    kept, hidden = torch.compile(changed_in_graph)(ids, ids.clone())
    return hidden[kept].shape[0], None


def unique_rows():
    """Only the rows of the embedding that a batch uses."""
    rows, inverse = torch.unique(batch(), return_inverse=True)
    return rows.numel(), loss_of(net.head(net.block(net.embedding.weight[rows][inverse])))


def lengths_of_padding():
    """Packing, from a padding mask on the GPU."""
    ids = torch.randint(1, WORDS, (BATCH, LENGTH))
    lengths = torch.randint(20, LENGTH, (BATCH,))
    ids[torch.arange(LENGTH)[None] >= lengths[:, None]] = 0
    ids = ids.to(DEVICE)
    mask = ids != 0
    of_rows = mask.sum(-1, dtype=torch.int32)
    places = torch.nonzero(mask.flatten()).flatten()
    ends = F.pad(torch.cumsum(of_rows, 0, dtype=torch.int32), (1, 0))
    hidden = net.hidden(ids).flatten(0, 1)[places]
    seen = [places.numel(), int(of_rows.max()), int(ends[-1])]
    return seen, F.cross_entropy(net.head(hidden), ids.flatten()[places])


def checked_inputs():
    ids = batch(least=5)
    assert ids.min() >= 5 and ids.max() < WORDS, (ids.min().item(), ids.max().item())
    counts = torch.bincount(ids.flatten(), minlength=WORDS)
    assert (counts.sum() == BATCH * LENGTH).item()
    return int(ids.max()), loss_of(net(ids))


def scaled_loss():
    """fp16 with a scaler, a check of the loss, and clipping that refuses what is not finite."""
    with torch.autocast(DEVICE, torch.float16 if DEVICE == "cuda" else torch.bfloat16):
        loss = loss_of(net(batch()))
    if not torch.isfinite(loss):
        raise SystemExit("the loss is not finite")
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale(), None


def rejection_sampling():
    """Draws until enough candidates pass: endless, if none ever does."""
    kept, draws = [], 0
    while sum(part.numel() for part in kept) < 500:
        drawn = torch.rand(400, device=DEVICE)
        kept.append(drawn[drawn > 0.3])
        draws += 1
        if draws > 1000:
            raise SystemExit("endless")
    ids = (torch.cat(kept)[:500] * WORDS).long()
    return draws, loss_of(net(ids.view(5, 100)))


def hard_negatives():
    """Detection: boxes that match, and three times as many of the others."""
    scores = net(batch()).flatten(0, 1)
    boxes = torch.rand(BATCH * LENGTH, 4, device=DEVICE)
    positive = torch.rand(BATCH * LENGTH, 16, device=DEVICE).max(1).values > 0.995
    count = int(positive.sum())
    hard = scores.logsumexp(-1).topk(max(3 * count, 1)).indices
    matched = F.smooth_l1_loss(boxes[positive] * scores[positive][:, :4], boxes[positive])
    return [count > 30, hard.numel() == 3 * count], matched + loss_of(scores[hard])


def switch_layer():
    """One expert for each token, with a capacity: tokens on top are dropped."""
    hidden = net.hidden(batch()).flatten(0, 1)
    weights, chosen = gate(hidden).softmax(-1).max(-1)
    out, counts = torch.zeros_like(hidden), []
    for number, expert in enumerate(experts):
        places = (chosen == number).nonzero().flatten()[: int(1.25 * BATCH * LENGTH / EXPERTS)]
        counts.append(places.numel())
        out = out.index_add(0, places, expert(hidden[places]) * weights[places, None])
    return min(counts) > 50, loss_of(net.head(out))


def until_small():
    """A loop until a computed value is small, with a bound."""
    for rounds in range(1, 21):
        loss = loss_of(net(batch()))
        if loss.item() < 3.0:
            break
    return rounds, loss


def masked_autoencoder():
    """A random quarter of the places, by the order of noise."""
    ids = batch()
    places = torch.rand(BATCH, LENGTH, device=DEVICE).argsort(1)[:, : LENGTH // 4]
    hidden = torch.gather(net.embedding(ids), 1, places[..., None].expand(-1, -1, WIDTH))
    return [hidden.shape[1], int(places.max()) < LENGTH], loss_of(net.head(net.block(hidden)))


torch.manual_seed(0)
net = Net().to(DEVICE)
gate = nn.Linear(WIDTH, EXPERTS).to(DEVICE)
experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS)).to(DEVICE)
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
scaler = torch.amp.GradScaler(DEVICE)
seen = []
for _ in range(3):
    saw, loss = globals()[CASE]()
    seen.append(saw)
    if loss is not None:
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
print(json.dumps(seen))
