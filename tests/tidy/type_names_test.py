"""No name stands for two types: a type that is defined in two files is two types to the compiler
and one to the linker, which keeps the functions of either (the one-definition rule).

Namespaces without a name and functions keep what is in them apart.
"""

import re
import unittest

import repository

# What is no code, or no code of a type: comments, literals and lines of the preprocessor.
NO_CODE = re.compile(
    repository.CPP_TOKEN.pattern + r"|^[ \t]*#(?:[^\n\\]|\\.)*", re.DOTALL | re.MULTILINE
)
NAMESPACE = re.compile(r"(?:inline )?namespace(?: (?P<name>[\w: ]+))?$")
TYPE = re.compile(
    r"(?:template <.*> ?)?(?:class|struct|union|enum(?: class| struct)?) (?:[A-Z][A-Z_]+ )?"
    r"(?P<name>\w+(?:::\w+)*)(?: final)?(?: ?:(?!:).*)?$"
)
# A scope whose types nobody outside of the file sees, and one that adds nothing to their names.
HIDDEN, OPEN = None, ""


def scope_of(head: str) -> tuple[str | None, bool]:
    """The name of the scope that `head {` opens, and whether it is a type."""
    if match := NAMESPACE.match(head):
        return (match["name"] or HIDDEN), False
    if match := TYPE.match(head):
        return match["name"], True
    return (OPEN if head == "extern" else HIDDEN), False


def types_in(text: str) -> list[str]:
    """The types that a file defines for all of the program, with their namespaces."""
    types, scopes, head = [], [], ""
    for part in re.findall(r"[{};]|[^{};]+", NO_CODE.sub(" ", text)):
        if part == "{":
            name, is_type = scope_of(re.sub(r"(?:\[\[.*?\]\]|alignas\(.*?\)) ?", "", head).strip())
            scopes.append(name)
            if is_type and HIDDEN not in scopes:
                types.append("::".join(scope for scope in scopes if scope))
        elif part == "}" and scopes:
            scopes.pop()
        head = " ".join(part.split()) if part not in "{};" else ""
        # What stands before a member is no part of its head: "public: struct Row".
        head = re.sub(r"^(?:(?:public|protected|private) ?: ?)+", "", head)
    return types


def doubles(texts: dict[str, str]) -> list[str]:
    """A sentence for each type that two files define."""
    first, problems = {}, []
    for path, text in texts.items():
        for name in types_in(text):
            other = first.setdefault(name, path)
            if other != path:
                problems.append(f"{path}: {name} is defined in {other}, too; give it another name")
    return problems


class Repository(unittest.TestCase):
    def test_no_name_stands_for_two_types(self):
        texts = {path: repository.read_text(path) for path in repository.cpp_files()}
        problems = doubles(texts)
        if problems:
            self.fail("\n" + "\n".join(problems))

class Checks(unittest.TestCase):
    """Tests of the check itself."""

    def test_a_planted_double_is_reported(self):
        row = "namespace profiler {\n%s\n}  // namespace profiler\n"
        for planted in [
            "struct Row { int a; };",
            "class Row final : public Base<int> {};",
            "enum class Row : uint8_t { kA };",
            "template <typename T> struct Row { struct Inner {}; };",
            "// a comment {\nstruct Row {\n};",
            "#define OPEN {\nstruct Row {};",
            "constexpr char kBrace = '{', kText[] = \"{\"; struct alignas(8) Row {};",
            "void act() { struct Own {}; }\nstruct Row {};",
        ]:
            texts = {"profiler/a.h": row % "struct Row {};", "app/b.cpp": row % planted}
            self.assertEqual(
                doubles(texts),
                ["app/b.cpp: profiler::Row is defined in profiler/a.h, too; give it another name"],
                planted,
            )

    def test_types_that_are_kept_apart_are_not_reported(self):
        for other in [
            "struct Row;",
            "namespace { struct Row {}; }",
            "namespace view { struct Row {}; }",
            "struct Table { struct Row {}; };",
            "template <> struct Row<int> {};",
            "void act() { struct Row {}; }",
            "Row row = {1}; struct Row make() { return {}; }",
            "enum class Color { kRow };",
        ]:
            texts = {
                "profiler/a.h": "namespace profiler { struct Row {}; }",
                "app/b.cpp": "namespace profiler { %s }" % other,
            }
            self.assertEqual(doubles(texts), [], other)

    def test_types_in_types_are_found(self):
        text = "namespace a::b { class C { public: struct D {}; enum E { kE }; }; struct C::F {}; }"
        self.assertEqual(types_in(text), ["a::b::C", "a::b::C::D", "a::b::C::E", "a::b::C::F"])


if __name__ == "__main__":
    unittest.main()
