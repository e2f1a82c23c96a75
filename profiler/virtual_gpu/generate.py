#!/usr/bin/env python3
"""Writes the parts of the virtual GPU that follow from the versions of torch and from CUDA.

    generate.py collect TORCH_LIB_DIR...
    generate.py write NVIDIA_DIR CUDA_INCLUDE_DIR OUT_DIR

collect adds to torch_symbols.txt, which lies beside this file, what these copies of torch ask of
CUDA's libraries, one a line:
    function NAME
    facade LIBRARY [SYMBOL_VERSION]
So one virtual GPU serves all versions of torch, and is built without any. A new version of torch
adds its lines (docs/dev/new_torch.md).

NVIDIA_DIR has the packages of CUDA, whose libraries tell what else they export. OUT_DIR gets
    missing_functions.cpp   each function of CUDA's libraries that torch links or that they export
                            (other libraries link these), and each of the driver's and NVML's,
                            which are asked for by name: a weak function that refuses with its
                            name; those written by hand take its place
    library_functions.cpp   those of cuSOLVER, cuFFT, cuSPARSE and cuBLAS: weak functions, too,
                            that hand their arguments to library_call.h
    nvrtc.c                 NVRTC's functions, for machines without it: they refuse
    callback_names.inc      CUPTI's names of the API functions
    facades/NAME.map        per library of CUDA's: the symbol versions that torch asks of it
"""
import pathlib
import re
import subprocess
import sys

SYMBOLS = pathlib.Path(__file__).with_name("torch_symbols.txt")
LIBRARIES = [
    "libc10_cuda.so",
    "libcaffe2_nvrtc.so",
    "libtorch_cpu.so",
    "libtorch_cuda.so",
    "libtorch_cuda_linalg.so",
    "libtorch_nvshmem.so",
    "libtorch_python.so",
]
FUNCTION = re.compile(
    r"^(__cuda|cuda|cublas|cudnn|cufft|cufile|cuFile|cupti|curand|cusolver|cusparse"
    r"|nccl|nvrtc|nvshmem|cu[A-Z])"
)
SONAME = re.compile(
    r"^lib(cuda|cudart|cublas|cublasLt|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|cusparseLt"
    r"|nccl|nvrtc|nvshmem_host)\.so\.\d+$"
)
# The driver and NVML are opened at run time, under these names.
OPENED = ["libcuda.so.1", "libnvidia-ml.so.1"]
# NVRTC compiles without a GPU: a real one goes first. NVRTC_ERROR_INTERNAL_ERROR is 11.
WITHOUT_NVRTC = (
    "The simulated GPU of Temposcope finds no NVRTC, which compiles what this op runs: install "
    "the package nvidia-cuda-nvrtc for the CUDA of this torch."
)
# Of libraries whose functions are alike, and many.
MATHEMATICS = ("cusolverDn.h", "cufft.h", "cufftXt.h", "cusparse.h", "cublas_v2.h")
DECLARES = {"cublas_v2.h": "cublas_api.h"}  # the others declare their own functions
PROTOTYPE = re.compile(
    r"(cusolverStatus_t|cufftResult|cusparseStatus_t|cublasStatus_t)\s+"
    r"(?:CUSOLVERAPI|CUFFTAPI|CUSPARSEAPI|CUBLASWINAPI)\s+(\w+)\(([^;]*)\)\s*;"
)
# Their results may lie on the host.
OF_HOST = re.compile(r"^cublas(\w*rot|\w*Async$|.*(asum|nrm2|amax|amin|dot))")
# Status "not supported" of the libraries whose functions other libraries than torch's call.
NOT_SUPPORTED = {
    "cublas": 15,
    "cudnn": 3000,
    "cufft": 16,
    "curand": 201,  # a failed launch: cuRAND has no such status
    "cusolver": 9,
    "cusparse": 10,
    "cupti": 27,
    "nccl": 3,  # an internal error: NCCL has no such status
}
# Ends and settings: nothing depends on what they return.
HARMLESS = re.compile(
    r"(Destroy\w*|^cudaGraphDebugDotPrint)$"
)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def undefined_functions(library):
    for line in output_of("nm", "-D", "--undefined-only", str(library)).splitlines():
        name = line.split()[-1].split("@")[0]
        if FUNCTION.match(name):
            yield name


