"""Runs on a virtual GPU: prints, as JSON, each op of mathematics that failed, with its error."""

import json
import sys

import torch

DEVICE = torch.device("cuda")
#: Ops whose kernels torch compiles while the program runs (NVRTC).
COMPILED = """erfinv digamma lgamma exp2 erfc i0 sinc special.entr special.log_ndtr special.ndtri
special.i0e special.i1 special.erfcx special.bessel_j0 prod""".split()
#: Of cuSOLVER and cuBLAS.
OF_MATRICES = """inv det slogdet svd svdvals eigh eigvalsh eig eigvals qr cholesky pinv matrix_rank
lu_factor ldl_factor""".split()


def named(name):
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    return function


def cases():
    x = torch.rand(8, device=DEVICE)
    for name in COMPILED:
        yield name, lambda name=name: named(name)(x)
    yield "trunc_normal_", lambda: torch.nn.init.trunc_normal_(torch.empty(8, device=DEVICE))
    yield "gcd", lambda: torch.gcd(x.int(), x.int())
    z = torch.view_as_complex(torch.rand(8, 2, device=DEVICE))
    for name in ("abs", "sqrt", "exp", "sigmoid", "prod", "sum"):
        yield f"complex {name}", lambda name=name: getattr(z, name)()
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        vector = torch.ones(8, device=DEVICE, dtype=dtype)
        yield f"dot {dtype}", lambda v=vector: torch.dot(v, v)
        yield f"vdot {dtype}", lambda v=vector: torch.vdot(v, v)
    for dtype in (torch.float32, torch.float64, torch.complex64):
        for shape in ((8, 8), (4, 8, 8)):
            matrices = torch.eye(8, device=DEVICE, dtype=dtype).expand(shape).contiguous()
            for name in OF_MATRICES:
                yield (f"{name} {shape} {dtype}",
                       lambda name=name, m=matrices: named(f"linalg.{name}")(m))
            yield "solve", lambda m=matrices: torch.linalg.solve(m, m)
            yield "lstsq", lambda m=matrices: torch.linalg.lstsq(m, m)
            yield "cholesky_solve", lambda m=matrices: torch.cholesky_solve(m, m)
            yield "triangular", lambda m=matrices: torch.linalg.solve_triangular(m, m, upper=True)
    yield "orthogonal_", lambda: torch.nn.init.orthogonal_(torch.empty(8, 8, device=DEVICE))
    signal = torch.rand(4, 100, 100, device=DEVICE)
    for name in ("fft", "ifft", "fft2", "fftn", "rfft", "irfft", "rfft2", "hfft"):
        yield name, lambda name=name: named(f"fft.{name}")(signal)
    entries = torch.eye(8, device=DEVICE).to_sparse()
    rows = torch.eye(8, device=DEVICE).to_sparse_csr()
    dense = torch.ones(8, 3, device=DEVICE)
    yield "sparse by dense", lambda: entries @ dense
    yield "rows by dense", lambda: rows @ dense
    yield "rows by vector", lambda: rows @ dense[:, 0]
    yield "sparse by sparse", lambda: entries @ entries
    yield "rows plus rows", lambda: rows + rows


def workspace_of_fft() -> int:
    """What a transform takes beside its input and its output."""
    signal = torch.zeros(64, 4096, dtype=torch.complex64, device=DEVICE)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.fft.fft(signal)
    return torch.cuda.max_memory_allocated() - before - signal.nbytes


def main() -> None:
    failed = {}
    for name, run in cases():
        try:
            run()
        except Exception as error:  # whatever torch makes of it
            failed[name] = f"{type(error).__name__}: {error}"
    json.dump({"failed": failed, "workspace_of_fft": workspace_of_fft()}, sys.stdout)


if __name__ == "__main__":
    main()
