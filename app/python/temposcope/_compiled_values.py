"""Whole numbers and truth values that compiled graphs return, on a virtual GPU.

A kernel of Triton's writes what nobody knows. But where a graph makes a mask or an index from such
tensors alone, its own ops compute it on the CPU, and the program selects as many rows as on a card:

    graph    labels ──► ne(-100) ──► mask      computed again, if the labels are known
             x ──► linear ──► h                not computed
    program  h[mask]
"""

import types
from collections.abc import Callable

import torch

from . import _recorder
from ._compiled import after_import, tell_once

_OUTPUT_GRAPH = "torch._dynamo.output_graph"
_MOST_ELEMENTS = 1 << 22  # of all inputs: larger ones are no masks
_UNKNOWN = "Masks that compiled code makes are not known"
# `mask &= other`, `mask[0] = False`
_CHANGING = "iadd iand ifloordiv ilshift imod imul imatmul ior ipow irshift isub itruediv ixor"
_CHANGING_OPERATORS = {*_CHANGING.split(), "setitem"}
_RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal")


def follow() -> None:
    """From now on graphs that Dynamo compiles."""
    after_import(_OUTPUT_GRAPH, _patch)


def _patch(module: types.ModuleType) -> None:
    compile_graph = getattr(module.OutputGraph, "call_user_compiler", None)
    if compile_graph is None or getattr(compile_graph, "_is_ours", False):
        return

    def compile_and_follow(self, graph_module, *args, **kwargs):
        try:
            whole = _whole_part(graph_module)  # before a backend changes the graph
        except Exception as error:
            whole = tell_once(_UNKNOWN, error)
        compiled = compile_graph(self, graph_module, *args, **kwargs)
        return compiled if whole is None else _followed(compiled, *whole)

    compile_and_follow._is_ours = True
    module.OutputGraph.call_user_compiler = compile_and_follow


def _followed(compiled: Callable, part: torch.fx.GraphModule, places: list[int]) -> Callable:
    """The compiled graph, after which the outputs at `places` have the values that `part` gives."""

    def run(*args):
        results = _results(part, args)  # before the graph changes its arguments
        outputs = compiled(*args)
        for place, result in zip(places, results):
            _tell(outputs[place], result)
        return outputs

    return run


def _results(part: torch.fx.GraphModule, args: tuple) -> tuple:
    """Empty: they are not known. A default device of the program's is not for these ops."""
    try:
        with _recorder.hidden_ops(), torch.no_grad(), torch.device("cpu"):
            inputs = _inputs_on_cpu(part, args)
            return () if inputs is None else torch.fx.Interpreter(part).run(*inputs)
    except Exception as error:
        tell_once(_UNKNOWN, error)
        return ()


def _whole_part(graph_module) -> tuple[torch.fx.GraphModule, list[int]] | None:
    """The part of a graph that makes whole numbers from nothing else, and which of the outputs
    these are. None: there is none."""
    nodes = list(graph_module.graph.nodes)
    returned = nodes[-1].args[0]
    are_whole = {}
    for node in nodes:
        are_whole[node] = _is_whole(node) and all(are_whole[one] for one in node.all_input_nodes)
        if _may_write(node) and any(are_whole[one] for one in node.all_input_nodes):
            return None  # to something that another node reads
    places = [
        place
        for place, node in enumerate(returned)
        if isinstance(node, torch.fx.Node)
        and node.op != "placeholder"
        and are_whole[node]
        and isinstance(node.meta["example_value"], torch.Tensor)
    ]
    if not places:
        return None
    needed = {returned[place] for place in places}
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.all_input_nodes)
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in nodes:
        if node.op == "placeholder" or node in needed:
            copy = copies[node] = graph.node_copy(node, copies.__getitem__)
            copy.args = torch.fx.node.map_aggregate(copy.args, _on_no_gpu)
            copy.kwargs = torch.fx.node.map_aggregate(copy.kwargs, _on_no_gpu)
            copy.meta["is_needed"] = node in needed
    graph.output(tuple(copies[returned[place]] for place in places))
    return torch.fx.GraphModule(graph_module, graph), places


def _on_no_gpu(argument: object) -> object:
    is_name = isinstance(argument, str) and argument.startswith("cuda")
    return torch.device("cpu") if is_name or isinstance(argument, torch.device) else argument


def _is_whole(node: torch.fx.Node) -> bool:
    """Whether a node is no floating tensor, and a CPU computes it as a GPU does."""
    value = node.meta.get("example_value")
    is_floating = isinstance(value, torch.Tensor) and (
        value.is_floating_point() or value.is_complex() or type(value).__name__ != "FakeTensor"
    )
    if is_floating or node.op in ("output", "call_module", "get_attr"):
        return False
    if node.op == "placeholder":
        return True
    name = getattr(node.target, "__name__", str(node.target))
    return value is not None and name != "cuda" and not _draws(name)


def _may_write(node: torch.fx.Node) -> bool:
    """Whether a node may change one of its arguments: `mask[:, 0] = False`, `mask.fill_(False)`."""
    if not node.op.startswith("call_"):
        return False
    name = getattr(node.target, "__name__", str(node.target))
    schema = getattr(node.target, "_schema", None)
    is_operator = getattr(node.target, "__module__", "") == "_operator"  # with and_, or_
    is_in_place = (name.endswith("_") and not name.endswith("__")) or name == "__setitem__"
    if is_operator:
        is_in_place = name in _CHANGING_OPERATORS
    is_other = not isinstance(node.target, str) and isinstance(
        node.target, torch._ops.HigherOrderOperator
    )
    return (
        is_in_place
        or is_other
        or "out" in node.kwargs
        or bool(schema and schema.is_mutable)
    )


def _draws(name: str) -> bool:
    return any(word in name for word in _RANDOM)


def _inputs_on_cpu(part: torch.fx.GraphModule, args: tuple) -> list | None:
    """The arguments that the part needs. None: one of them is not known."""
    placeholders = [node for node in part.graph.nodes if node.op == "placeholder"]
    inputs, num_elements = [], 0
    for node, argument in zip(placeholders, args, strict=True):
        if not node.meta["is_needed"] or not isinstance(argument, torch.Tensor):
            inputs.append(argument)
            continue
        num_elements += argument.numel()
        on_cpu = _on_cpu(argument) if num_elements <= _MOST_ELEMENTS else None
        if on_cpu is None:
            return None
        inputs.append(on_cpu)
    return inputs


def _is_dense(tensor: torch.Tensor) -> bool:
    return type(tensor) is torch.Tensor and tensor.is_contiguous()


def _on_cpu(tensor: torch.Tensor) -> torch.Tensor | None:
    if tensor.device.type != "cuda":
        return tensor.clone()
    if not _is_dense(tensor):
        return None
    values = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    is_known = _recorder.read_values(tensor.data_ptr(), values.data_ptr(), values.nbytes)
    return values if is_known else None


def _tell(tensor: torch.Tensor, values: torch.Tensor) -> None:
    is_same = tensor.shape == values.shape and tensor.dtype == values.dtype
    if tensor.device.type == "cuda" and _is_dense(tensor) and is_same:
        with _recorder.hidden_ops():
            values = values.contiguous()
        _recorder.write_values(tensor.data_ptr(), values.data_ptr(), values.nbytes)
