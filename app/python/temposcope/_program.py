"""Follows the program that `temposcope run` started, and says at its end what became of it.

TEMPOSCOPE_RUN is JSON: {"file": trace, "status": file for what happened, "steps": 3, "skip": 1,
"stop": false, "gpu": "h100-sxm" or null}. Each line of the status file is a JSON object: the last
one holds. app/commands/run.cpp starts the program and reads them.
"""

import atexit
import json
import os
import sys
import threading

import torch

from . import _recorder
from ._session import Session


class Status:
    """What the process that records tells the one that started it."""

    def __init__(self, path: str):
        self._path = path

    def claim(self) -> bool:
        """Whether this process is the first that takes a step. The others record nothing."""
        try:
            os.close(os.open(self._path + ".owner", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def add(self, **what) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")


class Program:
    """The recording of this process, from the import of torch to its end."""

    def __init__(self, options: dict):
        self._status = Status(options["status"])
        self._stops = options["stop"]
        self._asked_to_stop = False
        self._owner = os.getpid()
        self._session = Session(
            options["file"],
            skip=options["skip"],
            steps=options["steps"],
            may_record=self._status.claim,
            on_recorded=self._recorded,
        )
        self._how_it_ended = ""  # "with ValueError"

    def follow(self) -> None:
        self._status.add(state="torch", version=torch.__version__)
        self._session.watch()
        atexit.register(self._at_exit)
        self._excepthook, sys.excepthook = sys.excepthook, self._on_exception

    def _recorded(self) -> None:
        self._status.add(state="complete", steps=self._session.recorded_steps)
        if not self._stops:
            return
        sys.stdout.flush()
        if threading.current_thread() is threading.main_thread():
            raise SystemExit(0)
        os._exit(0)

    def _on_exception(self, kind, value, traceback):
        self._how_it_ended = kind.__name__
        if isinstance(value, torch.OutOfMemoryError) and self._session.is_recording:
            _recorder.add_note("out_of_memory", _recorder.Severity.ERROR, str(value))
        self._excepthook(kind, value, traceback)

    def _at_exit(self) -> None:
        session = self._session
        if os.getpid() != self._owner or session.has_ended and session.error is None:
            return
        was_recording = session.is_recording
        if was_recording:
            if self._how_it_ended:
                _recorder.add_note(
                    "program_ended",
                    _recorder.Severity.WARNING,
                    f"The program ended with {self._how_it_ended} before the last step that was "
                    "asked for.",
                )
            session.end(complete=False)
        if session.error is not None:
            self._status.add(state="failed", sentence=str(session.error))
        elif was_recording and session.has_rows:
            self._status.add(
                state="incomplete", steps=session.recorded_steps, exception=self._how_it_ended
            )
        elif session.seen_steps > 0 or self._how_it_ended:
            self._status.add(
                state="ended", seen_steps=session.seen_steps, exception=self._how_it_ended
            )


def follow() -> None:
    """Called once torch is imported."""
    Program(json.loads(os.environ["TEMPOSCOPE_RUN"])).follow()
