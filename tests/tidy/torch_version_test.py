"""What differs between versions of torch has one place: profiler/capture/torch_adapter, and
models/ops/torch_version.cpp for the ops."""

import os
import pathlib
import re
import unittest

import repository

ADAPTERS = ("profiler/capture/torch_adapter/", "models/ops/torch_version.cpp")
ASKS = re.compile(r"^[^\S\n]*#[^\S\n]*(?:el)?if[^\n]*\bTORCH_VERSION|\bTEMPOSCOPE_TORCH\b", re.M)


def problems_in(path: str, text: str) -> list[str]:
    """A sentence for each line that asks for the version of torch outside of the adapters."""
    if path.startswith(ADAPTERS):
        return []
    code = repository.CPP_TOKEN.sub(lambda token: re.sub(r"[^\n]", " ", token[0]), text)
    return [
        f"{path}:{code.count(chr(10), 0, match.start()) + 1}: only {ADAPTERS[0]} may ask for the "
        "version of torch; give the difference a function there"
        for match in ASKS.finditer(code)
    ]


class Repository(unittest.TestCase):
    def test_only_the_adapters_ask_for_the_version_of_torch(self):
        problems = [
            problem
            for path in repository.cpp_files()
            for problem in problems_in(path, repository.read_text(path))
        ]
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_the_engine_passes_on_all_that_torch_asks(self):
        cache = pathlib.Path(os.environ.get("TEMPOSCOPE_BUILD_DIR", "build"), "CMakeCache.txt")
        if not cache.is_file():
            self.skipTest(f"{cache} is missing; run scripts/build, or set TEMPOSCOPE_BUILD_DIR")
        (torch,) = re.findall(r"^TEMPOSCOPE_TORCH_DIR:\w+=(.*)$", cache.read_text(), re.M)
        check = repository.load_script("check-headers")
        engine = pathlib.Path(torch, "include", check.ENGINE).read_text()
        lost = check.lost_functions(engine, check.PASSING_ENGINE.read_text())
        self.assertEqual(lost, [], "PassingEngine does not pass these on")


class Checks(unittest.TestCase):
    """Tests of the checks themselves."""

    def test_a_question_outside_of_the_adapters_is_reported(self):
        for line in [
            "#if TORCH_VERSION_MINOR >= 13",
            "  #  elif defined(A) && TORCH_VERSION_MINOR > 9",
            "#if TEMPOSCOPE_TORCH >= 213",
            "if constexpr (TEMPOSCOPE_TORCH >= 213) {}",
        ]:
            found = problems_in("profiler/capture/recorder.cpp", f"int a;\n{line}\n")
            self.assertEqual(len(found), 1, line)
            self.assertIn("recorder.cpp:2: only profiler/capture/torch_adapter/ may", found[0])

    def test_what_does_not_ask_is_not_reported(self):
        for path, line in [
            ("profiler/capture/torch_adapter/op_call.cpp", "#if TEMPOSCOPE_TORCH >= 209"),
            ("models/ops/torch_version.cpp", "#if TORCH_VERSION_MAJOR > 1"),
            ("models/ops/arguments.cpp", "// #if TEMPOSCOPE_TORCH >= 209"),
            ("app/a.cpp", 'const char* text = TORCH_VERSION "TEMPOSCOPE_TORCH";'),
        ]:
            self.assertEqual(problems_in(path, line), [], line)

    def test_a_function_that_the_engine_loses_is_found(self):
        check = repository.load_script("check-headers")
        engine = (
            "struct TORCH_API Engine {\n  virtual ~Engine();\n  virtual void run(int a);\n"
            "  // virtual void gone();\n  virtual std::vector<Hook>\n  hooks() { return {}; }\n"
            "  void plain();\n protected:\n  virtual void main();\n};"
        )
        passing = "void run(int a) override { previous_->run(a); }"
        self.assertEqual(check.lost_functions(engine, passing), ["hooks"])


if __name__ == "__main__":
    unittest.main()
