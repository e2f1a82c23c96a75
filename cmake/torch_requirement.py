"""The torch that the Python package requires, for pyproject.toml: that of scripts/setup. A package
with libraries for several versions requires the oldest of them or a newer one: scripts/package
names it in TEMPOSCOPE_OLDEST_TORCH."""

import os


def dynamic_metadata(field, settings=None):
    oldest = os.environ.get("TEMPOSCOPE_OLDEST_TORCH")
    return [f"torch>={oldest}" if oldest else "torch==2.11.*"]
