"""The presets of a part of the folders configure: each library that they link is in the part.
Options that contradict each other do not configure."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import repository

CMAKE = pathlib.Path(os.environ["CMAKE"])


def presets_of_a_part() -> dict[str, str]:
    """{list of folders: a preset that a user may name}"""
    presets = {
        preset["name"]: preset
        for preset in json.loads(repository.read_text("CMakePresets.json"))["configurePresets"]
    }

    def folders(preset: dict) -> str | None:
        inherited = folders(presets[preset["inherits"]]) if "inherits" in preset else None
        return preset.get("cacheVariables", {}).get("TEMPOSCOPE_FOLDERS", inherited)

    return {
        folders(preset): name
        for name, preset in reversed(presets.items())  # the first that has the list
        if folders(preset) and not preset.get("hidden")
    }


def configured(*arguments: str) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [CMAKE, *arguments, "-B", folder],
            cwd=repository.ROOT,
            env=os.environ | {"PATH": f"{CMAKE.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )


class Presets(unittest.TestCase):
    def test_they_configure(self):
        self.assertTrue(presets_of_a_part())
        for name in presets_of_a_part().values():
            with self.subTest(name):
                ran = configured("--preset", name)
                self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_all_gpus_and_chosen_ones_contradict_each_other(self):
        options = ("-DTEMPOSCOPE_ALL_ARCHITECTURES=ON", "-DCMAKE_CUDA_ARCHITECTURES=90")
        ran = configured("--preset", "release", *options)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("ask for different GPUs; run cmake", " ".join(ran.stderr.split()))


if __name__ == "__main__":
    unittest.main()
