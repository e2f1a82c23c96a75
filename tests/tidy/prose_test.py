"""Holds pages, help texts and messages against the habits that make a sentence hard to read.

A reader must never decode a sentence. HABITS lists the constructions that this project's prose
fell into, PRIVATE_WORDS its own words for what the field has a word for. prose_allowed.txt lists
the sentences that may keep one. That list only shrinks: an entry that excuses nothing is an error.

    tests/tidy/prose_test.py --list [PATH ...]
        prints the findings that the list does not excuse, and changes nothing
"""

import ast
import pathlib
import re
import sys
import unittest

import repository

MOST_WORDS = 30
ALLOWED = pathlib.Path(__file__).with_name("prose_allowed.txt")

HABITS = {
    r"\b(that|those) of\b": "repeat the noun",
    r"\b(the ones?|those) (that|which|who)\b": "name the thing",
    r"\bthose (from|in|on|with|for|by)\b": "repeat the noun",
    r"\b(stands?|standing|stood)\b": "say is, or is shown",
    r"\b(says?|said) so\b": "quote the message, or leave it out",
    r"\b(mend|mends|mended)\b": "fix",
    r"(?-i:^Of (a|an|the|most|several)\b)": "begin with the subject",
    r"\bin turn\b": "alternately, or one after the other",
    r"\bbut for\b": "except",
    r"\bnor (is|does|has|can) \w+\b": "write a sentence of its own",
    r"\bbecame of\b": "name the result",
    r"\bdraws? again\b|\bdrawn again\b": "regenerate",
}
PRIVATE_WORDS = {
    r"\bcards?\b": "GPU",
    r"\bvirtual GPUs?\b": "simulated GPU",
    r"\bclosed (form|term)s?\b": "formula",
    r"(?<!-)\bledgers?\b": "saved tensors",
    r"\bfrontiers?\b": "trade-off",
    r"\bprocessors?\b": "CPU",
}
SOURCE_PATH = re.compile(r"(?<![\w/.])(?:\.\./)*(?:app|kernels|models|profiler|tests|tools)/\w")
# Names of panels and columns are older: they belong to saved layouts and to the files of users.
IN_THE_FIELDS_WORDS = ("README.md", "docs/", "app/commands/", "app/python/", "app/main.cpp")
CODE = re.compile(r"`[^`]*`")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
JSON_KEYS = re.compile(r"^\*\*[a-z ]+\*\*: (?=`)")  # the name of a list in docs/commands.md
LABEL = re.compile(r"(?<![\w*])\*[^*\s][^*]*\*(?![\w*])")
END_OF_SENTENCE = re.compile(r"(?<![. ]al\.|e\.g\.|i\.e\.)(?<=[.!?])[)\"*]*\s+(?=[\w\"(\[`*-])")


def pages() -> list[str]:
    """The pages for users, and the pages for contributors in docs/dev/."""
    return [
        path
        for path in repository.files()
        if path == "README.md" or path.startswith("docs/") and path.endswith(".md")
    ]


def is_for_contributors(path: str) -> bool:
    """Their pages keep the words of the code, and long lists of conditions."""
    return path.startswith("docs/dev/")


def sources() -> list[str]:
    """Sources whose texts users read: help, messages, and what the window shows."""
    return [
        path
        for path in repository.files()
        if path.startswith(("app/", "profiler/", "models/"))
        and path.endswith((".cpp", ".h", ".py"))
        and not path.startswith("profiler/virtual_gpu/generate")
    ]


def page_texts(text: str) -> list[tuple[int, str]]:
    """(line, text) of each paragraph, list item, heading and table cell, without code."""
    text = COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    texts, start, lines = [], 0, []
    in_fence, in_list, in_code, after_blank = False, False, False, True

    def flush() -> None:
        if lines:
            texts.append((start, " ".join(lines)))
            lines.clear()

    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith("```"):
            in_fence = not in_fence
            flush()
            continue
        begins = re.match(r"(#+|[-*]|\d+\.) +", line)
        indented = raw.startswith("    ")
        in_code = indented and not begins and not in_list and (in_code or after_blank)
        if line and not raw.startswith(" "):
            in_list = bool(begins) and not line.startswith("#") or in_list and not after_blank
        after_blank = not line
        if in_fence or in_code or not line or line.startswith("|") or begins:
            flush()
        if in_fence or in_code or not line:
            continue
        if line.startswith("|"):
            texts += [(number, one.strip()) for one in CODE.sub("`x`", line).split("|")]
            continue
        if not lines:
            start = number
        line = JSON_KEYS.sub("", line)
        lines.append(line[begins.end():] if begins else line)
        if line.startswith("#"):
            flush()
    flush()
    return texts


