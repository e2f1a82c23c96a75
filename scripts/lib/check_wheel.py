#!/usr/bin/env python3
"""Ends with a sentence for each program or library in a wheel that would not start on the machines
for which the wheel's name says it is.

    check_wheel.py WHEEL

What it needs must be in the wheel, in torch's packages or in every Linux system. Its symbols may
be as new as the glibc of the name, and it may look for libraries only beside itself.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SYSTEM = re.compile(
    r"(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so\.\d+"
)
TORCH = re.compile(r"lib(torch|c10|gomp|cu|nv|nccl)")


def version(text: str) -> tuple:
    return tuple(int(part) for part in text.split("."))


def tagged_glibc(wheel: pathlib.Path) -> str:
    """manylinux_2_36_x86_64: 2.36"""
    found = re.search(r"-manylinux_(\d+)_(\d+)_", wheel.name)
    if not found:
        sys.exit(f"{wheel.name} does not name the glibc that it needs.")
    return f"{found[1]}.{found[2]}"


def programs(folder: pathlib.Path) -> list:
    """Files of machine code."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path for path in files if path.open("rb").read(4) == b"\x7fELF")


def objdump(option: str, path: pathlib.Path) -> str:
    return subprocess.run(
        ["objdump", option, path], capture_output=True, text=True, check=True
    ).stdout


def newest(library: str, symbols: str) -> str:
    """The newest version of a library's symbols in a table: GLIBC_2.34 is 2.34."""
    return max(re.findall(rf"\b{library}_([\d.]+\d)", symbols), key=version, default="0")


def problems(path: pathlib.Path, present: set, glibc: str) -> list:
    said = []
    headers = objdump("-p", path)
    for needed in re.findall(r"NEEDED\s+(\S+)", headers):
        if needed not in present and not SYSTEM.fullmatch(needed) and not TORCH.match(needed):
            said.append(f"{path.name} needs {needed}, which the wheel lacks.")
    for folders in re.findall(r"(?:RPATH|RUNPATH)\s+(\S+)", headers):
        foreign = [one for one in folders.split(":") if one and not one.startswith("$ORIGIN")]
        said += [f"{path.name} looks for libraries in {one}." for one in foreign]
    needs = newest("GLIBC", objdump("-T", path))
    if version(needs) > version(glibc):
        said.append(f"{path.name} needs glibc {needs}, and the wheel's name says {glibc}.")
    return said


def main() -> None:
    wheel = pathlib.Path(sys.argv[1])
    glibc = tagged_glibc(wheel)
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        found = programs(pathlib.Path(folder))
        present = {path.name for path in found}
        wrong = [one for path in found for one in problems(path, present, glibc)]
        symbols = "".join(objdump("-T", path) for path in found)
    if wrong or not found:
        sys.exit("\n".join(wrong) or f"{wheel.name} holds no programs.")
    print(
        f"{len(found)} programs and libraries need glibc {newest('GLIBC', symbols)}, libstdc++ "
        f"with GLIBCXX_{newest('GLIBCXX', symbols)} and torch's packages; the wheel has the rest."
    )


if __name__ == "__main__":
    main()