def exported_functions(library):
    """Those of one of CUDA's libraries."""
    for line in output_of("nm", "-D", "--defined-only", str(library)).splitlines():
        kind, name = line.split()[-2:]
        name = name.split("@")[0]
        if kind == "T" and FUNCTION.match(name):
            yield name


def libraries_of_cuda(nvidia):
    """Of those that torch's packages bring. The real NVSHMEM stays: torch opens it by its path, and
    its own functions must find each other."""
    for library in sorted(nvidia.glob("*/lib/*.so.*")):
        if SONAME.match(library.name) and not re.search("nvshmem|nvrtc", library.name):
            yield library


def declared_functions(header, pattern):
    """The functions of a header, under the names that its macros give them: cuMemAlloc_v2."""
    text = header.read_text()
    renamed = dict(re.findall(r"^\s*#\s*define\s+(\w+)\s+(\w+_v\d+)\s*$", text, re.MULTILINE))
    for name in re.findall(pattern, text):
        yield name
        if name in renamed:
            yield renamed[name]


def needed_versions(library):
    """(library of CUDA's, its symbol version) as the dynamic linker will check them."""
    current = ""
    for line in output_of("readelf", "--version-info", "--wide", str(library)).splitlines():
        if found := re.search(r"File: (\S+)", line):
            current = found[1]
        elif (found := re.search(r"Name: (\S+)  Flags", line)) and SONAME.match(current):
            yield current, found[1]
    for line in output_of("readelf", "--dynamic", "--wide", str(library)).splitlines():
        found = re.search(r"\(NEEDED\).*\[(.+)\]", line)
        if found and SONAME.match(found[1]):
            yield found[1], None


def callback_names(header, enumerator):
    text = header.read_text()
    for name, number in re.findall(enumerator + r"_(\w+)\s*=\s*(\d+)", text):
        if name not in ("INVALID", "SIZE", "FORCE_INT"):
            yield int(number), name


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def refusal(name, is_of_torch):
    if HARMLESS.search(name):
        return "return 0;"
    if name.startswith("nvml"):
        return "return 3;  // NVML_ERROR_NOT_SUPPORTED, which its clients expect"
    if re.match(r"cuda|cu[A-Z]", name):
        return f'return virtual_gpu_refuse_by_error("{name}");'
    if is_of_torch:
        return f'virtual_gpu_refuse("{name}");'
    status = next((code for start, code in NOT_SUPPORTED.items() if name.startswith(start)), 1)
    return f'return virtual_gpu_refuse_by_status("{name}", {status});'


