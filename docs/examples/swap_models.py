"""What temposcope.swap saves in models of transformers and torch, with random weights.

    python3 swap_models.py [--recipe tempo-packed] [--layers 12] [--batch 8] [--seq 512]

Prints for each model what is replaced, and the bytes that autograd saves in a training step before
and after. On a GPU, or a virtual one, also the most that torch allocates in forward and backward.
"""

import argparse

import torch
import torch.nn as nn
import transformers

import temposcope

MIB = 1 << 20


def models(layers, seq, attention):
    """(name, build) of each model: the width of the base model of its family, `layers` layers."""
    size = {"num_hidden_layers": layers, "attn_implementation": attention}
    positions = {"max_position_embeddings": max(514, seq + 2)}
    yield (
        "BERT",
        lambda: transformers.BertModel(transformers.BertConfig(**size, **positions)),
    )
    yield (
        "RoBERTa",
        lambda: transformers.RobertaModel(transformers.RobertaConfig(**size, **positions)),
    )
    yield (
        "GPT-2",
        lambda: transformers.GPT2Model(
            transformers.GPT2Config(n_layer=layers, attn_implementation=attention)
        ),
    )
    yield "ViT", lambda: transformers.ViTModel(transformers.ViTConfig(**size))
    yield (
        "Llama",
        lambda: transformers.LlamaModel(
            transformers.LlamaConfig(
                hidden_size=768, intermediate_size=2048, num_attention_heads=12, **size
            )
        ),
    )


def encoder(layers):
    layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def run(model, batch, seq):
    """The model's output for a batch of random tokens, images or hidden states."""
    one = next(model.parameters())
    if isinstance(model, nn.TransformerEncoder):
        return model(torch.randn(batch, seq, 768).to(one))
    if isinstance(model, transformers.ViTModel):
        return model(pixel_values=torch.randn(batch, 3, 224, 224).to(one)).last_hidden_state
    tokens = torch.randint(model.config.vocab_size, (batch, seq)).to(one.device)
    return model(tokens).last_hidden_state


def saved_bytes(model, batch, seq):
    """What autograd saves in forward: each storage once, without parameters and buffers."""
    own = {one.untyped_storage().data_ptr() for one in (*model.parameters(), *model.buffers())}
    storages = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # an output that its own node keeps would never be freed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = run(model, batch, seq)  # stays alive until the sum is taken
    return sum(storages.values()), output


def measure(model, batch, seq):
    """(saved bytes, most allocated bytes or None) of a step, gradients included."""
    on_gpu = next(model.parameters()).is_cuda
    model.zero_grad(set_to_none=True)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    run(model, batch, seq).sum().backward()
    peak = torch.cuda.max_memory_allocated() if on_gpu else None
    model.zero_grad(set_to_none=True)
    return saved_bytes(model, batch, seq)[0], peak


def change(before, after):
    percent = 100 * (after / before - 1)
    return f"{before / MIB:8,.0f} {after / MIB:8,.0f}  {percent:+6.1f} %"


def print_row(name, model, options):
    model = model.to(options.device, getattr(torch, options.dtype)).train()
    saved, peak = measure(model, options.batch, options.seq)
    report = temposcope.swap(model, options.recipe)
    saved_after, peak_after = measure(model, options.batch, options.seq)
    peaks = "" if peak is None else change(peak, peak_after)
    what = str(report).partition("replaced ")[2]
    print(f"{name:27}{change(saved, saved_after)}  {peaks}  {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--recipe", default="tempo-packed")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq", type=int, default=512)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    options.device = "cuda" if torch.cuda.is_available() else "cpu"
    peak = f"{'peak':>8} {'then':>8}" if options.device == "cuda" else ""
    print(f"{'MiB':27}{'saved':>8} {'then':>8}{'':12}{peak}")
    for attention in ("eager", "sdpa"):
        for name, build in models(options.layers, options.seq, attention):
            print_row(f"{name}, {attention}", build(), options)
    print_row("TransformerEncoder", encoder(options.layers), options)


if __name__ == "__main__":
    main()