def cpp_texts(text: str) -> list[tuple[int, str]]:
    """(line, text) of the string literals of a C++ source; neighbours are one text."""
    texts, end, start, parts = [], 0, 0, []
    for token in repository.CPP_TOKEN.finditer(text):
        part = token["raw"]
        if token["text"] is not None:
            part = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], token["text"])
        if part is None:
            continue
        if parts and text[end:token.start()].strip():
            texts.append((start, "".join(parts)))
            parts = []
        if not parts:
            start = text.count("\n", 0, token.start()) + 1
        parts.append(part)
        end = token.end()
    if parts:
        texts.append((start, "".join(parts)))
    return texts


def python_texts(text: str) -> list[tuple[int, str]]:
    """(line, text) of the strings of a Python source that are no documentation."""
    tree = ast.parse(text)
    skipped, texts = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        if isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            words = [one.value if isinstance(one, ast.Constant) else "{}" for one in node.values]
            texts.append((node.lineno, "".join(words)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            texts.append((node.lineno, node.value))
    return texts


def texts_of(path: str, text: str) -> list[tuple[int, str]]:
    if path.endswith(".md"):
        return page_texts(text)
    return python_texts(text) if path.endswith(".py") else cpp_texts(text)


def sentences(text: str) -> list[str]:
    """Sentences of a text; a piece of code is one word, a link is its text."""
    text = " ".join(LINK.sub(r"\1", CODE.sub("`x`", text)).split())
    return [one.strip() for one in END_OF_SENTENCE.split(text) if one.strip()]


def problems_of(path: str, sentence: str) -> list[str]:
    """What is wrong with a sentence. Labels of the window (*Recipe frontier*) are names."""
    in_the_fields_words = path.startswith(IN_THE_FIELDS_WORDS) and not is_for_contributors(path)
    private_words = PRIVATE_WORDS if in_the_fields_words else {}
    words = [word for word in sentence.split() if re.search(r"\w", word)]
    prose = CODE.sub("", LABEL.sub("", sentence))
    found = [
        f"'{match.group()}': {advice}"
        for habit, advice in {**HABITS, **private_words}.items()
        if (match := re.search(habit, prose, re.IGNORECASE))
    ]
    if len(words) > MOST_WORDS and not is_for_contributors(path):
        found.append(f"{len(words)} words; at most {MOST_WORDS}")
    return found


def findings(path: str, text: str) -> list[tuple[int, str, str]]:
    """(line, sentence, problem) of a file."""
    found = []
    if re.fullmatch(r"docs/\w+\.md", path):
        found = [
            (line, whole, f"'{match.group()}…': a source; pages for users name none")
            for line, whole in page_texts(text)
            if (match := SOURCE_PATH.search(whole))
        ]
    return found + [
        (line, sentence, problem)
        for line, whole in texts_of(path, text)
        for one in re.split(r"\n\n|\n(?=  )|(?<=:)\n", whole)
        if " " in one.strip() and not one.startswith("  ")  # an indented line is an example
        for sentence in sentences(one)
        for problem in problems_of(path, sentence)
    ]


def allowed_entries(text: str) -> list[tuple[str, str]]:
    """(path, words of the sentence) of each line of the list."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(": ", 1)) for line in lines]


def judged(found: dict[str, list], allowed: list[tuple[str, str]]) -> list[str]:
    """Findings that no entry excuses, and entries that excuse nothing, as lines of text."""
    used, problems = set(), []
    for path, rows in found.items():
        for line, sentence, problem in rows:
            entry = next((one for one in allowed if one[0] == path and one[1] in sentence), None)
            if entry:
                used.add(entry)
            else:
                problems.append(f"{path}:{line}: {problem}\n    {sentence}")
    problems += [
        f"{ALLOWED.name}: '{words}' of {path} excuses nothing; delete the line"
        for path, words in allowed
        if (path, words) not in used
    ]
    return problems


def all_findings(paths: list[str]) -> dict[str, list]:
    return {path: findings(path, repository.read_text(path) or "") for path in paths}


class Prose(unittest.TestCase):
    def test_pages_help_and_messages_are_plain(self):
        problems = judged(
            all_findings(pages() + sources()), allowed_entries(ALLOWED.read_text("utf-8"))
        )
        if problems:
            self.fail(f"{len(problems)} findings\n" + "\n".join(problems))


class Checks(unittest.TestCase):
    """Tests of the checks themselves."""

    def problems(self, path: str, text: str) -> list[str]:
        return [problem for _, _, problem in findings(path, text)]

    def test_each_habit_is_found_in_a_page_in_help_and_in_a_message(self):
        for sentence in (
            "The peak is that of backward.",
            "Those of A are pale.",
            "Take the one that fits best.",
            "It keeps those in the layers.",
            "The limit stands below the plot.",
            "A note says so at the end.",
            "Run it until the error is mended.",
            "Of most strategies only rank 0 runs.",
            "The recipes run in turn here.",
            "All is kept but for masks.",
            "No loss is known, nor is throughput.",
            "See what became of the recording.",
            "Its masks are drawn again later.",
        ):
            for path, text in (
                ("docs/page.md", f"# Title\n\n- An item.\n- {sentence}\n"),
                ("docs/dev/page.md", sentence),
                ("app/commands/x.cpp", f'fail("It is {{}}. "\n     "{sentence}");'),
                ("profiler/x.h", f'constexpr auto kText = "{sentence}";'),
                ("app/python/x.py", f'print(f"{{x}} is known. " "{sentence}")'),
            ):
                self.assertEqual(len(self.problems(path, text)), 1, (path, sentence))

    def test_private_words_are_found_where_users_read(self):
        for word in ("cards", "virtual GPU", "closed forms", "ledger", "frontier", "processor"):
            sentence = f"See the {word} here."
            self.assertEqual(len(self.problems("docs/page.md", sentence)), 1, word)
            self.assertEqual(len(self.problems("app/commands/x.cpp", f'"{sentence}"')), 1, word)
            for path, text in (
                ("docs/dev/page.md", sentence),
                ("app/panels/x.cpp", f'"{sentence}"'),
                ("docs/page.md", f"See the panel *{word}*, the option `--{word}`."),
                ("docs/page.md", f"A page:\n```\n$ {word} of x\n```\n"),
                ("docs/page.md", f"Formulas:\n\n    {word} = of x\n"),
            ):
                self.assertEqual(self.problems(path, text), [], (path, word))

    def test_pages_for_users_name_no_sources(self):
        for path, count in (("docs/page.md", 1), ("docs/dev/page.md", 0), ("README.md", 0)):
            for text in ("See `tests/app/x.cpp`.", "See [it](../tools/x/y), it is short."):
                self.assertEqual(len(self.problems(path, text)), count, (path, text))
        for text in ("```\npytest tests/memory\n```\n", "At mine/models/x.py:3, 8 apps/s."):
            self.assertEqual(self.problems("docs/page.md", text), [])

    def test_long_sentences_are_found_and_code_counts_as_one_word(self):
        words = " ".join(["word"] * MOST_WORDS)
        self.assertEqual(self.problems("docs/page.md", words + "."), [])
        self.assertEqual(len(self.problems("docs/page.md", f"A {words}.")), 1)
        self.assertEqual(len(self.problems("docs/page.md", f"A `b c`\n{words}.")), 1)
        self.assertEqual(len(self.problems("docs/page.md", f"| cell | A {words}. |")), 1)
        self.assertEqual(self.problems("docs/page.md", f"`a b c d` {words[5:]}."), [])
        self.assertEqual(self.problems("docs/page.md", f"{words}. Another one."), [])
        self.assertEqual(self.problems("docs/page.md", f"- {words}\n- {words}\n"), [])
        self.assertEqual(len(self.problems("app/x.cpp", f'"A {words}."')), 1)
        examples = f'"Examples:\\n  temposcope {words}\\n"'
        self.assertEqual(self.problems("app/commands/x.cpp", examples), [])

    def test_raw_strings_are_texts_and_hide_no_text(self):
        text = 'print(R"sql(an odd " and \\)sql", R"(It is that of x.)"); fail("That of y.");\n'
        found = [words for _, words in cpp_texts(text)]
        self.assertEqual(found, ['an odd " and \\', "It is that of x.", "That of y."])
        self.assertEqual(len(self.problems("app/x.cpp", text)), 2)

    def test_comments_are_not_messages(self):
        for path, text in (
            ("app/x.cpp", '// that of "x"\nint a; /* it says so */\nchar c = \'"\';\n'),
            ("app/python/x.py", '"""It is that of x."""\n# it says so\n'),
            ("docs/page.md", "<!-- that of x -->\n"),
        ):
            self.assertEqual(self.problems(path, text), [], path)

    def test_the_list_excuses_what_it_names_and_must_be_needed(self):
        found = {"docs/page.md": [(3, "The peak is that of A.", "'that of'")]}
        self.assertEqual(judged(found, [("docs/page.md", "peak is that of A")]), [])
        for entries in ([("docs/page.md", "another sentence")], [("docs/other.md", "that of A")]):
            problems = judged(found, entries)
            self.assertEqual(len(problems), 2, problems)
            self.assertIn("docs/page.md:3: 'that of'", problems[0])
            self.assertIn("excuses nothing; delete the line", problems[1])
        text = "# A comment\n\ndocs/page.md: words: more\n"
        self.assertEqual(allowed_entries(text), [("docs/page.md", "words: more")])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--list"]:
        wanted = sys.argv[2:] or pages() + sources()
        entries = allowed_entries(ALLOWED.read_text("utf-8"))
        entries = [one for one in entries if one[0] in wanted]
        for problem in judged(all_findings(wanted), entries):
            print(problem)
    else:
        unittest.main()
