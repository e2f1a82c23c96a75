"""Packs the files that gpu-check needs on a machine with a GPU, where nothing is built."""

import json
import lzma
import pathlib
import re
import shutil
import subprocess

import gpu_predictions

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT_BYTES = 50 << 20  # the machine takes 64 MiB, with the working tree
# Built file -> its name in the bundle.
FILES = {
    "temposcope-worker": "temposcope-worker",
    "libtempo_ops.so": "libtempo_ops.so",
    "libtempo_kernels_cuda.so": "libtempo_kernels_cuda.so",
    "libtempo_ops_cuda.so": "libtempo_ops_cuda.so",
    "libtemposcope_cuda.so": "libtemposcope_cuda.so",
    "libtemposcope_python.so": "libtemposcope_python.so",
    "tests/cuda_kernels_test": "cuda_kernels_test",
    "step_bench": "step_bench",
}
PACKAGE = "python"  # the folder of the Python package temposcope, at both places
SCRIPTS = [HERE / "gpu-check", *sorted(HERE.glob("*.py")),
           ROOT / "tests" / "models" / "ops" / "ops_test.py"]
# The libraries that a built file may need: of glibc and g++, of torch and CUDA, and of the bundle.
SYSTEM = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
TORCH = {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so", "libcudart.so.13",
         "libgomp.so.1"}
# Small libraries that are copied from the building system, because another system may lack them.
BUNDLED = re.compile(r"lib(tempo_(ops|kernels_cuda)\.so|(fmt|hwy|sqlite3)\.so\.\d+)$")


def needed_libraries(path) -> set:
    listing = subprocess.run(
        ["readelf", "-d", str(path)], check=True, capture_output=True, text=True
    ).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", listing))


def unexpected_libraries(path) -> set:
    return {name for name in needed_libraries(path) - SYSTEM - TORCH if not BUNDLED.fullmatch(name)}


def find_library(name: str, user) -> pathlib.Path:
    """The path at which the loader finds library `name` for the program `user`."""
    listing = subprocess.run(["ldd", str(user)], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"^\s*{re.escape(name)} => (\S+)", listing, re.MULTILINE)
    if not found:
        raise SystemExit(f"gpu-check: {user} needs {name}, but the loader does not find it")
    return pathlib.Path(found[1])


def compress(path: pathlib.Path) -> None:
    """Puts NAME.xz in the place of NAME: all built files together shrink from 57 MiB to 12."""
    path.with_name(f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes(), preset=1))
    path.unlink()


def unpack(folder: pathlib.Path) -> None:
    """Undoes compress() for all files of the bundle, once."""
    for packed in sorted(folder.glob("*.xz")):
        path = packed.with_suffix("")
        part = path.with_name(f"{path.name}.part")
        try:
            part.write_bytes(lzma.decompress(packed.read_bytes()))
            part.chmod(0o755)
            part.rename(path)
            packed.unlink()
        except (OSError, lzma.LZMAError) as error:
            raise SystemExit(f"gpu-check: {packed} cannot be unpacked: {error}") from error


def pack(build: pathlib.Path, target: pathlib.Path) -> int:
    """Fills `target` and returns its size in bytes. Exits with a sentence if a file is missing."""
    target.mkdir(parents=True, exist_ok=True)
    for source, name in FILES.items():
        path = build / "bin" / source
        if not path.exists():
            raise SystemExit(f"gpu-check: {path} is not built; run scripts/build --tests")
        if more := unexpected_libraries(path):
            raise SystemExit(
                f"gpu-check: {path} needs libraries that the bundle lacks: "
                f"{', '.join(sorted(more))}"
            )
        shutil.copy2(path, target / name)
        subprocess.run(["strip", "--strip-unneeded", str(target / name)], check=True)
    for source in FILES:
        path = build / "bin" / source
        for name in needed_libraries(path) - SYSTEM - TORCH - set(FILES):
            shutil.copy2(find_library(name, path), target / name)
    for script in SCRIPTS:
        shutil.copy2(script, target)
    shutil.copytree(
        build / "bin" / PACKAGE, target / PACKAGE, dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    program = build / "bin" / "temposcope"
    if not program.exists():
        raise SystemExit(f"gpu-check: {program}, which predicts, is not built; run scripts/build")
    catalogue = json.loads((ROOT / "assets" / "gpus.json").read_text())
    predictions = gpu_predictions.predict(program, catalogue)
    (target / gpu_predictions.FILE).write_text(json.dumps(predictions, indent=1) + "\n")
    for name in FILES.values():
        compress(target / name)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    if size > LIMIT_BYTES:
        raise SystemExit(
            f"gpu-check: the bundle has {size >> 20} MiB; at most {LIMIT_BYTES >> 20} are allowed"
        )
    return size
