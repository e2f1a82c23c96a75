"""Opens pages of `temposcope view` in headless Chromium and reads what they say about themselves.

The page keeps its state in data attributes of <html> (assets/page/state.js); Chromium prints the
document after the scripts have run. Fragments of the address zoom, sort and filter."""

import base64
import hashlib
import html
import os
import pathlib
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TEMPOSCOPE", str(ROOT / "build/bin/temposcope"))
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
PICTURES = os.environ.get("TEMPOSCOPE_PICTURES", "")
GOLDEN = ROOT / "tests/golden/trace_v1.tscope"
HOSTILE = "</script><img src=x onerror=document.documentElement.dataset.pwned=1>"
WRITING_BACKWARDS = "a\u202eb"


def copy_trace(path: pathlib.Path, renamed: dict[str, str]) -> pathlib.Path:
    """The golden trace with other texts in it."""
    shutil.copyfile(GOLDEN, path)
    path.chmod(0o600)
    database = sqlite3.connect(path)
    column = database.execute("SELECT * FROM string").description[1][0]
    for old, new in renamed.items():
        database.execute(f'UPDATE string SET "{column}" = ? WHERE "{column}" = ?', (new, old))
    database.commit()
    database.close()
    return path


def write_snapshot(path: pathlib.Path, name: str) -> pathlib.Path:
    """A memory snapshot, as torch.cuda.memory._dump_snapshot writes it, with a name in it."""
    frames = [{"name": name, "filename": f"/home/me/{name}.py", "line": 7}]
    whole = {"addr": 2**30, "size": 2**27, "stream": 0, "frames": frames, "time_us": 10**15}
    events = [whole | {"action": "segment_alloc"}]
    blocks = [whole | {"addr": 2**30 + 2**21 * i, "size": 2**21} for i in range(40)]
    for action in ("alloc", "free_requested", "free_completed"):
        for block in blocks:
            time_us = 10**15 + 100 * len(events)
            events.append(block | {"action": action, "time_us": time_us})
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}))
    return path


def write_page(folder: pathlib.Path, *files: pathlib.Path) -> pathlib.Path:
    page = folder / ("-".join(file.stem for file in files) + ".html")
    subprocess.run([PROGRAM, "view", *map(str, files), "-o", str(page)], check=True, timeout=120)
    return page


def run_chromium(page: pathlib.Path, fragment: str, *options: str) -> str:
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [
                CHROMIUM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                "--virtual-time-budget=5000",
                *options,
                f"{page.as_uri()}#{fragment}",
            ],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout


class Document:
    """The document after its scripts have run."""

    def __init__(self, text: str):
        self.text = text
        element = re.search(r"<html[^>]*>", text)
        attributes = re.findall(r'data-([a-z-]+)="([^"]*)"', element[0] if element else "")
        self.state = {name: html.unescape(value) for name, value in attributes}

    def cells(self, column: int) -> list[str]:
        """The texts of one column of the ledger that are drawn."""
        body = re.search(r'<tbody id="ledger-rows">(.*?)</tbody>', self.text, re.S)
        rows = re.findall(r"<tr>(.*?)</tr>", body[1] if body else "", re.S)
        return [
            html.unescape(re.sub(r"<[^>]*>", "", re.findall(r"<td.*?</td>", row, re.S)[column]))
            for row in rows
        ]


def write_chart(folder: pathlib.Path, *files: pathlib.Path) -> pathlib.Path:
    page = folder / "chart.html"
    command = [PROGRAM, "export", *map(str, files), "--to", "html", "-o", str(page)]
    subprocess.run(command, check=True, timeout=120)
    return page


class WithPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="temposcope-page-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.a = copy_trace(cls.folder / "a.tscope", {})
        cls.b = copy_trace(cls.folder / "b.tscope", {"original": "tempo"})
        cls.one = write_page(cls.folder, cls.a)
        cls.two = write_page(cls.folder, cls.a, cls.b)


