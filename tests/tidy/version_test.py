"""The version of the program is in one place, the project of CMakeLists.txt; others read it."""

import re
import unittest

import repository

PLACE = "CMakeLists.txt"
# What the program, its package and its scripts are made of. A test or a page may name a version.
READERS = (
    ".ci/",
    "app/",
    "cmake/",
    "kernels/",
    "models/",
    "profiler/",
    "scripts/",
    "CITATION.cff",
    "README.md",
    "pyproject.toml",
)


def repeats(paths: list[str], number: str) -> list[str]:
    """Files that hold the number as a version."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(number)}(?![\w.])")
    texts = {path: repository.read_text(path) or "" for path in paths}
    return [path for path, text in texts.items() if pattern.search(text)]


class Version(unittest.TestCase):
    def test_no_other_file_repeats_it(self):
        readers = [path for path in repository.files() if path.startswith(READERS)]
        self.assertGreater(len(readers), 100)
        self.assertEqual(repeats(readers, repository.version()), [])

    def test_a_file_that_repeats_it_is_found(self):
        self.assertEqual(repeats([PLACE], repository.version()), [PLACE])

    def test_the_changelog_begins_with_it(self):
        text = repository.read_text("CHANGELOG.md")
        heading = re.search(r"^## (.*)$", text, re.MULTILINE).group(1)
        self.assertIn(heading.split(" ")[0], (repository.version(), "Unreleased"))


if __name__ == "__main__":
    unittest.main()