def prototypes(header):
    """(type of the result, name, parameters) of each function."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    for result, name, parameters in PROTOTYPE.findall(text):
        yield result, name, [" ".join(one.split()) for one in parameters.split(",")]


def library_functions(names, cuda_include):
    """Lines of C++ by function."""
    functions = {}
    for header in MATHEMATICS:
        declared = cuda_include / DECLARES.get(header, header)
        for result, name, parameters in prototypes(declared):
            if name not in names or OF_HOST.search(name):
                continue
            own = [re.search(r"(\w+)(\[\])?$", parameter)[1] for parameter in parameters]
            arguments = ", ".join(f'{{"{one}", {one}}}' for one in own)
            functions[name] = [
                'extern "C" __attribute__((weak, visibility("default")))',
                f"{result} {name}({', '.join(parameters)}) {{",
                f"    const Argument arguments[] = {{{arguments}}};",
                f'    profiler::virtual_gpu::call_library("{name}", arguments);',
                f"    return static_cast<{result}>(0);",
                "}",
            ]
    return functions


def missing_functions(names, of_torch):
    hidden, weak = (f'__attribute__(({name}visibility("{kind}")))'
                    for name, kind in (("", "hidden"), ("weak, ", "default")))
    yield "// Generated by generate.py from torch_symbols.txt and CUDA's libraries."
    yield 'extern "C" {'
    yield '__attribute__((visibility("hidden"), noreturn)) void virtual_gpu_refuse(const char*);'
    yield f"{hidden} int virtual_gpu_refuse_by_error(const char*);"
    yield f"{hidden} int virtual_gpu_refuse_by_status(const char*, int);"
    for name in names:
        yield f"{weak} int {name}() {{\n    {refusal(name, name in of_torch)}\n}}"
    yield "}"


def nvrtc(names):
    yield "/* Generated by generate.py from torch_symbols.txt. */"
    yield f'const char* nvrtcGetErrorString(int result) {{ return "{WITHOUT_NVRTC}"; }}'
    for name in sorted(names - {"nvrtcGetErrorString"}):
        yield f"int {name}() {{ return 11; }}"


def facade_maps(versions):
    """{the name of a library: lines of its version script}"""
    for soname, names in versions.items():
        # Its functions are the virtual GPU's; NVRTC's are its own.
        content = "global: *;" if "nvrtc" in soname else ""
        yield soname, [f"{version} {{ {content} }};" for version in sorted(names)] or ["{};"]


def collect(*folders):
    lines = set(SYMBOLS.read_text().splitlines() if SYMBOLS.is_file() else ())
    lines.update(f"facade {name}" for name in OPENED)
    for folder in map(pathlib.Path, folders):
        libraries = [folder / name for name in LIBRARIES if (folder / name).exists()]
        if not libraries:
            sys.exit(f"generate.py: {folder} has no library of torch; name the folder torch/lib")
        for library in libraries:
            lines.update(f"function {name}" for name in undefined_functions(library))
            for soname, version in needed_versions(library):
                lines.add(f"facade {soname} {version or ''}".rstrip())
    write(SYMBOLS, sorted(lines))


def write_all(nvidia, cuda_include, out):
    nvidia, cuda_include, out = map(pathlib.Path, (nvidia, cuda_include, out))
    rows = [line.split() for line in SYMBOLS.read_text().splitlines()]
    of_torch = {row[1] for row in rows if row[0] == "function"}
    of_nvrtc = {name for name in of_torch if name.startswith("nvrtc")}
    of_torch -= of_nvrtc
    names = of_torch.copy()
    for library in libraries_of_cuda(nvidia):
        names.update(exported_functions(library))
    names.update(declared_functions(cuda_include / "cuda.h", r"CUresult CUDAAPI (cu\w+)\("))
    names.update(declared_functions(cuda_include / "nvml.h", r"nvmlReturn_t DECLDIR (nvml\w+)\("))
    functions = library_functions(of_torch, cuda_include)
    write(out / "library_functions.cpp", [
        "// Generated by generate.py from torch_symbols.txt and CUDA's headers.",
        "#include <cuComplex.h>",
        *(f"#include <{header}>" for header in MATHEMATICS),
        '#include "profiler/virtual_gpu/library_call.h"',
        "using profiler::virtual_gpu::Argument;",
        *(line for lines in functions.values() for line in lines),
    ])
    missing = sorted(names - functions.keys())
    write(out / "missing_functions.cpp", missing_functions(missing, of_torch))
    write(out / "nvrtc.c", nvrtc(of_nvrtc))

    write(out / "callback_names.inc", [
        f'{{{domain}, {number}, "{name}"}},'
        for domain, header, enumerator in (
            ("CUPTI_CB_DOMAIN_RUNTIME_API", "cupti_runtime_cbid.h", "CUPTI_RUNTIME_TRACE_CBID"),
            ("CUPTI_CB_DOMAIN_DRIVER_API", "cupti_driver_cbid.h", "CUPTI_DRIVER_TRACE_CBID"),
        )
        for number, name in sorted(callback_names(cuda_include / header, enumerator))
    ])

    versions = {}
    for row in rows:
        if row[0] == "facade":
            versions.setdefault(row[1], set()).update(row[2:])
    for soname, lines in facade_maps(versions):
        write(out / "facades" / f"{soname}.map", lines)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "collect":
        collect(*sys.argv[2:])
    elif len(sys.argv) == 5 and sys.argv[1] == "write":
        write_all(*sys.argv[2:])
    else:
        sys.exit(__doc__)
