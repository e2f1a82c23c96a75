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
        return chosen(no_worker="torch is not installed here: run pip install torch")
    try:
        worker = torch_folders.folder_for(torch, package / "bin") / "temposcope-worker"
    except ImportError as error:
        return chosen(no_worker=str(error))
    return chosen(own_worker=str(worker), torch_folder=str(torch.folder))


def chosen(no_worker: str = "", own_worker: str = "", torch_folder: str = "") -> dict[str, str]:
    return {
        "TEMPOSCOPE_NO_WORKER": no_worker,
        "TEMPOSCOPE_OWN_WORKER": own_worker,
        "TEMPOSCOPE_TORCH_FOLDER": torch_folder,  # it need not lie beside the package
    }


package = package_folder()
program = package / "bin" / "temposcope"
os.environ |= choose_worker(package)  # not what the command of another environment has chosen
os.environ.setdefault("TEMPOSCOPE_PYTHON", sys.executable)  # runs built-in models on many GPUs
os.execv(program, [str(program), *sys.argv[1:]])
