"""Python runs this file in each process of `temposcope run`, because its folder comes first in
PYTHONPATH. Nothing happens until the program imports torch: then it is recorded."""

import importlib
import importlib.machinery
import importlib.util
import json
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_the_hidden_one() -> None:
    """The sitecustomize of the user or of the system, which this one hides."""
    others = [folder for folder in sys.path if os.path.abspath(folder or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


class _AfterTorch:
    """Finds torch as the other finders do, and follows the program once torch is imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "temposcope":
            return _spec_of_ours()
        if name != "torch":
            return None
        others = (finder for finder in sys.meta_path if finder is not _AfterTorch)
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next(filter(None, found), None)
        if spec is None or spec.loader is None:
            return spec
        run_torch = spec.loader.exec_module

        # A program may look for torch without importing it, as transformers does.
        def run_torch_and_follow(module):
            _require_virtual_gpu()
            run_torch(module)
            sys.meta_path.remove(_AfterTorch)
            _follow()

        spec.loader.exec_module = run_torch_and_follow
        return spec


class _IsLoaded:
    """The loader of the package that is there already."""

    @staticmethod
    def create_module(spec):
        return sys.modules[spec.name]

    @staticmethod
    def exec_module(module):
        pass


def _spec_of_ours():
    """A program that imports temposcope before torch gets the package that records it: a second one
    would be another recorder. None: torch is not there, or it failed to import."""
    try:
        importlib.import_module("torch")
    except ImportError:
        return None
    found = sys.modules.get("temposcope")
    return found and importlib.util.spec_from_loader("temposcope", _IsLoaded, is_package=True)


def _require_virtual_gpu() -> None:
    """Torch would find half of it by LD_LIBRARY_PATH, and abort."""
    gpu = json.loads(os.environ["TEMPOSCOPE_RUN"])["gpu"]
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as libraries:
        if gpu and not any("/libtemposcope_virtual_gpu.so" in line for line in libraries):
            raise SystemExit(
                f"temposcope: the virtual {gpu} is not in this process, because what started it "
                "has taken LD_PRELOAD out of the environment: start Python without that, or leave "
                "out --gpu."
            )


def _load_package() -> None:
    """The package around this file, and nothing else of its folder: the rest may be for another
    environment than the program's."""
    folder = os.path.dirname(_HERE)
    spec = importlib.util.spec_from_file_location(
        "temposcope", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["temposcope"] = package
    spec.loader.exec_module(package)


def _follow() -> None:
    torch = sys.modules["torch"]
    gpu = json.loads(os.environ["TEMPOSCOPE_RUN"])["gpu"]
    if gpu and torch.version.cuda is None:
        raise SystemExit(
            f"temposcope: this torch ({torch.__version__}) has no CUDA, so it cannot run on a "
            f"virtual {gpu}: install torch with CUDA, or leave out --gpu."
        )
    try:
        _load_package()
        from temposcope import _program
    except Exception as error:  # also an error of the dynamic linker
        if type(error).__name__ == "NoLibraries":
            return _follow_by_torch_alone(str(error))
        raise SystemExit(f"temposcope: {error}.") from None
    _program.follow()


def _follow_by_torch_alone(why: str) -> None:
    """The package cannot be imported, but what needs torch alone can."""
    try:
        alone = importlib.import_module("temposcope._torch_alone")
    except Exception:  # a torch that lacks what it needs
        raise SystemExit(f"temposcope: {why}.") from None
    del sys.modules["temposcope"]  # a program that imports it gets the reason
    alone.follow(why)


if os.environ.get("TEMPOSCOPE_RUN"):
    sys.meta_path.insert(0, _AfterTorch)
_run_the_hidden_one()
