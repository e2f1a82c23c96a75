"""temposcope.swap: the techniques of a recipe on a model that exists."""

import dataclasses
import re
import sys
from collections.abc import Iterator

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from . import _attention, _chunked_loss, _swapped_class, _swapped_modules
from ._layers import layers_of
from ._recipes import switches_of


@dataclasses.dataclass(frozen=True)
class Left:
    """Modules that were not replaced, or a switch that nothing was done for."""

    what: str  # "SiLU", or "fusion=tempo"
    reason: str
    modules: tuple[str, ...] = ()  # paths as in named_modules()

    def __str__(self):
        count = f"{len(self.modules)} " if self.modules else ""
        return f"{count}{self.what} because {self.reason}"


@dataclasses.dataclass(frozen=True)
class SwapReport:
    """What `swap` did. As text: "tempo: replaced 12 GELU, 25 LayerNorm, 12 attention cores; not
    replaced: 1 SiLU because there is no op for it"."""

    recipe: str
    replaced: dict[str, tuple[str, ...]]  # {"GELU": ("encoder.layer.0.intermediate...", ...)}
    left: tuple[Left, ...]

    def __str__(self):
        done = ", ".join(f"{len(paths)} {what}" for what, paths in self.replaced.items())
        text = f"{self.recipe}: replaced {done or 'nothing'}"
        if self.left:
            text += "; not replaced: " + "; ".join(str(one) for one in self.left)
        return text


