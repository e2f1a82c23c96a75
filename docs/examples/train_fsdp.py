import os

import torch
from torch import nn
from torch.distributed import fsdp

torch.distributed.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
with torch.device("cuda"):
    layer = nn.TransformerEncoderLayer(2048, 16, 8192, activation="gelu", batch_first=True)
    encoder = nn.TransformerEncoder(layer, 12)
for block in encoder.layers:
    fsdp.fully_shard(block)
fsdp.fully_shard(encoder)
optimizer = torch.optim.AdamW(encoder.parameters())
for step in range(4):
    hidden = torch.randn(8, 512, 2048, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = encoder(hidden).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
