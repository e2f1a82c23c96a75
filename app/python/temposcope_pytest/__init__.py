"""A marker of pytest: the memory that a test may take on a GPU which need not be there.

    @pytest.mark.gpu_memory(limit="10 GiB", gpu="a100-40gb")
    def test_a_step_fits(): ...

The test runs in a pytest of its own, on a virtual GPU (docs/ci.md). This is no part of the package
`temposcope`, which imports torch: pytest imports its plugins in every session.
"""

import json
import os
import pathlib
import re
import sys
import tempfile

import pytest

_CHILD = "TEMPOSCOPE_GPU_MEMORY"  # in a pytest of its own: the file that takes what it tells
_MOST_LINES = 3  # of code that a failure names
_BINARY = {f"{prefix}ib": 1 << 10 * power for power, prefix in enumerate("kmgt", start=1)}
_DECIMAL = {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", start=1)}
_UNITS = {"": 1, "b": 1, **_BINARY, **_DECIMAL}
_LONGEST_NAME = 200  # of a trace


def pytest_addoption(parser):
    parser.getgroup("temposcope").addoption(
        "--gpu-memory-traces",
        metavar="FOLDER",
        help="where the traces of tests marked with gpu_memory go (a temporary folder)",
    )


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "gpu_memory(limit=None, gpu='a100-40gb'): runs the test on this simulated GPU. It fails "
        "if it allocates more than the limit, such as '10 GiB', or if memory runs out",
    )
    if file := os.environ.get(_CHILD):
        config.pluginmanager.register(_Child(pathlib.Path(file)))


@pytest.hookimpl(trylast=True)  # what -k and -m leave
def pytest_collection_modifyitems(items):
    if _CHILD in os.environ:
        return
    for index, item in enumerate(items):
        if isinstance(item, pytest.Function) and item.get_closest_marker("gpu_memory"):
            items[index] = _OnVirtualGpu.of(item)


class _Child:
    """Tells what became of the one test of this session."""

    def __init__(self, file: pathlib.Path):
        self._file = file
        self._told = {"outcome": None, "text": ""}

    def pytest_runtest_logreport(self, report):
        if self._told["outcome"] in (None, "passed"):
            is_skip = isinstance(report.longrepr, tuple)  # (file, line, reason)
            text = report.longrepr[2] if is_skip else report.longreprtext
            self._told = {"outcome": report.outcome, "text": text}

    def pytest_sessionfinish(self):
        torch = sys.modules.get("torch")
        peak_bytes = torch.cuda.max_memory_allocated() if torch else 0
        self._file.write_text(json.dumps(self._told | {"peak_allocated_bytes": peak_bytes}))


class _OnVirtualGpu(pytest.Item):
    """A test that runs elsewhere. Here it has no fixtures: they are of the process that has the
    GPU."""

    @classmethod
    def of(cls, item: pytest.Function) -> "_OnVirtualGpu":
        made = cls.from_parent(item.parent, name=item.name)
        made.own_markers = item.own_markers
        made.keywords.update(item.keywords)
        made.obj = item.obj  # conditions of skipif and xfail are evaluated in its module
        made._place = item.reportinfo()
        return made

    def reportinfo(self):
        return self._place

    def runtest(self):
        from temposcope._command import format_bytes  # imports torch, as such a test does

        marker = self.get_closest_marker("gpu_memory")
        limit_bytes, gpu = _terms(*marker.args, **marker.kwargs)
        trace = self._trace()
        self.user_properties.append(("gpu_memory_trace", str(trace)))
        self.add_report_section("call", "trace", str(trace))
        told = self._run(gpu, trace)
        peak_bytes = told["peak_allocated_bytes"]
        if told["outcome"] == "skipped":
            pytest.skip(told["text"].removeprefix("Skipped: "))
        if told["outcome"] != "passed":
            ran_out = "OutOfMemoryError" in told["text"]
            why = f"Memory of {gpu} ran out{_largest(trace)}.\n" if ran_out else ""
            pytest.fail(why + told["text"], pytrace=False)
        if limit_bytes is not None and peak_bytes > limit_bytes:
            pytest.fail(
                f"{self.name} allocates {format_bytes(peak_bytes)} on {gpu}, and its limit is "
                f"{format_bytes(limit_bytes)}{_largest(trace)}.",
                pytrace=False,
            )

    def _trace(self) -> pathlib.Path:
        config = self.config
        folder = config.getoption("--gpu-memory-traces")
        if folder is None:  # of the session, kept so that a failure can be looked at
            folder = tempfile.mkdtemp(prefix="temposcope-")
            config.option.gpu_memory_traces = folder
        folder = pathlib.Path(config.invocation_params.dir, folder)
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]+", "-", self.nodeid)
        return folder / f"{name[-_LONGEST_NAME:]}.tscope"

    def _run(self, gpu: str, trace: pathlib.Path) -> dict:
        from temposcope._command import temposcope

        config = self.config
        arguments = [f"--rootdir={config.rootpath}", "-p", __name__, "-p", "no:cacheprovider"]
        arguments += ["--runxfail"]  # this process knows what it expects
        arguments += ["-c", config.inipath] if config.inipath else []
        arguments += ["-n0"] if config.pluginmanager.hasplugin("xdist") else []
        command = [sys.executable, "-m", "pytest", *arguments, f"{config.rootpath}/{self.nodeid}"]
        options = ["--gpu", gpu, "--skip", "0", "--stacks", "-o", trace, "--overwrite", "--json"]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "told.json")
            ran = temposcope(
                "run", *options, "--", *command,
                variables={_CHILD: str(file)}, cwd=config.invocation_params.dir,
            )  # fmt: skip
            told = json.loads(file.read_text()) if file.exists() else {"outcome": None}
        if told["outcome"] is None:
            pytest.fail(f"{self.name} did not run on {gpu}:\n{ran.stderr}", pytrace=False)
        return told


def _terms(limit: str | int | None = None, gpu: str = "a100-40gb") -> tuple[int | None, str]:
    """The arguments of the marker, with the limit in bytes."""
    if limit is None or isinstance(limit, int):
        return limit, gpu
    size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(\w*)\s*", limit)
    if size is None or size[2].lower() not in _UNITS:
        raise ValueError(f"gpu_memory: limit is {limit!r}: give a size such as '10 GiB'")
    return int(float(size[1]) * _UNITS[size[2].lower()]), gpu


def _largest(trace: pathlib.Path) -> str:
    """"; the most is of model.py:12 forward (3.20 GiB)", or nothing where no step was recorded."""
    from temposcope._command import format_bytes, temposcope

    told = temposcope("info", trace, "--peak", "--by", "line", "--json")
    if told.returncode != 0:
        return ""
    rows = sorted(json.loads(told.stdout)["rows"], key=lambda row: -row["size_bytes"])
    lines = [f"{row['name']} ({format_bytes(row['size_bytes'])})" for row in rows[:_MOST_LINES]]
    return f"; the most is of {', '.join(lines)}" if lines else ""
