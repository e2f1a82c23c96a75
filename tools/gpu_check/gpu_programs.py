"""Check of gpu-check: what PyTorch programs ask of the allocator, to compare with a virtual GPU."""

import json

from gpu_run import BUNDLE, Failed, Run

FOLDER = "programs"
# Program of program_steps.py, recipe.
PROGRAMS = (
    *((name, "") for name in (
        "encoder", "encoder-amp", "decoder-bf16", "decoder-scaled", "bert", "bert-eager",
        "bert-amp", "gpt2-amp", "llama-bf16", "resnet50", "resnet50-last", "vit", "t5", "lstm",
        "convnext",
    )),
    *((name, recipe) for name in ("bert-eager", "gpt2-amp") for recipe in ("tempo", "checkpoint")),
    *(("bert-amp", recipe) for recipe in ("tempo", "flash")),
)
OF_LIBRARIES = ("ModuleNotFoundError", "ImportError")  # a program whose library is not installed


def programs(run: Run):
    """Memory snapshots and traces of plain PyTorch programs, and of some with a recipe."""
    folder = run.folder / FOLDER
    folder.mkdir(exist_ok=True)
    run.side_by_side(
        lambda program: steps_of(run, folder, *program), run.some(PROGRAMS, few=2), run.detail
    )
    run.judge([f"{name}: {row['problem']}" for name, row in run.detail.items()
               if "problem" in row])


def steps_of(run: Run, folder, program: str, recipe: str) -> tuple:
    """(name, figures) of a program."""
    name = f"{program}-{recipe}" if recipe else program
    arguments = [str(BUNDLE / "python"), str(folder), program, *([recipe] if recipe else [])]
    try:
        text = run.python("program_steps.py", *arguments, TEMPOSCOPE_LIBRARIES=str(BUNDLE))
    except Failed as failed:
        reason = str(failed)
        return name, {"left_out" if any(e in reason for e in OF_LIBRARIES) else "problem": reason}
    return name, json.loads(text.splitlines()[-1])
