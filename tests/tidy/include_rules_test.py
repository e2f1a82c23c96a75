"""Checks every #include line against the rules of docs/architecture.md: who may include whom."""

import graphlib
import os
import re
import unittest

import repository

# The rooms, in the order in which data flows: folder -> other folders of ours that it includes. A
# file belongs to the longest folder that matches. The tests below check that some file uses each of
# these edges and that the edges form no cycle.
PLAIN = ["models/config", "profiler/trace"]
MAY_USE = {
    "kernels": [],
    "models/config": [],
    "models/observer": [],
    "models/ops": ["kernels", "models/config", "models/observer"],
    "models/ops/cuda": ["models/ops"],
    "models/layers": ["models/config", "models/observer", "models/ops"],
    "models/training": [
        "models/config",
        "models/layers",
        "models/observer",
        "models/ops",
    ],
    "profiler/trace": ["models/config"],
    "profiler/addresses": [],
    "profiler/allocator": [*PLAIN, "profiler/addresses"],
    "profiler/analysis": PLAIN,
    "profiler/layouts": PLAIN,
    "profiler/planner/data": PLAIN,
    "profiler/planner/step": [
        *PLAIN,
        "profiler/allocator",
        "profiler/analysis",
        "profiler/planner/data",
    ],
    "profiler/planner/placement": [
        *PLAIN,
        "profiler/allocator",
        "profiler/analysis",
        "profiler/planner/data",
        "profiler/planner/step",
    ],
    "profiler/planner": [
        *PLAIN,
        "profiler/allocator",
        "profiler/analysis",
        "profiler/planner/data",
        "profiler/planner/step",
    ],
    "profiler/planner/search": [
        *PLAIN,
        "profiler/planner",
        "profiler/planner/data",
        "profiler/planner/step",
    ],
    "profiler/formats": [*PLAIN, "profiler/allocator"],
    "profiler/view": [
        *PLAIN,
        "profiler/allocator",
        "profiler/analysis",
        "profiler/layouts",
        "profiler/planner",
        "profiler/planner/search",
        "profiler/planner/step",
    ],
    "profiler/charts": [*PLAIN, "profiler/view"],
    "profiler/protocol": PLAIN,
    "profiler/virtual_gpu": ["profiler/addresses"],
    "profiler/capture": [
        *PLAIN,
        "models/observer",
        "models/training",
        "profiler/layouts",
        "profiler/protocol",
    ],
    "profiler/capture/cuda": [*PLAIN, "models/observer", "models/training", "profiler/capture"],
    "profiler/capture/python": [
        "models/observer",
        "models/training",
        "profiler/capture",
        "profiler/trace",
    ],
    "app/user": [*PLAIN, "profiler/planner/data", "profiler/protocol"],
    "app/prediction": [
        "models/config",
        "profiler/trace",
        "app/user",
        "profiler/planner",
        "profiler/planner/data",
        "profiler/planner/placement",
        "profiler/planner/step",
        "profiler/protocol",
    ],
    "app/workspace": [
        *PLAIN,
        "app/prediction",
        "app/user",
        "profiler/analysis",
        "profiler/charts",
        "profiler/formats",
        "profiler/planner/search",
        "profiler/protocol",
        "profiler/view",
    ],
    "app/widgets": ["profiler/trace", "profiler/view"],
    "app/panels": [*PLAIN, "app/widgets", "app/workspace", "profiler/view"],
    "app/window": [
        *PLAIN,
        "app/panels",
        "app/user",
        "app/widgets",
        "app/workspace",
        "profiler/formats",
    ],
    "app/commands/console": [
        *PLAIN,
        "profiler/analysis",
        "profiler/formats",
        "profiler/protocol",
        "profiler/view",
    ],
    "app/commands/options": ["app/commands/console", "app/user", "models/config"],
    "app/commands/reports": [
        *PLAIN,
        "app/commands/console",
        "profiler/allocator",
        "profiler/analysis",
        "profiler/charts",
        "profiler/planner/search",
        "profiler/view",
    ],
    "app/commands/worker": [
        *PLAIN,
        "app/commands/console",
        "app/commands/options",
        "app/commands/reports",
        "app/prediction",
        "app/user",
        "profiler/analysis",
        "profiler/layouts",
        "profiler/planner/data",
        "profiler/planner/search",
        "profiler/planner/step",
        "profiler/protocol",
    ],
    "app/commands": [
        *PLAIN,
        "app/commands/console",
        "app/commands/options",
        "app/commands/reports",
        "app/commands/worker",
        "app/prediction",
        "app/user",
        "app/window",
        "profiler/analysis",
        "profiler/formats",
        "profiler/layouts",
        "profiler/planner",
        "profiler/planner/data",
        "profiler/view",
    ],
    "app": ["app/commands", "app/commands/console", "app/commands/options", "profiler/protocol"],
    "app/worker": [*PLAIN, "profiler/capture", "profiler/protocol"],
}
LIBTORCH = [
    "models/observer",
    "models/ops",
    "models/layers",
    "models/training",
]
# Pattern of third-party headers, folders that may include them, and the reason.
OUTSIDE = [
    (
        r"c10/cuda/|ATen/cuda/|torch/csrc/cuda",
        [*LIBTORCH, "profiler/capture/cuda", "profiler/virtual_gpu/torch_allocator.cpp"],
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
            "app/widgets/table_sort.cpp",
            "app/window/layout.cpp",
            "app/window/layout.h",
            "app/window/pending_input.cpp",
        ],
        "imgui_internal.h is not stable, so only app/window's layout.cpp and pending_input.cpp and "
        "app/widgets' table_sort.cpp may use it",
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
        ["app/commands/page_server.cpp"],
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
        self.assertEqual(unused, [], "no file uses these edges of MAY_USE")
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
        self.assertEqual(homeless, [], "folders without a row in MAY_USE")


class Checks(unittest.TestCase):
    """Tests of the rules themselves."""

    def test_each_of_these_lines_breaks_a_rule(self):
        for path, line in [
            ("profiler/trace/a.cpp", "#include <torch/types.h>"),
            ("profiler/protocol/a.cpp", "#include <ATen/core/Tensor.h>"),
            ("profiler/view/a.h", "#include <imgui.h>"),
            ("profiler/capture/a.cpp", "#include <cupti.h>"),
            ("profiler/trace/a.cpp", '#include "profiler/analysis/peak.h"'),
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
            ("profiler/analysis/a.cpp", '#include "models/config/recipe.h"'),
            ("profiler/capture/a.cpp", "#include <ATen/core/Tensor.h>"),
            ("profiler/capture/cuda/a.cpp", "#include <cupti.h>"),
            ("app/worker/worker_main.cpp", '#include "profiler/capture/cpu_source.h"'),
            ("app/widgets/fonts.cpp", '#include "embedded/temposcope_fonts.h"'),
            ("app/panels/a.cpp", "#include <implot.h>"),
        ]:
            self.assertEqual(problems_in(path, line), [], f"{path}: {line}")


if __name__ == "__main__":
    unittest.main()
