"""QLoRA of the shapes of Llama 3.2 1B: 4-bit weights, adapters in bf16, a paged 8-bit optimizer.

pip install transformers peft bitsandbytes
temposcope run --gpu rtx3090 -- python qlora.py
"""

import bitsandbytes as bnb
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

BATCH, TOKENS, STEPS = 4, 1024, 4

config = LlamaConfig(
    vocab_size=128256,
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=16,
    num_attention_heads=32,
    num_key_value_heads=8,
    tie_word_embeddings=True,
)
with torch.device("meta"):
    model = LlamaForCausalLM(config).to(torch.bfloat16)
model.to_empty(device="cpu")  # a checkpoint would fill it
for module in list(model.model.layers.modules()):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            linear = bnb.nn.Linear4bit(
                child.in_features,
                child.out_features,
                bias=False,
                compute_dtype=torch.bfloat16,
                quant_type="nf4",
            )
            linear.weight = bnb.nn.Params4bit(
                child.weight.data, requires_grad=False, quant_type="nf4", compress_statistics=True
            )
            setattr(module, name, linear)
model.cuda()  # quantizes
model = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear"))
model.gradient_checkpointing_enable()
model.enable_input_require_grads()
optimizer = bnb.optim.PagedAdamW8bit(
    [parameter for parameter in model.parameters() if parameter.requires_grad], lr=2e-4
)
for _ in range(STEPS):
    tokens = torch.randint(config.vocab_size, (BATCH, TOKENS), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch.cuda.memory_stats()["requested_bytes.all.peak"])
