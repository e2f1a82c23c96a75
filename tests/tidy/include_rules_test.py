"""Checks every #include line against the rules of docs/dev/architecture.md."""

import graphlib
import os
import re
import unittest

import repository

# The rooms, in the order in which data flows. A row is a folder and the other folders of ours that
# it includes; PLAIN stands for models/config and profiler/trace. A file belongs to the longest
# folder that matches. The tests below check that some file uses each of these edges and that the
# edges form no cycle.
ROOMS = """
kernels:
kernels/reference: kernels

models/config:
models/observer:
models/ops: kernels models/config models/observer
models/ops/cuda: models/ops
models/layers: models/config models/observer models/ops
models/training: models/config models/layers models/observer models/ops

profiler/trace: models/config
profiler/trace/file: PLAIN
profiler/addresses:
profiler/allocator: PLAIN profiler/addresses
profiler/analysis/step: PLAIN
profiler/analysis/ops: PLAIN profiler/analysis/step
profiler/analysis/blocks: profiler/analysis/step profiler/trace
profiler/analysis/ranks: PLAIN profiler/analysis/ops profiler/analysis/step
profiler/analysis/compare: PLAIN profiler/analysis/ranks profiler/analysis/step
profiler/analysis: profiler/analysis/blocks profiler/analysis/ops profiler/analysis/step
profiler/layouts: PLAIN
profiler/planner/data: PLAIN
profiler/planner/step: PLAIN profiler/allocator profiler/analysis/step profiler/planner/data
profiler/planner/placement: PLAIN profiler/allocator profiler/analysis/step
    profiler/planner/data profiler/planner/step
profiler/planner: PLAIN profiler/allocator profiler/analysis/ops profiler/analysis/step
    profiler/planner/data profiler/planner/step
profiler/analysis/advice: PLAIN profiler/allocator profiler/analysis profiler/analysis/step
    profiler/planner/data profiler/planner/placement
profiler/planner/search: PLAIN profiler/planner profiler/planner/data profiler/planner/step
profiler/formats/parts: PLAIN profiler/trace/file
profiler/formats/snapshot: PLAIN profiler/allocator profiler/formats/parts profiler/trace/file
profiler/formats/kineto: PLAIN profiler/formats/parts profiler/trace/file
profiler/formats/chrome: PLAIN profiler/formats/kineto profiler/formats/parts
profiler/formats/join: PLAIN profiler/formats/parts profiler/trace/file
profiler/formats: PLAIN profiler/formats/kineto profiler/formats/parts profiler/formats/snapshot
    profiler/trace/file
profiler/tables: profiler/trace
profiler/view: PLAIN profiler/analysis/blocks profiler/analysis/ops profiler/analysis/step
profiler/view/memory: profiler/analysis profiler/analysis/blocks profiler/analysis/step
    profiler/tables profiler/trace profiler/view
profiler/view/peak: profiler/analysis profiler/analysis/step profiler/tables profiler/trace
    profiler/view profiler/view/memory
profiler/view/kernels: PLAIN profiler/analysis profiler/analysis/ops profiler/analysis/step
    profiler/layouts profiler/planner profiler/tables profiler/view
profiler/view/programs: profiler/analysis profiler/analysis/compare profiler/analysis/step
    profiler/planner profiler/planner/data profiler/tables profiler/trace profiler/view
    profiler/view/memory profiler/view/peak
profiler/view/layers: PLAIN profiler/analysis profiler/analysis/step profiler/tables
    profiler/view profiler/view/kernels profiler/view/peak profiler/view/programs
profiler/view/plan: PLAIN profiler/analysis/step profiler/planner profiler/planner/data
    profiler/planner/search profiler/planner/step profiler/tables profiler/view
profiler/view/selected: profiler/analysis profiler/analysis/blocks profiler/analysis/step
    profiler/tables profiler/trace profiler/view profiler/view/kernels profiler/view/layers
    profiler/view/memory profiler/view/peak
profiler/view/allocator: profiler/allocator profiler/analysis/step profiler/tables
    profiler/trace profiler/view profiler/view/memory
profiler/view/ranks: profiler/analysis/ranks profiler/analysis/step profiler/tables
    profiler/trace profiler/view profiler/view/memory
profiler/view/run:
profiler/view/advice: profiler/analysis/advice profiler/tables profiler/trace
profiler/charts: PLAIN profiler/tables profiler/trace/file profiler/view profiler/view/kernels
    profiler/view/memory profiler/view/programs
profiler/protocol: PLAIN profiler/trace/file
profiler/virtual_gpu: profiler/addresses profiler/protocol
profiler/capture/torch_adapter: PLAIN models/observer
profiler/capture: PLAIN models/observer models/training profiler/capture/torch_adapter
    profiler/layouts profiler/protocol
profiler/capture/values: PLAIN profiler/capture profiler/capture/torch_adapter profiler/protocol
profiler/capture/cuda: PLAIN models/observer models/training profiler/capture
    profiler/capture/torch_adapter
profiler/capture/python: PLAIN models/observer models/training profiler/capture
    profiler/capture/torch_adapter profiler/capture/values profiler/trace/file

app/user: PLAIN profiler/planner/data profiler/protocol profiler/trace/file
app/prediction: PLAIN app/user profiler/planner profiler/planner/data profiler/planner/placement
    profiler/planner/step profiler/protocol profiler/trace/file
app/programs: PLAIN app/prediction app/user profiler/analysis/advice
    profiler/analysis/ranks profiler/analysis/step profiler/planner/data
    profiler/planner/step profiler/protocol profiler/trace/file
app/workspace/jobs: models/config
app/workspace: PLAIN app/prediction app/programs app/user app/workspace/jobs profiler/analysis
    profiler/analysis/advice
    profiler/analysis/compare profiler/analysis/ops profiler/analysis/ranks
    profiler/analysis/step profiler/charts profiler/formats profiler/planner/search
    profiler/protocol profiler/tables profiler/trace/file profiler/view profiler/view/advice
    profiler/view/allocator
    profiler/view/kernels profiler/view/layers profiler/view/memory profiler/view/peak
    profiler/view/plan profiler/view/programs profiler/view/ranks profiler/view/selected
app/widgets: profiler/charts profiler/tables profiler/trace profiler/view
app/panels/parts: PLAIN app/widgets app/workspace profiler/analysis/step profiler/planner/data
    profiler/view profiler/view/layers
app/panels/advice: app/panels/parts app/widgets profiler/trace profiler/view/advice
app/panels/memory: app/panels/parts app/widgets app/workspace app/workspace/jobs profiler/trace
    profiler/view/allocator profiler/view/memory
app/panels/peak: app/panels/parts app/widgets app/workspace profiler/trace profiler/view/advice
    profiler/view/peak
app/panels/layers: app/panels/parts app/widgets app/workspace app/workspace/jobs
    profiler/view/layers
app/panels/kernels: app/panels/parts app/widgets profiler/charts profiler/planner/data
    profiler/trace profiler/view/kernels
app/panels/programs: app/panels/parts app/widgets app/workspace profiler/charts profiler/trace
    profiler/view profiler/view/programs
app/panels/plan: PLAIN app/panels/parts app/widgets profiler/charts profiler/planner/data
    profiler/tables profiler/view profiler/view/plan
app/panels/selected: app/panels/parts app/widgets app/workspace profiler/trace
    profiler/view/selected
app/panels/ranks: app/panels/parts app/widgets profiler/trace profiler/view/ranks
app/panels/run: PLAIN app/panels/parts app/widgets profiler/view/run
app/panels: app/panels/advice app/panels/kernels app/panels/layers app/panels/memory app/panels/peak
    app/panels/plan app/panels/programs app/panels/ranks app/panels/run app/panels/selected
    app/widgets profiler/tables profiler/view/advice profiler/view/allocator profiler/view/kernels
    profiler/view/layers profiler/view/memory profiler/view/peak profiler/view/plan
    profiler/view/programs profiler/view/ranks profiler/view/selected
app/window: PLAIN app/panels app/panels/parts app/user app/widgets app/workspace app/workspace/jobs
    profiler/formats profiler/trace/file
app/commands/console: PLAIN profiler/analysis/step profiler/formats profiler/formats/parts
    profiler/protocol profiler/tables profiler/trace/file
app/commands/options: PLAIN app/commands/console app/user
app/commands/reports: PLAIN app/commands/console app/programs profiler/analysis/blocks
    profiler/analysis/compare profiler/analysis/ops profiler/analysis/ranks
    profiler/analysis/step profiler/charts profiler/planner profiler/tables profiler/trace/file
    profiler/view/kernels profiler/view/peak profiler/view/plan profiler/view/programs
    profiler/view/ranks
app/commands: PLAIN app/commands/console app/commands/options app/programs
    app/commands/reports app/prediction app/user app/window profiler/allocator
    profiler/analysis/advice profiler/analysis/ops profiler/analysis/step profiler/formats
    profiler/formats/chrome
    profiler/formats/join profiler/formats/snapshot profiler/layouts profiler/planner
    profiler/planner/data profiler/planner/search profiler/planner/step profiler/protocol
    profiler/tables profiler/trace/file profiler/view/advice profiler/view/kernels
    profiler/view/plan
app: app/commands app/commands/console app/commands/options profiler/protocol
app/worker: PLAIN profiler/capture profiler/capture/torch_adapter profiler/protocol
    profiler/trace/file
"""
PLAIN = ["models/config", "profiler/trace"]


