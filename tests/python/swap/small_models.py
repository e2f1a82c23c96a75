"""Small models of the families that temposcope.swap knows, and what their layers save.

Each is `Family(name, build, run)`: `build(num_layers, attention)` makes the model with its weights
from seed 0, `run(model, device)` returns its output for a fixed batch.
"""

import dataclasses
from collections.abc import Callable

import torch
import torch.nn as nn
import transformers

B, S, H, A = 2, 24, 64, 4
F, VOCABULARY = 4 * H, 99
PATCHES = 24  # tokens of an image, beside the class token


@dataclasses.dataclass(frozen=True)
class Family:
    name: str
    build: Callable[[int, str], nn.Module]
    run: Callable[[nn.Module, torch.device], torch.Tensor]
    seq_len: int = S


def _tokens(device, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY, (B, S), generator=generator).to(device)


def _run_tokens(model, device):
    return model(_tokens(device)).last_hidden_state


def _hugging_face(kind, num_layers, attention, **more):
    """A model whose sizes have the names that most of the library's models share."""
    config = getattr(transformers, f"{kind}Config")(
        hidden_size=H,
        num_attention_heads=A,
        num_hidden_layers=num_layers,
        intermediate_size=F,
        attn_implementation=attention,
        **more,
    )
    return getattr(transformers, f"{kind}Model")(config)


def _bert(*given, kind="Bert"):
    return _hugging_face(kind, *given, vocab_size=VOCABULARY)


def _gpt2(num_layers, attention):
    config = transformers.GPT2Config(
        n_embd=H,
        n_head=A,
        n_layer=num_layers,
        vocab_size=VOCABULARY,
        attn_implementation=attention,
    )
    return transformers.GPT2Model(config)


def _vit(*given):
    sizes = {"image_size": (4, PATCHES), "patch_size": (4, 1)}
    dropout = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    return _hugging_face("ViT", *given, **sizes, **dropout)


def _run_images(model, device):
    images = torch.randn(B, 3, 4, PATCHES, generator=torch.Generator().manual_seed(1))
    images = images.to(device, next(model.parameters()).dtype)
    return model(pixel_values=images).last_hidden_state


def _llama(*given):
    own = {"num_key_value_heads": A, "attention_dropout": 0.1}
    return _hugging_face("Llama", *given, vocab_size=VOCABULARY, **own)


def _encoder(num_layers, attention, norm_first=False):
    layer = nn.TransformerEncoderLayer(
        H, A, F, dropout=0.1, activation="gelu", batch_first=True, norm_first=norm_first
    )
    return nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)


def _run_hidden(model, device):
    x = torch.randn(B, S, H, generator=torch.Generator().manual_seed(1))
    return model(x.to(device, next(model.parameters()).dtype).requires_grad_())


FAMILIES = {
    family.name: family
    for family in (
        Family("BERT", _bert, _run_tokens),
        Family("RoBERTa", lambda *given: _bert(*given, kind="Roberta"), _run_tokens),
        Family("GPT-2", _gpt2, _run_tokens),
        Family("ViT", _vit, _run_images, seq_len=PATCHES + 1),
        Family("Llama", _llama, _run_tokens),
        Family("TransformerEncoder", _encoder, _run_hidden),
        Family(
            "TransformerEncoder, norm first",
            lambda *given: _encoder(*given, norm_first=True),
            _run_hidden,
        ),
    )
}


def build(name: str, num_layers: int = 2, attention: str = "eager") -> nn.Module:
    """The model in training mode; the same weights every time."""
    torch.manual_seed(0)
    return FAMILIES[name].build(num_layers, attention).train()


def run(name: str, model: nn.Module) -> torch.Tensor:
    return FAMILIES[name].run(model, next(model.parameters()).device)


def step(name: str, model: nn.Module, seed: int = 3) -> list[torch.Tensor]:
    """The output and the gradients of all parameters, for a fixed loss and the masks of `seed`."""
    torch.manual_seed(seed)
    model.zero_grad(set_to_none=True)
    output = run(name, model)
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(2))
    (output * weights.to(output)).sum().backward()
    gradients = [one.grad for one in model.parameters()]
    return [output.detach(), *(one for one in gradients if one is not None)]
