"""One rank of gloo that holds a whole built-in model beside its share of the same one, split over
all ranks, and compares a step of both: torchrun tensor_parallel_program.py FAMILY HEAD

Rank 0 prints JSON: "losses" of both; "differences" of their gradients, as shares of the largest
gradient; and "shapes" of what this rank holds of the vocabulary.
"""

import json
import sys
import types

import torch
import torch.distributed as dist
from temposcope._built_in import Loss, Model, make_batch
from temposcope._parallel import make_model
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import loss_parallel

CPU = torch.device("cpu")
VOCAB = 101  # which two ranks cannot halve


def make_workload(family: str, head: str) -> types.SimpleNamespace:
    model = types.SimpleNamespace(
        family=family, num_layers=2, hidden_size=32, num_heads=4, intermediate_size=64,
        vocab_size=VOCAB, max_position_embeddings=64, first_position=0, layer_norm_eps=1e-5,
        type_vocab_size=0 if family == "gpt2" else 2, hidden_dropout_p=0, attention_dropout_p=0,
    )  # fmt: skip
    return types.SimpleNamespace(
        model=model, head=head, precision="fp32", recipe="qkv=separate", batch_size=3, seq_len=16,
        gradient_accumulation_steps=1, padding="none", input_requires_grad=False,
    )  # fmt: skip


def whole_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def main() -> None:
    family, head = sys.argv[1:]
    dist.init_process_group("gloo")
    torch.manual_seed(1)  # the same on all ranks
    workload = make_workload(family, head)
    whole = Model(workload)
    whole.materialize(CPU)
    for parameter in whole.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    split = make_model(workload, "tp", dist.get_world_size(), CPU)
    values = {name: one.detach() for name, one in whole.named_parameters()}
    from_whole = StateDictOptions(full_state_dict=True, strict=False)
    set_model_state_dict(split, values, options=from_whole)

    batch = make_batch(workload, workload.batch_size, CPU)
    ids = torch.randint(VOCAB, batch.input.shape)
    labels = workload.seq_len if head == "squad" else VOCAB
    target = torch.randint(labels, batch.target.shape)
    losses, logits = [], []
    for model in (whole, split):
        with loss_parallel():
            logits.append(model(ids, **batch.others))
            losses.append(Loss(workload)(logits[-1], target))
            losses[-1].backward()
    of_split = {name: whole_of(one.grad) for name, one in split.named_parameters()}
    of_whole = {name: one.grad for name, one in whole.named_parameters()}
    largest = max(one.norm() for one in of_whole.values())
    told = {
        "losses": [whole_of(one).item() for one in losses],
        "differences": {
            name: ((of_split[name] - of_whole[name]).norm() / largest).item() for name in of_whole
        },
        "shapes": [
            list(one.to_local().shape)
            for one in (*split.parameters(), logits[1])
            if isinstance(one, DTensor) and VOCAB in one.shape
        ],
    }
    if dist.get_rank() == 0:
        print(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