def swap(model: nn.Module, recipe: str, layers: tuple[type, ...] = ()) -> SwapReport:
    """Replaces ops of `model` by those of a recipe, in place. Outputs, gradients, the names of
    parameters and the state_dict stay; autograd keeps less.

    recipe   a preset (temposcope.recipes() lists them) or switches: "tempo-packed",
             "gelu=in_place,masks=bit", "flash,checkpoint=per_layer"; "chunked-loss", or
             loss=chunked beside others: the cross entropy of a large vocabulary in chunks
    layers   classes of your own whose modules count as layers for checkpoint=per_layer. Without
             them, and where no layer of torch or transformers is found, those that the model is a
             stack of: the modules of one class in its lists

    Shapes, dtypes and devices are those of the model: norms take [..., C], attention [B, S, C] or,
    in Hugging Face's models, query, key and value [B, A, S, D].
    A model can be swapped again; "original-stock" gives it back as it was.
    Returns what was replaced, and what was left and why. Raises ValueError for an unknown recipe,
    TypeError for what is no module.

    >>> report = temposcope.swap(model, "tempo")
    >>> print(report)
    tempo: replaced 12 GELU, 25 LayerNorm, 37 dropouts, 12 attention cores
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"swap takes a torch.nn.Module, not {type(model).__name__}")
    return _Swap(model, recipe, switches_of(recipe), tuple(layers)).run()


TRANSFORMERS = 5  # the version whose models are known


def _transformers_version() -> int | None:
    """None where the program has not imported transformers."""
    if "transformers" not in sys.modules:
        return None
    return int(sys.modules["transformers"].__version__.split(".")[0])


def _hugging_face():
    """Our module on transformers; None without transformers, or with another version."""
    if _transformers_version() != TRANSFORMERS:
        return None
    from . import _hugging_face

    return _hugging_face


def _is_compiled(module) -> bool:
    dynamo = sys.modules.get("torch._dynamo.eval_frame")  # slow to import, and here if it compiled
    return (
        (dynamo is not None and isinstance(module, dynamo.OptimizedModule))
        or getattr(module, "_compiled_call_impl", None) is not None
        or isinstance(module, torch.jit.ScriptModule)
    )


# What can be replaced, in the order of a report.
_KINDS = (
    "GELU",
    "LayerNorm",
    "RMSNorm",
    "dropouts",
    "attention cores",
    "checkpointed layers",
    "heads",
)
_LOOKS_LIKE_GELU = re.compile(r"gelu|silu|swish|mish", re.IGNORECASE)
_LOOKS_LIKE_NORM = re.compile(r"(layer|rms)_?norm", re.IGNORECASE)
_DROPOUTS = (nn.modules.dropout._DropoutNd, nn.Dropout)
_NOT_KNOWN = "swap does not know its class"
_TORCH_LAYERS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)


def _is_like(module, classes, name: re.Pattern) -> bool:
    """Of one of the classes, or a leaf whose class has such a name."""
    is_leaf = next(module.children(), None) is None
    return isinstance(module, classes) or (is_leaf and bool(name.search(type(module).__name__)))


class _Swap:
    """One call of swap."""

    def __init__(self, model, recipe, switches, layers):
        self.model, self.recipe, self.switches = model, recipe, switches
        self.layers = layers
        self.hugging_face = _hugging_face()
        self.replaced: dict[str, list[str]] = {}
        self.left: dict[tuple[str, str], list[str]] = {}

    def run(self) -> SwapReport:
        modules = list(self._modules("", self.model, set()))
        for _, module in modules:
            self._take_away(module)
        self._leave_switches()
        if self._backend() and self.hugging_face:
            self.hugging_face.use_sdpa(module for _, module in modules)
        for path, module in modules:
            self._replace(path, module)
        if self.switches["checkpoint"] == "per_layer":
            self._checkpoint_layers(modules)
        if self.switches["loss"] == "chunked" and "heads" not in self.replaced:
            self._leave("loss=chunked", "no linear layer makes a vocabulary of 8,192 or more")
        return SwapReport(
            self.recipe,
            {what: tuple(self.replaced[what]) for what in _KINDS if what in self.replaced},
            tuple(Left(*what, tuple(paths)) for what, paths in self.left.items()),
        )

    def _modules(self, path, module, seen) -> Iterator[tuple[str, nn.Module]]:
        """Every module once, children first, without what is compiled."""
        if id(module) in seen:
            return
        seen.add(id(module))
        if _is_compiled(module):
            self._leave(type(module).__name__, "compiled modules are left alone", path or "model")
            return
        for name, child in module.named_children():
            yield from self._modules(f"{path}.{name}" if path else name, child, seen)
        yield path or "model", module

    def _take_away(self, module):
        """Undoes an earlier swap."""
        if module.__dict__.pop("_temposcope_checkpoints", False):
            module.gradient_checkpointing_disable()
        if self.hugging_face:
            self.hugging_face.take_away(module)
        _swapped_class.take_away(module)

    def _done(self, what, path):
        self.replaced.setdefault(what, []).append(path)

    def _leave(self, what, reason, path=None):
        self.left.setdefault((what, reason), []).extend([path] if path else [])

    # ---- switches ------------------------------------------------------------------------------

    def _backend(self) -> str | None:
        attention = self.switches["attention"]
        return attention if attention in _attention.BACKENDS else None

    def _leave_switches(self):
        """Names the values that nothing here does."""
        reasons = {
            ("gelu", "recompute"): "it needs the linear layer that follows",
            ("gelu", "python"): "it only takes more memory",
            ("checkpoint", "sqrt"): "the model's own code calls its layers one by one",
            ("fusion", "tempo"): "the steps stay modules of their own",
            ("fusion", "substation"): "it is a whole layer of its own",
            ("fusion", "deepspeed"): "it is a whole layer of its own",
            ("implementation", "published"): "it can only be predicted",
        }
        for switch, value in self.switches.items():
            if (switch, value) in reasons:
                self._leave(f"{switch}={value}", reasons[switch, value])
        if _transformers_version() not in (None, TRANSFORMERS):
            version = sys.modules["transformers"].__version__
            self._leave("models of transformers", f"swap knows transformers 5, not {version}")
        if self.switches["dropout"] == "stock":
            for switch, value in (
                ("attention", "recompute_dropout"),
                ("checkpoint", "attention_core"),
            ):
                if self.switches[switch] == value:
                    self._leave(f"{switch}={value}", "torch's dropout cannot draw a mask again")

    # ---- modules -------------------------------------------------------------------------------

    def _replace(self, path, module):
        for replace in (
            self._replace_gelu,
            self._replace_norm,
            self._replace_dropout,
            self._replace_attention,
            self._replace_layer,
            self._replace_head,
        ):
            if replace(path, module):
                return

    def _replace_gelu(self, path, module) -> bool:
        if not _is_like(module, nn.GELU, _LOOKS_LIKE_GELU):
            return False
        if self.switches["gelu"] != "in_place":
            return True
        if type(module) is nn.GELU:
            tanh = module.approximate == "tanh"
        elif self.hugging_face and self.hugging_face.is_of(module, self.hugging_face.GELUS):
            tanh = self.hugging_face.GELUS[type(module).__name__]
        else:
            self._leave(type(module).__name__, "there is no op for it", path)
            return True
        plan = _swapped_modules.GeluPlan(tanh, self.switches["masks"])
        _swapped_class.put(module, _swapped_modules.Gelu, plan)
        self._done("GELU", path)
        return True

    def _replace_norm(self, path, module) -> bool:
        name = type(module).__name__
        if not _is_like(module, (nn.LayerNorm, nn.RMSNorm), _LOOKS_LIKE_NORM):
            return False
        if self.switches["layer_norm"] != "from_output":
            return True
        over_last = len(getattr(module, "normalized_shape", (1,))) == 1
        if type(module) in (nn.LayerNorm, nn.RMSNorm) and not over_last:
            self._leave(name, "it runs over more than the last dimension", path)
        elif type(module) is nn.LayerNorm:
            self._put_norm(path, module, _swapped_modules.LayerNorm, "LayerNorm")
        elif type(module) is nn.RMSNorm:
            self._put_norm(path, module, _swapped_modules.RmsNorm, "RMSNorm")
        elif self.hugging_face and self.hugging_face.is_of(module, self.hugging_face.RMS_NORMS):
            self._put_norm(path, module, _swapped_modules.HuggingFaceRmsNorm, "RMSNorm")
        else:
            self._leave(name, _NOT_KNOWN, path)
        return True

    def _put_norm(self, path, module, kind, what):
        _swapped_class.put(module, kind, _swapped_modules.SaveChoice())
        self._done(what, path)

    def _replace_dropout(self, path, module) -> bool:
        if not isinstance(module, _DROPOUTS):
            return False
        if self.switches["dropout"] == "stock":
            return True
        if type(module) is not nn.Dropout:
            self._leave(type(module).__name__, "there is no op for it", path)
            return True
        plan = _swapped_modules.DropoutPlan(self.switches["masks"])
        _swapped_class.put(module, _swapped_modules.Dropout, plan)
        self._done("dropouts", path)
        return True

    def _replace_attention(self, path, module) -> bool:
        name = type(module).__name__
        is_known = self.hugging_face and self.hugging_face.is_of(
            module, self.hugging_face.ATTENTION
        )
        has_config = hasattr(module.__dict__.get("config"), "_attn_implementation")
        if type(module) is not nn.MultiheadAttention and not is_known:
            if has_config and name.endswith("Attention") and self._changes_attention():
                self._leave(name, _NOT_KNOWN, path)
            return False
        if not self._changes_attention():
            return True
        plan = _attention.AttentionPlan(
            backend=self._backend(),
            recompute=self.switches["attention"] == "recompute_dropout",
            checkpointed=self.switches["checkpoint"] == "attention_core",
            masks=self.switches["masks"],
        )
        if type(module) is nn.MultiheadAttention:
            _swapped_class.put(module, _attention.MultiheadAttention, plan)
        elif (reason := self.hugging_face.why_not(module)) is not None:
            self._leave(name, reason, path)
            return True
        else:
            self.hugging_face.put(module, plan)
        self._done("attention cores", path)
        return True

    def _changes_attention(self) -> bool:
        return self._backend() is not None or self.switches["dropout"] != "stock"

    def _replace_layer(self, path, module) -> bool:
        is_of_torch = type(module) in _TORCH_LAYERS
        is_checkpointed = self.switches["checkpoint"] == "per_layer"
        if is_of_torch:
            gelu = None
            if self.switches["gelu"] == "in_place" and module.activation is F.gelu:
                gelu = _swapped_modules.GeluPlan(False, self.switches["masks"])
                self._done("GELU", f"{path}.activation")
            recompute = self.switches["attention"] == "recompute_dropout"
            recompute = recompute and self.switches["dropout"] != "stock"
            plan = _swapped_modules.LayerPlan(gelu, recompute, is_checkpointed)
            if gelu or recompute or is_checkpointed:
                _swapped_class.put(module, _swapped_modules.TransformerLayer, plan)
        elif is_checkpointed and isinstance(module, self.layers):
            plan = _swapped_modules.LayerPlan(checkpointed=True)
            _swapped_class.put(module, _swapped_modules.Layer, plan)
        else:
            return False
        if is_checkpointed:
            self._done("checkpointed layers", path)
        return True

    def _replace_head(self, path, module) -> bool:
        if self.switches["loss"] != "chunked" or not _chunked_loss.is_head(module):
            return False
        _swapped_class.put(module, _chunked_loss.Head, _chunked_loss.HeadPlan())
        self._done("heads", path)
        return True

    def _checkpoint_layers(self, modules):
        """Hugging Face's models have checkpoints of their own, which know about their caches."""
        if self.hugging_face:
            for path, model in self._pretrained("", self.model):
                if not model.is_gradient_checkpointing:
                    model.gradient_checkpointing_enable({"use_reentrant": False})
                    model._temposcope_checkpoints = True
                for name in self.hugging_face.checkpointed_layers(model):
                    self._done("checkpointed layers", f"{path}.{name}" if path else name)
        if not self.layers and not self.replaced.get("checkpointed layers"):
            self._checkpoint_stack(modules)
        if not self.replaced.get("checkpointed layers"):
            self._leave("checkpoint=per_layer", self._why_no_checkpoint())

    def _why_no_checkpoint(self) -> str:
        layers = list(layers_of(self.model))
        why = "no module is known as a layer: name its class"
        if any(map(_has_batch_norm, layers)):
            why = (
                "the layers have batch norms, whose statistics a checkpoint would update twice: "
                "name the class of modules without them"
            )
        elif any(map(_is_list, layers)):
            why = "the layers are lists, which nobody calls: name the class of modules in them"
        return f"{why}, as in swap(..., layers=(Block,)) or run --layers Block"

    def _checkpoint_stack(self, modules):
        """The layers of a model whose code nobody knows. A checkpoint runs their forward again,
        which would update the statistics of batch norms twice."""
        layers = set(layers_of(self.model))
        for path, module in modules:
            if module in layers and not _has_batch_norm(module) and not _is_list(module):
                plan = _swapped_modules.LayerPlan(checkpointed=True)
                _swapped_class.put(module, _swapped_modules.Layer, plan)
                self._done("checkpointed layers", path)

    def _pretrained(self, path, module) -> Iterator[tuple[str, nn.Module]]:
        """The outermost models of transformers that have checkpoints."""
        if _is_compiled(module):
            return
        if isinstance(module, self.hugging_face.PreTrainedModel):
            if module.supports_gradient_checkpointing:
                yield path, module
            return
        for name, child in module.named_children():
            yield from self._pretrained(f"{path}.{name}" if path else name, child)


def _has_batch_norm(module: nn.Module) -> bool:
    return any(isinstance(part, _BatchNorm) for part in module.modules())


def _is_list(module: nn.Module) -> bool:
    return isinstance(module, (nn.ModuleList, nn.ModuleDict))
