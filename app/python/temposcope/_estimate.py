"""What a training step of a model would hold on a GPU that is not here: its peak, and what fits."""

import json
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping

import torch
from torch.utils._pytree import tree_leaves

from ._command import format_bytes, sentence_of, temposcope
from ._recorder import RecordingError

_PROGRAM = pathlib.Path(__file__).parent / "programs" / "estimated_step.py"


class Estimate:
    """A training step on a GPU: the value of `estimate`.

    gpu                   its id
    batch_size            of the example: the first dimension of its first tensor
    peak_allocated_bytes  that tensors take at the fullest moment of a step
    peak_reserved_bytes   that torch's allocator takes from the GPU for it. Where memory runs out
                          both are those of the failure: the step needs more
    breakdown             bytes at the peak by category, the largest first: {"activation": 1024}
    """

    def __init__(self, gpu: str, batch_size: int, folder: pathlib.Path, fits: bool, peak: dict):
        self.gpu = gpu
        self.batch_size = batch_size
        self.peak_allocated_bytes: int = peak["peak_allocated_bytes"]
        self.peak_reserved_bytes: int = peak["peak_reserved_bytes"]
        rows = sorted(peak["rows"], key=lambda row: -row["size_bytes"])
        self.breakdown: dict[str, int] = {row["name"]: row["size_bytes"] for row in rows}
        self._fits = fits
        self._largest: int | None = None
        self._folder = folder
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def fits(self) -> bool:
        """Whether two steps came to their end."""
        return self._fits

    def largest_batch(self) -> int:
        """The largest batch that fits; 0: none does. Found as `temposcope run --max` finds it: two
        small batches give a guess, and runs around it decide. The rows of the example are repeated;
        tensors whose first dimension is not its batch size stay as they are."""
        if self._largest is None:
            words = ("--gpu", self.gpu, "--max", "BATCH")
            ran = _run(self._folder, words, "--batch", "{BATCH}")
            if ran.returncode != 0:
                raise RecordingError(sentence_of(ran))
            self._largest = json.loads(ran.stdout)["rows"][0]["max_batch_size"] or 0
        return self._largest

    def __str__(self) -> str:
        verdict = "fits" if self._fits else "runs out of memory"
        lines = [
            f"A training step with a batch of {self.batch_size} {verdict} on {self.gpu}.",
            f"peak allocated   {format_bytes(self.peak_allocated_bytes):>9}",
            f"peak reserved    {format_bytes(self.peak_reserved_bytes):>9}",
        ]
        lines += [f"  {name:15}{format_bytes(size):>9}" for name, size in self.breakdown.items()]
        return "\n".join(lines)


def estimate(
    model: torch.nn.Module,
    example_inputs: torch.Tensor | tuple | list | Mapping,
    optimizer: torch.optim.Optimizer | Callable | None = None,
    *,
    gpu: str = "a100-40gb",
    loss: Callable | None = None,
    autocast: torch.dtype | None = None,
) -> Estimate:
    """Trains the model on a virtual GPU in a process of its own, and says what that takes.

        estimate = temposcope.estimate(model, tokens, torch.optim.AdamW, gpu="rtx4090")
        print(estimate, estimate.largest_batch())

    model           on the CPU, or without values on the device "meta", which a large one should be
    example_inputs  a tensor, a tuple of arguments or a dict of them, of the batch that is asked for
    optimizer       a class, a function of the parameters such as functools.partial(AdamW, lr=1e-4),
                    or an optimizer of the model; None: the gradients are the end of the step
    gpu             `temposcope plan --help` lists them
    loss            a function of the model's output. Without it, the output's `loss` as Hugging
                    Face's models have it, else the sum of all outputs. Only the graph keeps outputs
    autocast        torch.bfloat16 or torch.float16: forward and loss run under torch.autocast

    The model runs in training mode. Values are zeros (docs/how_prediction_works.md); no real
    GPU runs anything. The process imports the main program again, as multiprocessing does: call
    this below `if __name__ == "__main__":`.

    Raises RecordingError, in one sentence, if something cannot be pickled, the GPU is not known, or
    the step fails with another error than that memory ran out.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RecordingError(
            "temposcope.estimate runs the main program again to find its classes: call it below "
            'if __name__ == "__main__":'
        )
    inputs = dict(example_inputs) if isinstance(example_inputs, Mapping) else example_inputs
    tensors = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    if not tensors or tensors[0].dim() == 0:
        raise ValueError("example_inputs begin with no tensor of a batch: give [batch_size, ...]")
    batch_size = tensors[0].size(0)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="temposcope-"))
    try:
        _pack(folder, {"model": model, "inputs": inputs, "optimizer": optimizer, "loss": loss,
                       "autocast": autocast, "batch_size": batch_size})  # fmt: skip
        fits, peak = _train(folder, gpu)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Estimate(gpu, batch_size, folder, fits, peak)


def _main_program() -> dict:
    """What multiprocessing.spawn.prepare needs to import it. The function of multiprocessing that
    tells it would also settle how this process starts others."""
    main = sys.modules["__main__"]
    told = {"sys_path": sys.path, "sys_argv": sys.argv, "dir": os.getcwd()}
    if name := getattr(getattr(main, "__spec__", None), "name", None):
        told["init_main_from_name"] = name
    elif file := getattr(main, "__file__", None):
        told["init_main_from_path"] = os.path.abspath(file)
    return told


def _pack(folder: pathlib.Path, step: dict) -> None:
    """What estimated_step.py reads."""
    try:
        (folder / "main.json").write_text(json.dumps(_main_program()))
        torch.save(step, folder / "step.pt")
    except OSError as error:
        raise RecordingError(f"temposcope.estimate cannot write to {folder}: {error}") from None
    except Exception as error:
        raise RecordingError(
            f"temposcope.estimate sends the step to a process of its own, and it cannot be pickled "
            f"({error}): define its classes and functions at the top of a module"
        ) from None


def _run(folder: pathlib.Path, options: tuple, *arguments: str) -> subprocess.CompletedProcess:
    program = (sys.executable, _PROGRAM, folder, *arguments)
    return temposcope("run", *options, "--json", "--", *program)


def _train(folder: pathlib.Path, gpu: str) -> tuple[bool, dict]:
    """Whether it fits, and the peak as `info --peak --json` tells it."""
    trace = folder / "step.tscope"
    # The second step finds the optimizer's state.
    options = ("--gpu", gpu, "--skip", "1", "--steps", "1", "--stop", "-o", trace)
    ran = _run(folder, options)
    if not ran.stdout:  # the command itself failed
        raise RecordingError(sentence_of(ran))
    ran_out = ran.returncode != 0 and "OutOfMemoryError" in ran.stderr
    if ran.returncode != 0 and not ran_out:
        lines = [line for line in ran.stderr.splitlines() if line.strip()]
        of_program = [line for line in lines if not line.startswith("temposcope: ")]
        raise RecordingError(f"the step failed with {of_program[-1] if of_program else 'no word'}")
    told = temposcope("info", trace, "--peak", "--by", "class", "--json")
    if told.returncode != 0:
        raise RecordingError(sentence_of(ran))
    trace.unlink()
    return not ran_out, json.loads(told.stdout)