class WithoutABrowser(WithPages):
    def test_policy_has_the_hash_of_each_script_and_style(self):
        text = self.one.read_text(encoding="utf-8")
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
        parts = re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", text, re.S)
        self.assertGreater(len(parts), 5)
        for part in parts:
            digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
            self.assertIn(f"'sha256-{digest}'", policy)
        self.assertNotIn("unsafe", policy)


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class InABrowser(WithPages):
    def open(self, page: pathlib.Path, fragment: str = "", *options: str) -> Document:
        document = Document(run_chromium(page, fragment, "--dump-dom", *options))
        self.assertEqual(document.state.get("state"), "ready", document.state)
        self.assertEqual(document.state["errors"], "0", document.state.get("error"))
        return document

    def test_draws_one_trace_and_two(self):
        for page, count in ((self.one, 1), (self.two, 2)):
            state = self.open(page).state
            self.assertEqual(state["zoom"], "0-1")
            blocks = [int(number) for number in state["blocks"].split()]
            self.assertEqual(len(blocks), count)
            self.assertGreater(min(blocks), 20)

    def test_a_chart_sorts_its_table_and_shows_values_to_point_at(self):
        chart = write_chart(self.folder, self.a, self.b)
        def names(fragment):
            text = run_chromium(chart, fragment, "--dump-dom")
            self.assertIn('<div id="readout"', text)  # the script ran to its end
            return re.findall(r"<tr><td[^>]*>([^<]*)</td>", text)
        as_written = names("")
        self.assertGreater(len(as_written), 3)
        self.assertEqual(as_written[-1], "total")
        self.assertEqual(names("sort=1")[0], "total")  # numbers come down from the largest
        self.assertEqual(names("sort=0"), sorted(as_written, key=str.lower))

    def test_zooms_to_the_fragment(self):
        whole = self.open(self.one).state
        state = self.open(self.one, "zoom=0.2-0.4").state
        self.assertEqual(state["zoom"], "0.2-0.4")
        self.assertNotEqual(state["blocks"], whole["blocks"])
        self.assertEqual(self.open(self.one, "zoom=0.4-0.2").state["zoom"], "0-1")
        self.assertEqual(self.open(self.one, "zoom=abc").state["zoom"], "0-1")
        deep = self.open(self.one, "zoom=0.5-0.500000001").state["zoom"].split("-")
        self.assertLess(float(deep[1]) - float(deep[0]), 0.01)

    def test_reads_the_moment_of_the_crosshair(self):
        one = self.open(self.one, "cursor=0.5").text
        self.assertRegex(one, r"Allocated</td><td>[\d.]+ [KMG]iB</td>")
        self.assertRegex(one, r" of step \d")
        self.assertIn("<th>B - A</th>", self.open(self.two, "cursor=0.5").text)

    def test_sorts_and_filters(self):
        document = self.open(self.one, "sort=tensor&order=asc")
        self.assertEqual(document.cells(0), sorted(document.cells(0)))
        self.assertEqual(int(document.state["rows"]), len(document.cells(0)))
        filtered = self.open(self.one, "filter=layer.1%20query")
        self.assertLess(int(filtered.state["rows"]), int(document.state["rows"]))
        self.assertGreater(int(filtered.state["rows"]), 0)
        self.assertTrue(all("encoder.layer.1" in module for module in filtered.cells(1)))
        self.assertLess(int(filtered.state["sum"]), int(document.state["sum"]))
        self.assertEqual(self.open(self.two, "changes=1").state["rows"], "0")
        self.assertEqual(self.open(self.one, "sort=constructor").state["errors"], "0")

    def test_follows_the_wanted_theme(self):
        dark = self.open(self.one, "theme=dark").state["theme"]
        light = self.open(self.one, "theme=light").state["theme"]
        self.assertEqual((dark, light), ("dark", "light"))
        system = self.open(self.one, "", "--blink-settings=preferredColorScheme=0").state["theme"]
        self.assertEqual(system, "dark")

    def test_shows_hostile_names_as_text(self):
        renamed = {
            "encoder.layer.0.attention.self.query": HOSTILE,
            "original": HOSTILE + "recipe",
            "gelu_output": HOSTILE + "tensor",
            "encoder.layer.1.attention.self.key": WRITING_BACKWARDS,
        }
        page = write_page(self.folder, copy_trace(self.folder / "hostile.tscope", renamed))
        document = self.open(page, "cursor=0.5")
        self.assertNotIn("pwned", document.state)
        self.assertNotIn("<img", document.text)
        self.assertIn(html.escape(HOSTILE, quote=False), document.text)
        self.assertIn(r"a\u202eb", document.text)

    def test_shows_a_snapshot_with_hostile_call_stacks(self):
        snapshot = write_snapshot(self.folder / "snapshot.pickle", HOSTILE)
        document = self.open(write_page(self.folder, snapshot))
        self.assertNotIn("pwned", document.state)
        self.assertEqual(document.state["rows"], "0")
        self.assertGreater(int(document.state["blocks"]), 1)

    def test_fits_a_phone_and_a_large_screen(self):
        for name, size, scale in (
            ("phone", "390,2400", 2),
            ("laptop", "1440,1600", 1),
            ("laptop_2x", "1440,1600", 2),
            ("4k", "3840,2160", 1),
        ):
            for theme in ("dark", "light"):
                folder = pathlib.Path(PICTURES or self.folder)
                folder.mkdir(parents=True, exist_ok=True)
                picture = folder / f"page_{name}_{theme}.png"
                options = [f"--window-size={size}", f"--force-device-scale-factor={scale}"]
                options.append(f"--screenshot={picture}")
                run_chromium(self.two, f"theme={theme}&cursor=0.4", *options)
                self.assertGreater(picture.stat().st_size, 20_000, name)


if __name__ == "__main__":
    if not pathlib.Path(PROGRAM).exists():
        print(f"skipped: {PROGRAM} is not built; run scripts/build")
        sys.exit(77)
    if not CHROMIUM:
        print("skipped: chromium is not installed, so no page was opened in a browser")
        tests = unittest.main(defaultTest="WithoutABrowser", exit=False)
        sys.exit(77 if tests.result.wasSuccessful() else 1)
    unittest.main()