def may_use_of(table: str) -> dict[str, list[str]]:
    """{folder: the folders that it includes}. A row goes on in indented lines."""
    may_use = {}
    for line in table.strip().splitlines():
        if line and not line.startswith(" "):
            folder, _, line = line.partition(":")
            may_use[folder] = []
        for word in line.split():
            may_use[folder] += PLAIN if word == "PLAIN" else [word]
    return may_use


MAY_USE = may_use_of(ROOMS)
LIBTORCH = [
    "models/observer",
    "models/ops",
    "models/layers",
    "models/training",
]
# Pattern of third-party headers, folders that may include them, and the reason.
OUTSIDE = [
    (
        r"torch/version\.h|torch/csrc/(autograd/(engine|functions|saved_variable)|distributed)|"
        r"torch/csrc/profiler/(combined_traceback|unwind)|"
        r"c10/cuda/CUDACachingAllocator|ATen/cuda/",
        [
            "models/ops/torch_version.cpp",
            "profiler/capture/torch_adapter",
        ],
        "only profiler/capture/torch_adapter calls what differs between versions of torch",
    ),
    (
        r"cupti",
        ["profiler/capture/torch_adapter", "profiler/virtual_gpu"],
        "only profiler/capture/torch_adapter calls what differs between versions of CUPTI",
    ),
    (
        r"c10/cuda/|ATen/cuda/|torch/csrc/cuda",
        [*LIBTORCH, "profiler/capture/cuda", "profiler/capture/torch_adapter"],
        "only the modules that are opened at run time may use the CUDA parts of libtorch",
    ),
    (
        r"torch/|ATen/|c10/|caffe2/",
        [*LIBTORCH, "profiler/capture", "app/worker"],
        "only the worker may use libtorch",
    ),
    (
        r"cu[A-Z]|cublas|cuda|cudnn|cub/|cupti|thrust/|nvtx|nvml|driver_types|vector_types|crt/",
        ["kernels", *LIBTORCH, "profiler/capture/cuda", "profiler/virtual_gpu"],
        "only the kernels, the CUDA modules and the virtual GPU may use CUDA headers",
    ),
    (
        r"imgui_internal\.h",
        [
            "app/widgets/imgui_internals.cpp",
            "app/window/layout.cpp",
        ],
        "imgui_internal.h is not stable, so only app/window's layout.cpp and app/widgets' "
        "imgui_internals.cpp may use it",
    ),
    (
        r"imgui|implot",
        ["app/widgets", "app/panels", "app/window"],
        "only the rooms that draw include Dear ImGui; app/workspace is tested without a window",
    ),
    (r"GLFW/", ["app/window"], "app/window owns the operating system's window"),
    (
        r"CLI/",
        ["app/commands/options/command_line.cpp"],
        "the parser of the command line costs 10 s in each file that includes it",
    ),
    (r"sqlite3\.h", ["profiler/trace"], "the trace file is the only database"),
    (r"cairo|ft2build|freetype", ["profiler/charts", "app"], "only charts and the window may draw"),
    (
        r"httplib",
        ["app/commands/view.cpp"],
        "only the server of the browser page may use the network",
    ),
    (r"hwy/", ["kernels"], "only the kernels may use vector code"),
]
PROJECT = ("app/", "kernels/", "models/", "profiler/", "tests/")
GENERATED = ("embedded/", "generated/")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def folder_of(path: str) -> str | None:
    matching = [folder for folder in MAY_USE if path.startswith(folder + "/")]
    return max(matching, key=len, default=None)


