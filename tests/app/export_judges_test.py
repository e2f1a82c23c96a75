"""PyTorch's own tools open what `temposcope export` writes: torch.cuda._memory_viz as the judge."""
import collections
import gzip
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings

warnings.simplefilter("ignore")
import torch.cuda._memory_viz as memory_viz  # noqa: E402

PROGRAM = sys.argv.pop(1)
EXAMPLE = sys.argv.pop(1)
SAMPLES = pathlib.Path(os.environ.get("TEMPOSCOPE_SAMPLES", "/nowhere"))


def export(source, to, output):
    subprocess.run([PROGRAM, "export", str(source), "--to", to, "-o", str(output)], check=True,
                   stdout=subprocess.DEVNULL)


def rows_of(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path) as file:
        return json.load(file)


class ExportJudges(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def snapshot_of(self, source):
        export(source, "snapshot", self.path("a.pickle"))
        with open(self.path("a.pickle"), "rb") as file:
            return pickle.load(file)

    @staticmethod
    def blocks_in_use(snapshot):
        """Call stacks and bytes. (The stacks of blocks that are free are not kept.)"""
        lines = memory_viz.memory(snapshot, format_flamegraph=lambda text: text).splitlines()
        return sorted(line for line in lines if ";active_allocated;" in line)

    def test_memory_viz_says_the_same_of_a_snapshot_and_of_its_export(self):
        files = sorted(SAMPLES.glob("*.pickle"))
        if not files:
            self.skipTest("no snapshots: set TEMPOSCOPE_SAMPLES")
        for source in files:
            with open(source, "rb") as file:
                original = pickle.load(file)
            written = self.snapshot_of(source)
            self.assertEqual(memory_viz.segsum(original), memory_viz.segsum(written))
            self.assertEqual(memory_viz.trace(original), memory_viz.trace(written))
            self.assertEqual(self.blocks_in_use(original), self.blocks_in_use(written))
            self.assertIn("<html", memory_viz.segment_plot(written))

    def peak_of(self, path):
        command = [PROGRAM, "info", str(path), "--json"]
        ran = subprocess.run(command, check=True, capture_output=True)
        info = json.loads(ran.stdout)
        return info["peak_allocated_bytes"], info["allocator"]

    def test_what_python_pickles_in_any_protocol_and_as_json_is_read(self):
        files = sorted(SAMPLES.glob("*.pickle"))
        if not files:
            self.skipTest("no snapshots: set TEMPOSCOPE_SAMPLES")
        source = min(files, key=lambda file: file.stat().st_size)
        with open(source, "rb") as file:
            snapshot = pickle.load(file)
        expected = self.peak_of(source)
        for protocol in (2, 3, 4, 5):
            self.path("p.pickle").write_bytes(pickle.dumps(snapshot, protocol=protocol))
            self.assertEqual(expected, self.peak_of(self.path("p.pickle")), protocol)
        self.path("s.json").write_text(json.dumps(snapshot))
        self.assertEqual(expected, self.peak_of(self.path("s.json")))

    def test_annotations_come_back(self):
        for source in sorted(SAMPLES.glob("*.pickle")):
            with open(source, "rb") as file:
                marks = pickle.load(file)["external_annotations"]
            if not marks:
                continue
            written = self.snapshot_of(source)["external_annotations"]
            keys = ("name", "stage", "time_us")
            self.assertEqual([[mark[key] for key in keys] for mark in marks],
                             [[mark[key] for key in keys] for mark in written])
            return
        self.skipTest("no snapshot with annotations: set TEMPOSCOPE_SAMPLES")

    def test_the_timeline_has_the_form_of_one_that_torch_wrote(self):
        sample = SAMPLES / "memory_timeline.raw.gz"
        if not sample.exists():
            self.skipTest("no timeline: set TEMPOSCOPE_SAMPLES")
        export(EXAMPLE, "hta", self.path("a.raw.json.gz"))
        for path in (sample, self.path("a.raw.json.gz")):
            rows = rows_of(path)
            self.assertGreater(len(rows), 100)
            total = 0
            for time, action, size, category in rows:
                self.assertTrue(time == -1 if action == 1 else time > 0, path)
                self.assertIn(action, (1, 2, 3, 4))
                self.assertIn(category, range(8))
                self.assertTrue(size >= 0 if action in (1, 2) else size <= 0 or action == 3)
                total += size
            self.assertGreaterEqual(total, 0)

    def test_memory_viz_draws_a_capture(self):
        written = self.snapshot_of(EXAMPLE)
        self.assertIn("<html", memory_viz.trace_plot(written))
        events = written["device_traces"][0]
        count = collections.Counter(event["action"] for event in events)
        self.assertGreater(count["alloc"], 100)
        self.assertGreaterEqual(count["alloc"], count["free_completed"])
        self.assertTrue(any(event["frames"] for event in events))

    def test_chrome_json_and_timeline_hold_the_same_memory(self):
        export(EXAMPLE, "chrome", self.path("a.json.gz"))
        export(EXAMPLE, "hta", self.path("a.raw.json.gz"))
        trace = rows_of(self.path("a.json.gz"))
        memory = [e for e in trace["traceEvents"] if e["name"] == "[memory]"]
        total = highest = 0
        for event in memory:
            total += event["args"]["Bytes"]
            highest = max(highest, total)
            self.assertEqual(total, event["args"]["Total Allocated"])
        timeline = rows_of(self.path("a.raw.json.gz"))
        total = most = 0
        for _, action, size, category in timeline:
            total += size
            most = max(most, total)
            self.assertIn(action, (1, 2, 4))
            self.assertIn(category, range(8))
        self.assertEqual(len(memory), len(timeline))
        self.assertEqual(highest, most)

    def test_perfetto_and_hta_find_what_they_need(self):
        export(EXAMPLE, "chrome", self.path("a.json"))
        text = self.path("a.json").read_text()
        self.assertRegex(text, r'"rank":\s+\d+')
        events = json.loads(text)["traceEvents"]
        counters = {e["name"] for e in events if e["ph"] == "C"}
        self.assertIn("allocated activation", counters)
        for event in events:
            self.assertGreaterEqual(event["pid"], 0)
            self.assertGreaterEqual(event.get("tid", 0), 0)
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
        arrows = collections.Counter(e["id"] for e in events if e["ph"] in "sf")
        self.assertTrue(all(ends == 2 for ends in arrows.values()))


if __name__ == "__main__":
    unittest.main()
