#!python
"""The command `temposcope` of an installed package: its program, and the worker for the torch of
this environment."""

import importlib.util
import os
import pathlib
import sys


def package_folder() -> pathlib.Path:
    """Without importing the package, which imports torch and takes seconds."""
    spec = importlib.util.find_spec("temposcope")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("temposcope: the package is not installed here: run pip install temposcope.")
    return pathlib.Path(spec.submodule_search_locations[0])


def choose_worker(package: pathlib.Path) -> dict[str, str]:
    """What tells the program its worker, or why it has none: views and reports need none."""
    spec = importlib.util.spec_from_file_location("_torch_folders", package / "_torch_folders.py")
    torch_folders = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(torch_folders)
    torch = torch_folders.find_torch()
    if torch is None:
        return {"TEMPOSCOPE_NO_WORKER": "torch is not installed here: run pip install torch"}
    try:
        worker = torch_folders.folder_for(torch, package / "bin") / "temposcope-worker"
    except ImportError as error:
        return {"TEMPOSCOPE_NO_WORKER": str(error)}
    # torch need not lie beside the package.
    return {"TEMPOSCOPE_TORCH_FOLDER": str(torch.folder), "TEMPOSCOPE_WORKER": str(worker)}


package = package_folder()
program = package / "bin" / "temposcope"
for name, value in choose_worker(package).items():
    os.environ.setdefault(name, value)
os.environ.setdefault("TEMPOSCOPE_PYTHON", sys.executable)  # runs built-in models on many GPUs
os.execv(program, [str(program), *sys.argv[1:]])
