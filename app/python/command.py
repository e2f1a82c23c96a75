#!python
"""The command `temposcope` of an installed package: its program, with the torch of this
environment."""

import importlib.metadata
import importlib.util
import os
import pathlib
import sys


def folder_of(package: str) -> pathlib.Path:
    """Without importing it, which takes seconds for torch."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"temposcope: {package} is not installed here: run pip install {package}.")
    return pathlib.Path(spec.submodule_search_locations[0])


def check_torch() -> None:
    """The compiled parts run with one version, which the package names as its requirement."""
    requirements = importlib.metadata.requires("temposcope")
    requirement = next(one for one in requirements if one.startswith("torch"))
    version = requirement.removeprefix("torch==").removesuffix(".*")
    installed = importlib.metadata.version("torch")
    if not installed.startswith(version + "."):
        sys.exit(
            f"temposcope: this temposcope is built for torch {version}, and torch {installed} is "
            f"installed: run pip install 'torch=={version}.*', or build Temposcope with your torch."
        )


torch = folder_of("torch")
check_torch()
program = folder_of("temposcope") / "bin" / "temposcope"
os.environ["TEMPOSCOPE_TORCH_FOLDER"] = str(torch)  # it need not lie beside the package
os.environ.setdefault("TEMPOSCOPE_PYTHON", sys.executable)  # runs built-in models on many GPUs
os.execv(program, [str(program), *sys.argv[1:]])
