"""The files that come back from the machine with the GPU: a document of figures, and an archive of
traces and recordings in parts.

A machine may hand back only a few files of limited size, so each command makes at most five:

    nvidia-h200-streams.json    nvidia-h200-streams.tar.0    nvidia-h200-streams.tar.1 ...

They are rewritten after each check, so that a crash in a later one loses nothing. The tar file has
its files compressed one by one: adding to it does not compress the others again.
"""

import json
import lzma
import os
import pathlib
import re
import shutil
import tarfile
import tempfile

PART_BYTES = 15 << 20
PARTS = 4


def replace_file(path: pathlib.Path, data: bytes):
    """Writes a file so that a reader sees the old or the new one, and no half."""
    beside = path.with_name(f".{path.name}.writing")
    beside.write_bytes(data)
    os.replace(beside, path)


def write_document(path: pathlib.Path, document: dict):
    replace_file(path, (json.dumps(document, indent=1) + "\n").encode())


class Archive:
    """Collects the files of a folder as they appear."""

    def __init__(self, folder: pathlib.Path, out: pathlib.Path, stem: str, scratch: pathlib.Path):
        self.folder = folder
        self.out, self.stem = out, stem
        self.path = scratch / "archive.tar"
        self.packed = set()
        self.left_out = []  # what would not come back
        for path in out.glob(f"{stem}.tar.*"):  # of an earlier run
            path.unlink()

    def add_new_files(self):
        """Adds what the folder has gained, the smallest files first, and rewrites the parts."""
        new = [path for path in self.folder.rglob("*")
               if path.is_file() and path not in self.packed]
        with tarfile.open(self.path, "a") as tar:
            for path in sorted(new, key=lambda path: (path.stat().st_size, path)):
                self.packed.add(path)
                self.add(tar, path)
        data = self.path.read_bytes()
        for i in range(-(-len(data) // PART_BYTES)):
            part = data[i * PART_BYTES:(i + 1) * PART_BYTES]
            replace_file(self.out / f"{self.stem}.tar.{i}", part)

    def add(self, tar: tarfile.TarFile, path: pathlib.Path):
        name = str(path.relative_to(self.folder))
        packed = self.path.with_name("member.xz")
        packed.write_bytes(lzma.compress(path.read_bytes(), preset=1))
        end = tar.offset + packed.stat().st_size + tarfile.RECORDSIZE
        if end > PARTS * PART_BYTES:
            self.left_out.append(name)
            return
        tar.add(packed, f"{name}.xz")


# ---- on the machine that keeps the results -------------------------------------------------------


def collect(folders: list, target: pathlib.Path) -> list:
    """Unpacks the results of several commands into `target`, and merges the documents of each GPU
    into one. Returns the merged documents' paths."""
    merged = {}
    for path in sorted(path for folder in folders for path in folder.rglob("*.json")):
        document = json.loads(path.read_text())
        if "rows" not in document or "group" not in document:
            continue
        unpack(path.parent, path.stem, target / path.stem)
        shutil.copy2(path, target / path.stem)
        gpu = path.stem.removesuffix(f"-{document['group']}")
        merged.setdefault(gpu, []).append(document)
    paths = []
    for gpu, documents in merged.items():
        paths.append(target / f"{gpu}.json")
        write_document(paths[-1], merge(documents))
    return paths


def merge(documents: list) -> dict:
    """One document with the rows of all, in the order in which they were measured."""
    documents = sorted(documents, key=lambda document: document["started_unix_s"])
    rows = [{"group": document["group"]} | row for document in documents
            for row in document["rows"]]
    shared = {key: documents[-1][key] for key in ("device", "card", "missing")}
    return shared | {"rows": rows}


def unpack(folder: pathlib.Path, stem: str, target: pathlib.Path):
    """Joins the parts of an archive and unpacks its files."""
    target.mkdir(parents=True, exist_ok=True)
    parts = sorted(folder.glob(f"{stem}.tar.*"), key=lambda path: int(path.suffix[1:]))
    if not parts:
        return
    with tempfile.TemporaryFile() as whole:
        for part in parts:
            whole.write(part.read_bytes())
        whole.seek(0)
        with tarfile.open(fileobj=whole) as tar:
            for member in tar:
                path = target / member.name.removesuffix(".xz")
                if not member.isfile() or not path.resolve().is_relative_to(target.resolve()):
                    raise SystemExit(f"gpu-check: {parts[0]} has a strange file {member.name}")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(lzma.decompress(tar.extractfile(member).read()))


def stem_of(device: str, gpu_name: str, names: str) -> str:
    """The name of the result files: nvidia-h200-streams."""
    words = re.findall(r"[a-z0-9]+", gpu_name.lower())
    prefix = {"cuda": [], "virtual": ["virtual"], "none": ["no", "gpu"]}[device]
    return "-".join([*prefix, *words, group_of(names)])


def group_of(names: str) -> str:
    return "-".join(name for name in names.split(",") if name) or "all"
