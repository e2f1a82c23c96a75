"""Models of many families, small and with random weights, each with a batch: what tests record."""

import torch
from torch import nn


class Encoder(nn.Module):
    """torch's own Transformer encoder with a language model's head."""

    def __init__(self, width=64, vocabulary=300):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, input_ids, labels):
        logits = self.head(self.encoder(self.embedding(input_ids)))  # [B, S, vocabulary]
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Classifier(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, pixels, labels):
        return nn.functional.cross_entropy(self.body(pixels), labels)


class Recurrent(nn.Module):
    """The rows of an image one after the other."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        self.head = nn.Linear(2 * layers.hidden_size, 10)

    def forward(self, pixels):
        rows = pixels.transpose(1, 2).flatten(2)  # [B, H, 3 W]
        outputs, _ = self.layers(rows)
        return self.head(outputs.mean(1))


def small_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(1),
        nn.Linear(32, 10),
    )


def _tokens(device, vocabulary, batch_size=2, seq_len=32):
    ids = torch.randint(1, vocabulary, (batch_size, seq_len), device=device)
    return {"input_ids": ids, "labels": ids}


def _pixels(device, size, name="pixels"):
    labels = torch.tensor([1, 3], device=device)
    return {name: torch.randn(2, 3, size, size, device=device), "labels": labels}


def _encoder(device):
    return Encoder(), _tokens(device, 300)


def _cnn(device):
    return Classifier(small_cnn()), _pixels(device, 32)


def _resnet50(device):
    import torchvision

    return Classifier(torchvision.models.resnet50(num_classes=10)), _pixels(device, 64)


def _bert(device):
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256,
        vocab_size=300,
    )  # fmt: skip
    batch = _tokens(device, 300)
    return BertForMaskedLM(config), batch | {"attention_mask": torch.ones_like(batch["labels"])}


def _gpt2(device):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=300, use_cache=False)
    return GPT2LMHeadModel(config), _tokens(device, 300)


def _llama(device):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=300, use_cache=False,
    )  # fmt: skip
    return LlamaForCausalLM(config), _tokens(device, 300)


def _llama_checkpointed(device):
    model, batch = _llama(device)
    model.gradient_checkpointing_enable()
    return model, batch


def _vit(device):
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        image_size=32, patch_size=8, num_labels=10,
    )  # fmt: skip
    return ViTForImageClassification(config), _pixels(device, 32, "pixel_values")


def _t5(device):
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        num_layers=2, num_decoder_layers=2, d_model=64, d_ff=128, d_kv=16, num_heads=4,
        vocab_size=300, use_cache=False, decoder_start_token_id=0, pad_token_id=0,
    )  # fmt: skip
    return T5ForConditionalGeneration(config), _tokens(device, 300)


def _lstm(device):
    body = Recurrent(nn.LSTM(3 * 32, 32, num_layers=2, bidirectional=True, batch_first=True))
    return Classifier(body), _pixels(device, 32)


TORCH_ONLY = {"encoder": _encoder, "cnn": _cnn, "lstm": _lstm}
OF_TORCHVISION = {"resnet50": _resnet50}
OF_TRANSFORMERS = {
    "bert": _bert,
    "gpt2": _gpt2,
    "llama": _llama,
    "llama_checkpointed": _llama_checkpointed,
    "vit": _vit,
    "t5": _t5,
}


def build(family: str, device: str):
    """The model in training mode and its batch, both on `device`; the same for the same seed."""
    torch.manual_seed(0)
    model, batch = (TORCH_ONLY | OF_TORCHVISION | OF_TRANSFORMERS)[family](device)
    return model.to(device).train(), batch


def loss_of(model, batch):
    output = model(**batch)
    return output.loss if hasattr(output, "loss") else output
