"""Links between the repository's pages lead somewhere, and pages that sources name exist."""

import os
import re
import unittest

import repository

LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]+))?\)")
HISTORY = "CHANGELOG.md"  # it names pages as they were called then
TIDY = ("tests/tidy/links_test.py", "tests/tidy/prose_test.py")  # they name planted pages
NAMED_PAGE = re.compile(r"\bdocs/[\w/]+\.md\b")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE):
        heading = re.sub(r"\]\([^)]*\)", "", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return found


def broken_links(path: str, text: str, pages: dict[str, str], files: set[str]) -> list[str]:
    """`path: link` of each link of a page that leads nowhere."""
    problems = []
    for target, anchor in LINK.findall(text):
        to = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        is_folder = any(file.startswith(to + "/") for file in files)
        if to not in files and not is_folder:
            problems.append(f"{path}: {target} does not exist")
        elif anchor and to in pages and anchor not in anchors(pages[to]):
            problems.append(f"{path}: {to} has no heading #{anchor}")
    return problems


def unknown_pages(path: str, text: str, files: set[str]) -> list[str]:
    """`path: page` of each page that a source or another file names and that does not exist."""
    named = set(NAMED_PAGE.findall(text)) - files
    return [f"{path}: {page} does not exist" for page in sorted(named)]


class Links(unittest.TestCase):
    def setUp(self):
        self.files = set(repository.files())
        self.texts = {path: repository.read_text(path) for path in self.files}
        self.texts = {path: text for path, text in self.texts.items() if text is not None}
        self.pages = {path: text for path, text in self.texts.items() if path.endswith(".md")}

    def test_links_lead_somewhere(self):
        problems = [
            problem
            for path, text in sorted(self.pages.items())
            if path != HISTORY
            for problem in broken_links(path, text, self.pages, self.files)
        ]
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_named_pages_exist(self):
        problems = [
            problem
            for path, text in sorted(self.texts.items())
            if path not in (HISTORY, *TIDY)
            for problem in unknown_pages(path, text, self.files)
        ]
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_the_index_names_every_page_for_users(self):
        index = self.pages["docs/README.md"]
        for path in self.pages:
            if re.fullmatch(r"docs/\w+\.md", path) and path != "docs/README.md":
                self.assertIn(f"]({path.removeprefix('docs/')})", index)


class Checks(unittest.TestCase):
    """Tests of the checks themselves."""

    def test_broken_links_are_found(self):
        pages = {"docs/a.md": "# A page\n\n## `--by line`: x, y\n", "docs/dev/b.md": "# B\n"}
        files = {*pages, "docs/examples/train.py"}

        def broken(text: str, path: str = "docs/a.md") -> int:
            return len(broken_links(path, text, pages, files))

        for text in ("[b](dev/b.md)", "[t](examples/train.py)", "[x](https" + "://x.org/y)",
                     "[s](#--by-line-x-y)", "[b](dev/b.md#b)", "[e](examples)"):  # fmt: skip
            self.assertEqual(broken(text), 0, text)
        for text in ("[b](b.md)", "[b](dev/b.md#c)", "![t](examples/no.png)", "[s](#a)"):
            self.assertEqual(broken(text), 1, text)
        self.assertEqual(broken("[a](../a.md)", "docs/dev/b.md"), 0)

    def test_pages_that_do_not_exist_are_found(self):
        files = {"docs/a.md"}
        self.assertEqual(unknown_pages("x.cpp", "// docs/a.md says more", files), [])
        self.assertEqual(len(unknown_pages("x.cpp", '"(docs/old.md)"', files)), 1)


if __name__ == "__main__":
    unittest.main()
