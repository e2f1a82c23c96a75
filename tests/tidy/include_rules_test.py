"""Who may include whom: the table of docs/architecture.md, line by line."""

import re
import unittest

import repository

# Folder -> folders of ours that it may use, besides itself. A file belongs to the longest folder
# that matches.
MAY_USE = {
    "kernels": [],
    "models/config": [],
    "models": ["models/config", "kernels"],
    "profiler/trace": ["models/config"],
    "profiler/allocator": ["profiler/trace", "models/config"],
    "profiler/analysis": ["profiler/allocator", "profiler/trace", "models/config"],
    "profiler/planner": [
        "profiler/analysis",
        "profiler/allocator",
        "profiler/trace",
        "models/config",
    ],
    "profiler/formats": ["profiler/trace", "models/config"],
    "profiler/view": [
        "profiler/planner",
        "profiler/analysis",
        "profiler/allocator",
        "profiler/trace",
        "models/config",
    ],
    "profiler/charts": [
        "profiler/view",
        "profiler/planner",
        "profiler/analysis",
        "profiler/allocator",
        "profiler/trace",
        "models/config",
    ],
    "profiler/protocol": ["profiler/trace", "models/config"],
    "profiler/capture": [
        "profiler/protocol",
        "profiler/trace",
        "models",
        "models/config",
        "kernels",
    ],
    "profiler/capture/cuda": [
        "profiler/capture",
        "profiler/protocol",
        "profiler/trace",
        "models",
        "models/config",
        "kernels",
    ],
    "app": [
        "profiler/charts",
        "profiler/view",
        "profiler/planner",
        "profiler/analysis",
        "profiler/allocator",
        "profiler/formats",
        "profiler/protocol",
        "profiler/trace",
        "models/config",
    ],
    "app/worker": [
        "profiler/capture",
        "profiler/protocol",
        "profiler/trace",
        "models",
        "models/config",
    ],
}
# Headers from outside -> folders that may include them, and the reason.
OUTSIDE = [
    (
        r"c10/cuda/|ATen/cuda/|torch/csrc/cuda",
        ["models", "profiler/capture/cuda"],
        "CUDA parts of libtorch are opened at run time, by the modules of these folders",
    ),
    (
        r"torch/|ATen/|c10/|caffe2/",
        ["models", "profiler/capture", "profiler/capture/cuda", "app/worker"],
        "libtorch lives in the worker alone",
    ),
    (
        r"cuda|cub/|cupti|thrust/|nvtx|nvml|driver_types|vector_types|crt/",
        ["kernels", "models", "profiler/capture/cuda"],
        "CUDA headers belong to the kernels and to the CUDA modules",
    ),
    (
        r"imgui_internal\.h",
        ["app/window/layout.cpp", "app/window/layout.h"],
        "imgui_internal.h is not stable; app/window/layout.cpp is its only user",
    ),
    (r"imgui|implot|imcmd|GLFW/|portable_file_dialogs", ["app"], "the window lives in app/"),
    (r"CLI/", ["app"], "the command line lives in app/"),
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
            return None if folder in allowed or path in allowed else f"{reason}; not in {folder}"
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


class Checks(unittest.TestCase):
    """The rules say no where they should."""

    def test_lines_that_break_a_rule(self):
        for path, line in [
            ("profiler/trace/a.cpp", "#include <torch/types.h>"),
            ("profiler/protocol/a.cpp", "#include <ATen/core/Tensor.h>"),
            ("profiler/view/a.h", "#include <imgui.h>"),
            ("profiler/capture/a.cpp", "#include <cupti.h>"),
            ("profiler/trace/a.cpp", '#include "profiler/analysis/peak.h"'),
            ("profiler/view/a.cpp", '#include "app/window/theme.h"'),
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
            ("app/window/fonts.cpp", '#include "embedded/temposcope_fonts.h"'),
            ("app/panels/a.cpp", "#include <implot.h>"),
        ]:
            self.assertEqual(problems_in(path, line), [], f"{path}: {line}")


if __name__ == "__main__":
    unittest.main()