def rule_broken(path: str, quote: str, header: str, exists=lambda header: True) -> str | None:
    """A sentence with the rule that this include breaks in this file, or None."""
    folder = folder_of(path)
    if folder is None:
        return None
    if header.startswith(PROJECT):
        if quote == "<":
            return f'include headers of this repository with quotes: "{header}"'
        target = folder_of(header)
        if target is not None and target != folder and target not in MAY_USE[folder]:
            return (
                f"{folder} may include {', '.join(MAY_USE[folder]) or 'no other folder'}, "
                f"but not {target}"
            )
        return None if exists(header) else f"{header} does not exist"
    if quote == '"' and not header.startswith(GENERATED):
        return f'paths start at the root; third-party headers need <>: "{header}"'
    for pattern, allowed, reason in OUTSIDE:
        if re.match(pattern, header):
            inside = any(path == place or path.startswith(place + "/") for place in allowed)
            return None if inside else f"{reason}; {folder} may not include it"
    return None


def problems_in(path: str, text: str, exists=lambda header: True) -> list[str]:
    problems = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := INCLUDE.match(line):
            if rule := rule_broken(path, match[1], match[2], exists):
                problems.append(f"{path}:{number}: {line.strip()}\n    rule: {rule}")
    return problems


class Repository(unittest.TestCase):
    def test_includes_follow_the_rules(self):
        paths = repository.cpp_files()
        problems = [
            problem
            for path in paths
            for problem in problems_in(
                path,
                repository.read_text(path),
                exists=lambda header: (repository.ROOT / header).is_file(),
            )
        ]
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_every_allowed_edge_is_used_and_there_is_no_cycle(self):
        used = {
            (folder_of(path), folder_of(match[2]))
            for path in repository.cpp_files()
            for line in repository.read_text(path).splitlines()
            if (match := INCLUDE.match(line)) and match[2].startswith(PROJECT)
        }
        allowed = [(room, other) for room, others in MAY_USE.items() for other in others]
        unused = [f"{room} -> {other}" for room, other in allowed if (room, other) not in used]
        self.assertEqual(unused, [], "no file uses these edges of ROOMS")
        order = graphlib.TopologicalSorter(MAY_USE)
        try:
            order.prepare()
        except graphlib.CycleError as cycle:
            self.fail("rooms include each other: " + " -> ".join(cycle.args[1]))

    def test_every_source_lies_in_a_room(self):
        homeless = [
            path
            for path in repository.cpp_files()
            if not path.startswith("tests/") and os.path.dirname(path) not in MAY_USE
        ]
        self.assertEqual(homeless, [], "folders without a row in ROOMS")


