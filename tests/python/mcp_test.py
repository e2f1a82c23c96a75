"""`temposcope mcp`: sessions of the protocol's own client.

    mcp_test.py BIN_FOLDER
"""

import contextlib
import functools
import importlib.util
import json
import os
import pathlib
import sys
import unittest

from commands import BIN, Commands, temposcope

HAS_MCP = importlib.util.find_spec("mcp") is not None
if HAS_MCP:
    from mcp import ClientSession, StdioServerParameters, stdio_client

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "assets" / "examples"
MOST_BYTES = 100_000  # docs/agents.md


@unittest.skipUnless(HAS_MCP, "needs the package mcp: scripts/setup --tests installs it")
class Session(Commands, unittest.IsolatedAsyncioTestCase):
    @contextlib.asynccontextmanager
    async def client(self):
        server = StdioServerParameters(
            command=str(BIN / "temposcope"),
            args=["mcp", "--output", str(self.folder)],
            env=os.environ | {"TEMPOSCOPE_PYTHON": sys.executable},
            cwd=EXAMPLES,
        )
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session

    async def told(self, session, tool: str, **arguments) -> tuple[str, dict]:
        """The text and the JSON, which stands in the content as text, too."""
        result = await session.call_tool(tool, arguments)
        text, document = (content.text for content in result.content)
        self.assertFalse(result.is_error, text)
        self.assertEqual(json.loads(document), result.structured_content)
        return text, result.structured_content

    async def failure(self, session, tool: str, **arguments) -> str:
        result = await session.call_tool(tool, arguments)
        self.assertTrue(result.is_error, result)
        (content,) = result.content
        return content.text

    async def test_tools_have_schemas_and_stand_in_the_docs(self):
        async with self.client() as session:
            tools = (await session.list_tools()).tools
        self.assertEqual(
            {tool.name: set(tool.input_schema["required"]) for tool in tools},
            {
                "explain": {"files"},
                "info": {"file"},
                "compare": {"files"},
                "run": {"command", "output"},
                "plan": {"gpu"},
            },
        )
        docs = (SOURCE / "docs" / "agents.md").read_text().splitlines()
        for tool in tools:
            self.assertTrue(tool.description)
            (row,) = (line for line in docs if line.startswith(f"| `{tool.name}` "))
            for name, parameter in tool.input_schema["properties"].items():
                described = parameter.get("description") or parameter["items"]["description"]
                self.assertTrue(described, (tool.name, name))
                self.assertIn(f"`{name}`", row, tool.name)

    async def test_info_and_explain_of_the_examples(self):
        async with self.client() as session:
            for example in sorted(file.name for file in EXAMPLES.glob("*.tscope")):
                with self.subTest(example):
                    text, told = await self.told(session, "info", file=example)
                    by_command = self.succeed("info", example, "--json", cwd=EXAMPLES).stdout
                    self.assertEqual(told, json.loads(by_command))
                    self.assertRegex(text, rf"^The peak of {example} is [0-9.]+ GiB allocated\.$")
                    text, told = await self.told(session, "explain", files=[example])
                    self.assertEqual(text.splitlines()[0], told["verdict"]["sentence"])

    async def test_compare_says_its_sentence(self):
        async with self.client() as session:
            files = ["original.tscope", "tempo.tscope"]
            text, told = await self.told(session, "compare", files=files)
        self.assertEqual(text, told["sentence"])
        self.assertEqual(len(told["rows"]), 2)

    async def test_a_large_result_is_cut_and_says_what_prints_it(self):
        async with self.client() as session:
            text, told = await self.told(session, "info", file="tempo.tscope", report="ledger")
        self.assertLessEqual(len(json.dumps(told)), MOST_BYTES)
        self.assertIn("temposcope info tempo.tscope --json --ledger prints it.", text)

    async def test_an_error_of_the_program_is_its_sentence(self):
        async with self.client() as session:
            self.assertEqual(
                await self.failure(session, "info", file="absent.tscope"),
                "absent.tscope does not exist; check the name.",
            )
            said = await self.failure(session, "info", file="tempo.tscope", by="op")
            self.assertIn("--peak", said)
            self.assertIn("Field required", await self.failure(session, "info"))

    async def test_a_file_is_never_an_option(self):
        async with self.client() as session:
            files = ["tempo.tscope", f"--charts={self.folder}"]
            said = await self.failure(session, "compare", files=files)
        self.assertIn(f"./--charts={self.folder} does not exist", said)

    async def test_a_program_that_fails_and_one_that_does_not_end(self):
        async with self.client() as session:
            told = functools.partial(self.told, session, "run", output=str(self.file))
            text, document = await told(command=["sh", "-c", "echo I give up; exit 3"])
            self.assertEqual(document["exit_code"], 3)
            self.assertTrue(text.startswith(document["sentence"]), text)
            self.assertIn("I give up", text)
            text, _ = await told(command=["sleep", "600"], timeout_s=0.5)
            self.assertIn("It was ended after 0.5 s (timeout_s).", text)

    async def test_nothing_is_written_outside_of_the_folder(self):
        async with self.client() as session:
            for output in ("x.tscope", str(self.folder / ".." / "x.tscope")):
                said = await self.failure(session, "run", command=["true"], output=output)
                self.assertIn("is outside of", said)


class WithoutParts(Commands):
    def refused(self, python) -> str:
        environment = os.environ | {"TEMPOSCOPE_PYTHON": str(python)}
        ran = temposcope("mcp", env=environment, input="")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
        self.assertIn("temposcope[mcp]", ran.stderr)
        return ran.stderr

    def test_without_python(self):
        self.assertIn("/absent/python cannot be started", self.refused("/absent/python"))

    def test_without_the_package(self):
        bare = self.folder / "python"
        bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
        bare.chmod(0o755)
        self.assertIn("No module named", self.refused(bare))

    def test_a_folder_that_cannot_be(self):
        ran = temposcope("mcp", "--output", "/dev/null/folder")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("The folder /dev/null/folder cannot be made: ", ran.stderr)


if __name__ == "__main__":
    unittest.main()
