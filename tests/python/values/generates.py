"""Trains a language model of transformers, lets it write, and prints the shapes of the texts."""

import torch
import transformers

torch.manual_seed(0)
config = transformers.LlamaConfig(
    num_hidden_layers=2, hidden_size=256, num_attention_heads=4, num_key_value_heads=4,
    intermediate_size=512, vocab_size=1000,
)  # fmt: skip
model = transformers.LlamaForCausalLM(config).cuda()
optimizer = torch.optim.AdamW(model.parameters())
ids = torch.randint(3, 1000, (2, 16)).cuda()
for _ in range(3):
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
for samples in (False, True):
    mask = torch.ones_like(ids)
    written = model.generate(ids, attention_mask=mask, max_new_tokens=64, do_sample=samples)
    print(*written.shape, int(written.min()) >= 0 and int(written.max()) < 1000)