class Checks(unittest.TestCase):
    """Tests of the rules themselves."""

    def test_each_of_these_lines_breaks_a_rule(self):
        for path, line in [
            ("profiler/trace/a.cpp", "#include <torch/types.h>"),
            ("profiler/protocol/a.cpp", "#include <ATen/core/Tensor.h>"),
            ("profiler/view/a.h", "#include <imgui.h>"),
            ("profiler/capture/a.cpp", "#include <cupti.h>"),
            ("profiler/capture/cuda/a.cpp", "#include <cupti.h>"),
            ("profiler/capture/a.cpp", "#include <torch/csrc/autograd/engine.h>"),
            ("profiler/capture/torch_adapter/a.cpp", '#include "profiler/capture/recorder.h"'),
            ("profiler/trace/a.cpp", '#include "profiler/analysis/step/peak.h"'),
            ("profiler/view/a.cpp", '#include "app/widgets/theme.h"'),
            ("kernels/a.cpp", '#include "models/config/result.h"'),
            ("models/config/a.cpp", "#include <c10/core/Device.h>"),
            ("app/panels/a.cpp", '#include "profiler/capture/cpu_source.h"'),
            ("app/panels/a.cpp", '#include "models/layers/bert.h"'),
            ("app/main.cpp", "#include <ATen/ATen.h>"),
            ("app/panels/a.cpp", "#include <imgui_internal.h>"),
            ("app/a.cpp", '#include "theme.h"'),
            ("app/a.cpp", "#include <app/theme.h>"),
        ]:
            self.assertEqual(len(problems_in(path, line)), 1, f"{path}: {line}")

    def test_none_of_these_lines_breaks_a_rule(self):
        for path, line in [
            ("profiler/trace/a.cpp", "#include <sqlite3.h>"),
            ("profiler/analysis/step/a.cpp", '#include "models/config/recipe.h"'),
            ("profiler/capture/a.cpp", "#include <ATen/core/Tensor.h>"),
            ("profiler/capture/torch_adapter/a.cpp", "#include <cupti.h>"),
            ("profiler/capture/cuda/a.cpp", "#include <cuda_runtime_api.h>"),
            ("app/worker/worker_main.cpp", '#include "profiler/capture/cpu_source.h"'),
            ("app/widgets/fonts.cpp", '#include "embedded/temposcope_fonts.h"'),
            ("app/panels/a.cpp", "#include <implot.h>"),
        ]:
            self.assertEqual(problems_in(path, line), [], f"{path}: {line}")


if __name__ == "__main__":
    unittest.main()
