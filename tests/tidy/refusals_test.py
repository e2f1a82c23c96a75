"""A function of CUDA that the virtual GPU refuses returns an error code. An exception would leave a
lock of torch held: torch calls the runtime, the driver and NVRTC under locks and from C code, and
the second refusal then waits for ever. Only libraries that torch's C++ code calls may throw."""

import re
import unittest

import repository

FOLDER = "profiler/virtual_gpu/"
MAY_THROW = {FOLDER + name for name in ("cublas.cpp", "cublas_lt.cpp", "nccl.cpp", "refuse.cpp")}
THROWS = re.compile(r"(?<!\.)\brefuse\(")


def problems_in(path: str, text: str) -> list[str]:
    """A sentence for each line that refuses by an exception where none may pass."""
    is_declaration = path == FOLDER + "api.h"
    if not path.startswith(FOLDER) or path in MAY_THROW or is_declaration:
        return []
    return [
        f"{path}:{number}: refuse by an error code (refuse_by_error, refuse_by_driver_error): an "
        "exception leaves torch's locks held"
        for number, line in enumerate(text.splitlines(), 1)
        if THROWS.search(line.partition("//")[0])
    ]


class Repository(unittest.TestCase):
    def test_refusals_are_error_codes(self):
        problems = [
            problem
            for path in repository.cpp_files()
            for problem in problems_in(path, repository.read_text(path))
        ]
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_generated_functions_refuse_by_error_codes(self):
        generate = repository.load_script(FOLDER + "generate.py")
        for name in ("cudaMallocHost", "cuMemMap", "cuLinkCreate_v2"):
            self.assertIn("virtual_gpu_refuse_by_error", generate.refusal(name, True))


class Checks(unittest.TestCase):
    def test_an_exception_is_reported(self):
        for line in ('    refuse("cuLinkCreate");', 'virtual_gpu::refuse("cudaMemcpy3D");'):
            (problem,) = problems_in(FOLDER + "modules.cpp", f"int a;\n{line}\n")
            self.assertIn("modules.cpp:2: refuse by an error code", problem)

    def test_what_may_throw_is_not_reported(self):
        for path, line in (
            (FOLDER + "nccl.cpp", 'refuse("ncclCommSplit");'),
            (FOLDER + "modules.cpp", 'return refuse_by_error("cuLinkCreate");'),
            (FOLDER + "modules.cpp", "int a;  // as refuse() does"),
            ("profiler/planner/plan.cpp", 'row.refuse("a");'),
        ):
            self.assertEqual(problems_in(path, line), [], line)


if __name__ == "__main__":
    unittest.main()
