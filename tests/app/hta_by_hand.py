"""HolisticTraceAnalysis reads what `temposcope export` writes, and says of it what it says of the
original.

It needs pandas and plotly, so scripts/test leaves it out. By hand, in a virtual environment:
    pip install HolisticTraceAnalysis
    python tests/app/hta_by_hand.py build/bin/temposcope TRACE.json.gz...
TRACE: traces of the PyTorch profiler with kernels. The exit status is 0 when HTA's tables agree.
"""
import collections
import gzip
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

warnings.simplefilter("ignore")
from hta.memory_analysis import MemoryAnalysis  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402


def name_of(kernel):
    """The name "Memcpy DtoH (Device -> Pinned)" without kinds of memory, which our traces lack."""
    return kernel.split(" (")[0] if kernel.startswith("Mem") else kernel


def tables_of(folder):
    """Sums by kernel, and the correlated launches, which need calls, kernels and their ids."""
    analysis = TraceAnalysis(trace_dir=str(folder))
    _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)
    sums = collections.Counter()
    for _, row in kernels.iterrows():
        sums[name_of(row["name"])] += row["sum (us)"]
    rank = min(analysis.t.get_all_traces())
    launches = analysis.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False)[rank]
    return sums, sorted(int(correlation) for correlation in launches["correlation"])


def same_sums(a, b):
    """HTA cuts times off at microseconds, so each kernel may differ by one."""
    return a.keys() == b.keys() and all(
        abs(a[name] - b[name]) <= max(4, a[name] / 50) for name in a
    )


def judge(program, trace):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ("original", "written"):
            (folder / part).mkdir()
        shutil.copy(trace, folder / "original" / pathlib.Path(trace).name)
        export = [program, "export", trace, "-o"]
        subprocess.run(export + [folder / "written" / "a.json", "--to", "chrome"], check=True)
        subprocess.run(export + [folder / "a.raw.json.gz", "--to", "hta"], check=True)
        original, written = tables_of(folder / "original"), tables_of(folder / "written")
        with gzip.open(folder / "a.raw.json.gz") as file:
            has_memory = len(file.read()) > 10
        if has_memory:
            times, sizes = MemoryAnalysis(str(folder / "a.raw.json.gz"))._process_raw_events()
            print(f"memory timeline: {len(times)} times, highest {max(map(sum, sizes)):,} B")
    print(f"{trace}: {len(written[0])} kernels, {len(written[1])} launches")
    return same_sums(original[0], written[0]) and original[1] == written[1]


if __name__ == "__main__":
    agree = [judge(sys.argv[1], trace) for trace in sys.argv[2:]]
    print("agree" if all(agree) else "differ", agree)
    sys.exit(0 if all(agree) else 1)
