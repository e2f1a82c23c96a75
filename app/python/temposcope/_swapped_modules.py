"""What replaces norms, GELU, dropout and the layers of torch.nn, on torch.ops.tempo.

Each runs the module's own forward where an op would gain nothing or cannot run: without gradients,
inside torch.compile, torch.jit.trace and torch.func, and for tensors that the ops do not take.
"""

import dataclasses

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from ._library import on_simulated_gpu
from ._ranks import Rank, in_torch
from ._swapped_class import Swapped

_FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_DEVICES = ("cpu", "cuda", "meta")


def takes(x: torch.Tensor, *parameters: torch.Tensor | None) -> bool:
    """Whether the ops take x and these parameters of the module."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    if type(x) not in (torch.Tensor, nn.Parameter):
        return False
    if torch._C._are_functorch_transforms_active():  # torch.func.grad takes no autograd.Function
        return False
    if x.dtype not in _FLOATING or x.device.type not in _DEVICES:
        return False
    if x.layout != torch.strided or x.is_nested:
        return False
    if torch.is_autocast_enabled(x.device.type):  # it casts all of them
        return True
    return all(one is None or one.dtype == x.dtype for one in parameters)


def draw_key() -> list[int]:
    """[seed, rank, step, layer, site] of the next dropout mask, drawn from torch's generator for
    the CPU: torch.manual_seed repeats masks, and a checkpoint that restores the generator's state
    draws the same mask again. Processes of torch.distributed with one seed draw masks of their own.
    Reading the seed does not wait for a GPU."""
    seed = torch.empty((), dtype=torch.int64, device="cpu").random_().item()
    return [seed, (in_torch() or Rank()).rank, 0, 0, 0]


def branch_masks(masks: str) -> str:
    """How GELU stores its branch mask, which cannot be drawn again."""
    return "bit" if masks == "philox" else masks


# ---- norms -------------------------------------------------------------------------------------


class SaveChoice:
    """What a norm saves: its output, or x̂ where |weight| is too small to divide by.

    The same bounds as kernels/inplace_layernorm.h. Weights change once a step, so this looks again
    after a change that torch counts, and every 16 calls for optimizers that write to `.data`. On a
    GPU the values come with a copy that nobody waits for; until then the last answer holds. A state
    dict that is loaded is waited for, because its weights may be far from those before. A CUDA
    graph, whose replays ask nobody, gets x̂, which is right for all weights.
    """

    MIN_WEIGHT = 1 / 64
    MAX_BIAS_OVER_WEIGHT = 16
    CALLS = 16
    #: Answers in place of a look at weights that have no values, as those of ranks that are absent.
    assumed: str | None = None

    def __init__(self):
        self._save = None
        self._version = None
        self._calls = 0
        self._copies = None  # of weight and bias, and the event after which they are complete

    def __getstate__(self):
        return {}

    def __setstate__(self, state):
        self.__init__()

    def of(self, weight: torch.Tensor | None, bias: torch.Tensor | None) -> str:
        """ "output" or "normalized"."""
        if self.assumed:
            return self.assumed
        if weight is None or weight.device.type == "meta":
            return "output"
        if weight.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return "normalized"
        self._calls += 1
        version = weight._version, None if bias is None else bias._version
        if self._copies is not None:
            self._finish()
        elif self._save is None or version != self._version or self._calls >= self.CALLS:
            self._version, self._calls = version, 0
            self._look_at([one.detach() for one in (weight, bias) if one is not None])
        return self._save

    def _look_at(self, tensors):
        if self._save is None or tensors[0].device.type != "cuda":
            self._save = self._decide([one.cpu() for one in tensors])
            return
        copies = [one.to("cpu", non_blocking=True) for one in tensors]
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(tensors[0].device))
        self._copies = copies, done

    def _finish(self):
        copies, done = self._copies
        if done.query():
            self._save, self._copies = self._decide(copies), None

    def _decide(self, tensors):
        weight, *bias = (one.double().abs() for one in tensors)
        if on_simulated_gpu() and not weight.any():
            return "output"  # nobody computed the weights; those of real models are near 1
        fits = weight >= self.MIN_WEIGHT
        for one in bias:
            fits &= one <= self.MAX_BIAS_OVER_WEIGHT * weight
        return "output" if bool(fits.all()) else "normalized"  # NaN fits nowhere


class Norm(Swapped):
    """What norms share; their plan is a SaveChoice."""

    def _load_from_state_dict(self, *arguments):
        super()._load_from_state_dict(*arguments)
        self._temposcope = SaveChoice()


class LayerNorm(Norm):
    """nn.LayerNorm over the last dimension, from its output."""

    def forward(self, input):
        if not torch.is_grad_enabled() or not takes(input, self.weight, self.bias):
            return super().forward(input)
        save = self._temposcope.of(self.weight, self.bias)
        return torch.ops.tempo.layer_norm(input, self.weight, self.bias, self.eps, save)


class RmsNorm(Norm):
    """nn.RMSNorm, from its output."""

    def forward(self, x):
        if not torch.is_grad_enabled() or not takes(x, self.weight):
            return super().forward(x)
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        save = self._temposcope.of(self.weight, None)
        return torch.ops.tempo.rms_norm(x, self.weight, eps, save)


class HuggingFaceRmsNorm(Norm):
    """LlamaRMSNorm and the classes with its code, from their output."""

    def forward(self, hidden_states):
        if not torch.is_grad_enabled() or not takes(hidden_states, self.weight):
            return super().forward(hidden_states)
        save = self._temposcope.of(self.weight, None)
        return torch.ops.tempo.rms_norm(hidden_states, self.weight, self.variance_epsilon, save)


# ---- GELU and dropout --------------------------------------------------------------------------


@dataclasses.dataclass
class GeluPlan:
    tanh: bool
    masks: str  # "byte", "bit" or "philox"

    def __call__(self, x):
        if not torch.is_grad_enabled() or not takes(x):
            return F.gelu(x, approximate="tanh" if self.tanh else "none")
        return torch.ops.tempo.gelu(x, self.tanh, branch_masks(self.masks))


class Gelu(Swapped):
    """A GELU module, from its output."""

    def forward(self, input):
        if not torch.is_grad_enabled() or not takes(input):
            return super().forward(input)
        return self._temposcope(input)


@dataclasses.dataclass
class DropoutPlan:
    masks: str


class Dropout(Swapped):
    """nn.Dropout with a mask of ours."""

    def forward(self, input):
        if not self.training or self.p == 0 or not takes(input):
            return super().forward(input)
        return torch.ops.tempo.dropout(input, self.p, self._temposcope.masks, draw_key())


# ---- layers ------------------------------------------------------------------------------------


@dataclasses.dataclass
class LayerPlan:
    gelu: GeluPlan | None = None  # replaces F.gelu, which is no module
    recompute_dropout: bool = False  # the input of the second linear layer in backward
    checkpointed: bool = False


def checkpointed(function, *arguments, **named):
    """`function(...)` with activation checkpointing; draws the same masks again."""
    return checkpoint(function, *arguments, use_reentrant=False, **named)


class Layer(Swapped):
    """Any layer under activation checkpointing."""

    def forward(self, *arguments, **named):
        forward = super().forward
        if self._temposcope.checkpointed and self.training and torch.is_grad_enabled():
            if not torch.compiler.is_compiling():
                return checkpointed(forward, *arguments, **named)
        return forward(*arguments, **named)


class TransformerLayer(Layer):
    """nn.TransformerEncoderLayer and nn.TransformerDecoderLayer. Their attention, norms and
    dropouts are modules of their own; this is the activation between the linear layers, and what
    the second of them saves."""

    def _ff_block(self, x):
        plan = self._temposcope
        last = self.dropout3 if isinstance(self, nn.TransformerDecoderLayer) else self.dropout2
        activation = plan.gelu or self.activation
        y = activation(self.linear1(x))
        drops = self.training and self.dropout.p > 0 and torch.is_grad_enabled() and takes(y)
        from_output = plan.gelu is not None or isinstance(self.activation, Gelu)
        if not (plan.recompute_dropout and from_output and drops):
            return last(self.linear2(self.dropout(y)))
        key = draw_key()

        def dropped_linear(y):
            return self.linear2(torch.ops.tempo.dropout(y, self.dropout.p, "philox", key))

        # GELU saves y. Without the checkpoint, linear2 would save the dropped y beside it. The key
        # draws the mask again, so no generator has to be restored.
        return last(checkpointed(dropped_linear, y, preserve_rng_state=False))
