"""The presets of a part of the folders configure: each library that they link is in the part."""

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


class Presets(unittest.TestCase):
    def test_they_configure(self):
        self.assertTrue(presets_of_a_part())
        for name in presets_of_a_part().values():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                configured = subprocess.run(
                    [CMAKE, "--preset", name, "-B", folder],
                    cwd=repository.ROOT,
                    env=os.environ | {"PATH": f"{CMAKE.parent}:{os.environ['PATH']}"},
                    capture_output=True,
                    text=True,
                )
                self.assertEqual(configured.returncode, 0, configured.stderr)


if __name__ == "__main__":
    unittest.main()
