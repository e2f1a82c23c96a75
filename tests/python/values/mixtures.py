"""Trains a mixture of experts of transformers, and prints the peak.

    mixtures.py mixtral|qwen3|deepseek router|host

With `host`, the program itself sends the places of a balanced routing to the GPU.
"""

import sys

import torch
import transformers

FAMILY, ROUTING = sys.argv[1:]
SIZES = {"num_hidden_layers": 2, "hidden_size": 512, "num_attention_heads": 8, "vocab_size": 4000}


def configuration():
    if FAMILY == "mixtral":
        return transformers.MixtralConfig(
            **SIZES, intermediate_size=1024, num_key_value_heads=4, num_local_experts=8,
            num_experts_per_tok=2, output_router_logits=True,
        )  # fmt: skip
    if FAMILY == "qwen3":
        return transformers.Qwen3MoeConfig(
            **SIZES, intermediate_size=1024, num_key_value_heads=4, moe_intermediate_size=256,
            num_experts=32, num_experts_per_tok=4, head_dim=64,
        )  # fmt: skip
    return transformers.DeepseekV2Config(
        **SIZES, intermediate_size=1024, num_key_value_heads=8, moe_intermediate_size=256,
        n_routed_experts=16, num_experts_per_tok=4, n_shared_experts=1, first_k_dense_replace=0,
        q_lora_rank=128, kv_lora_rank=64, qk_rope_head_dim=32, qk_nope_head_dim=64, v_head_dim=64,
        n_group=1, topk_group=1, topk_method="greedy",
    )  # fmt: skip


def topk_of_host(scores, k, dim=-1, **options):
    values, places = topk(scores, k, dim=dim, **options)
    width = scores.shape[dim]
    table = torch.arange(places.numel()) % width
    places.data.copy_(table.view(places.shape))
    return values, places


topk = torch.topk
if ROUTING == "host":
    torch.topk = topk_of_host
torch.manual_seed(0)
model = transformers.AutoModelForCausalLM.from_config(configuration()).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    ids = torch.randint(0, 4000, (4, 512)).cuda()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch.cuda.max_memory_allocated())
