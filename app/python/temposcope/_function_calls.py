"""Calls of torch's functions in a program's code. A recipe cannot replace them, as they are no
modules; the recording knows those that keep something for backward."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ._attention import BACKENDS
from ._recipes import switches_of
from ._recorder import SavingCall
from ._swap import Left, SwapReport


class _Function(NamedTuple):
    name: str
    module: str  # that could be replaced
    switch: str
    would_replace: Callable[[str, SavingCall], bool]  # a value of the switch, in place of a call


def _would_replace_attention(value: str, call: SavingCall) -> bool:
    """A fused backend keeps no probabilities, and so tempo leaves it."""
    is_fused = all(saver.startswith("aten::_scaled_dot_product_") for saver in call.savers)
    return value in BACKENDS or (value == "recompute_dropout" and not is_fused)


_FUNCTIONS = {
    "aten::gelu": _Function("F.gelu", "nn.GELU", "gelu", lambda value, _: value == "in_place"),
    "aten::layer_norm": _Function(
        "F.layer_norm", "nn.LayerNorm", "layer_norm", lambda value, _: value == "from_output"
    ),
    "aten::rms_norm": _Function(
        "F.rms_norm", "nn.RMSNorm", "layer_norm", lambda value, _: value == "from_output"
    ),
    "aten::dropout": _Function(
        "F.dropout", "nn.Dropout", "dropout", lambda value, _: value != "stock"
    ),
    "aten::scaled_dot_product_attention": _Function(
        "F.scaled_dot_product_attention",
        "nn.MultiheadAttention",
        "attention",
        _would_replace_attention,
    ),
}


def calls_left(report: SwapReport, calls: Iterable[SavingCall]) -> tuple[Left, ...]:
    """What a report does not know: the paths of `calls` are those of its model. Modules that it
    names are not named again."""
    switches = switches_of(report.recipe)
    named = {path for paths in report.replaced.values() for path in paths}
    named |= {path for left in report.left for path in left.modules}
    found: dict[str, list[str]] = {}
    for call in calls:
        function = _FUNCTIONS.get(call.op)
        if function is None or call.module_path in named:
            continue
        if function.would_replace(switches[function.switch], call):
            found.setdefault(call.op, []).append(call.module_path)
    return tuple(
        Left(
            f"{'call' if len(paths) == 1 else 'calls'} of {_FUNCTIONS[op].name}",
            f"only modules can be replaced, such as {_FUNCTIONS[op].module}",
            tuple(paths),
        )
        for op, paths in found.items()
    )
