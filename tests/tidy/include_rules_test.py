"""Who may include whom: the table of docs/architecture.md, line by line."""

import graphlib
import os
import re
import unittest

import repository

# The rooms, in the order data flows: folder -> what it includes of ours, besides itself. A file
# belongs to the longest folder that matches. Every edge here is used by some file, and there is no
# cycle: the tests below hold both.
PLAIN = ["models/config", "profiler/trace"]
MAY_USE = {
    "kernels": [],
    "models/config": [],
    "models/observer": [],
    "models/autocast": [],
    "models/ops": ["kernels", "models/autocast", "models/observer"],
    "models/ops/cuda": ["models/ops"],
    "models/layers": ["models/config", "models/observer", "models/ops"],
    "models/training": [
        "models/autocast",
        "models/config",
        "models/layers",
        "models/observer",
        "models/ops",
    ],
    "profiler/trace": ["models/config"],
    "profiler/allocator": PLAIN,
    "profiler/analysis": PLAIN,
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
    "profiler/formats": PLAIN,
    "profiler/view": [
        *PLAIN,
        "profiler/analysis",
        "profiler/planner",
        "profiler/planner/search",
    ],
    "profiler/charts": [*PLAIN, "profiler/view"],
    "profiler/protocol": PLAIN,
    "profiler/capture": [*PLAIN, "models/observer", "models/training", "profiler/protocol"],
    "profiler/capture/meta": [*PLAIN, "models/training", "profiler/capture"],
    "profiler/capture/cuda": [*PLAIN, "models/observer", "models/training", "profiler/capture"],
    "app/user": [*PLAIN, "profiler/planner/data", "profiler/protocol"],
    "app/widgets": ["profiler/trace", "profiler/view"],
    "app/workspace": [
        *PLAIN,
        "app/user",
        "app/widgets",
        "profiler/analysis",
        "profiler/charts",
        "profiler/protocol",
        "profiler/view",
    ],
    "app/panels": [*PLAIN, "app/widgets", "app/window", "app/workspace", "profiler/view"],
    "app/window": [*PLAIN, "app/panels", "app/user", "app/widgets", "app/workspace"],
    "app/commands/console": [*PLAIN, "profiler/analysis", "profiler/protocol", "profiler/view"],
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
        "app/user",
        "profiler/analysis",
        "profiler/planner/data",
        "profiler/planner/placement",
        "profiler/planner/step",
        "profiler/protocol",
    ],
    "app/commands": [
        *PLAIN,
        "app/commands/console",
        "app/commands/options",
        "app/commands/reports",
        "app/commands/worker",
        "app/user",
        "app/window",
        "profiler/analysis",
        "profiler/formats",
        "profiler/planner",
        "profiler/view",
    ],
    "app": ["app/commands", "app/commands/console", "app/commands/options"],
    "app/worker": [*PLAIN, "profiler/capture", "profiler/capture/meta", "profiler/protocol"],
}
LIBTORCH = [
    "models/observer",
    "models/autocast",
    "models/ops",
    "models/layers",
    "models/training",
]
# Headers from outside -> folders that may include them, and the reason.
OUTSIDE = [
    (
        r"c10/cuda/|ATen/cuda/|torch/csrc/cuda",
        [*LIBTORCH, "profiler/capture/cuda"],
        "CUDA parts of libtorch are opened at run time, by the modules of these folders",
    ),
    (
        r"torch/|ATen/|c10/|caffe2/",
        [*LIBTORCH, "profiler/capture", "app/worker"],
        "libtorch lives in the worker alone",
    ),
    (
        r"cuda|cub/|cupti|thrust/|nvtx|nvml|driver_types|vector_types|crt/",
        ["kernels", *LIBTORCH, "profiler/capture/cuda"],
        "CUDA headers belong to the kernels and to the CUDA modules",
    ),
    (
        r"imgui_internal\.h",
        ["app/window/layout.cpp", "app/window/layout.h"],
        "imgui_internal.h is not stable; app/window/layout.cpp is its only user",
    ),
    (r"imgui|implot|imcmd|GLFW/|portable_file_dialogs", ["app"], "the window lives in app/"),
    (
        r"CLI/",
        ["app/commands/options/command_line.cpp"],
        "the parser of the command line costs 10 s in each file that includes it",
    ),
    (r"sqlite3\.h", ["profiler/trace"], "the trace file is the only database"),
    (r"cairo|ft2build|freetype", ["profiler/charts", "app"], "charts draw, and the window"),
    (r"hwy/", ["kernels"], "vector code belongs to the kernels"),
]
PROJECT = ("app/", "kernels/", "models/", "profiler/", "tests/")
GENERATED = ("embedded/",)
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def folder_of(path: str) -> str | None:
    matching = [folder for folder in MAY_USE if path.startswith(folder + "/")]
    return max(matching, key=len, default=None)


def rule_broken(path: str, quote: str, header: str, exists=lambda header: True) -> str | None:
    """The rule that this include breaks in this file, or None."""
    folder = folder_of(path)
    if folder is None:
        return None
    if header.startswith(PROJECT):
        if quote == "<":
            return f'headers of ours are included with quotes: "{header}"'
        target = folder_of(header)
        if target is not None and target != folder and target not in MAY_USE[folder]:
            return (
                f"{folder} may use {', '.join(MAY_USE[folder]) or 'nothing of ours'}; not {target}"
            )
        return None if exists(header) else f"{header} does not exist"
    if quote == '"' and not header.startswith(GENERATED):
        return f'paths start at the root, and headers from outside stand in <>: "{header}"'
    for pattern, allowed, reason in OUTSIDE:
        if re.match(pattern, header):
            inside = any(path == place or path.startswith(place + "/") for place in allowed)
            return None if inside else f"{reason}; not in {folder}"
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


    def test_every_allowed_edge_is_used_and_none_runs_back(self):
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
    """The rules say no where they should."""

    def test_lines_that_break_a_rule(self):
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

    def test_lines_that_break_none(self):
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
