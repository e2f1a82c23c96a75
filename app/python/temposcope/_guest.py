"""What fails in a recording is the recording, not the program."""

import functools
import os
import traceback

from ._terms import RecordingError


def recording_error(error: Exception) -> RecordingError:
    if isinstance(error, RecordingError):
        return error.with_traceback(None)  # its frames would keep the program's tensors
    place = traceback.extract_tb(error.__traceback__)[-1]
    return RecordingError(
        f"Temposcope itself failed in {os.path.basename(place.filename)}, line {place.lineno}, "
        f"with {type(error).__name__} ({error}): please report it; the program went on without it"
    )


def guest(call):
    """Decorates a method that the program calls, by a hook or a mark: one thread at a time
    (`_lock`), nothing once it `has_ended`, and what it raises goes to `fail`."""

    @functools.wraps(call)
    def guarded(self, *args):
        if self.has_ended:  # also in a forked process, where the lock may be held for ever
            return None
        with self._lock:
            if self.has_ended:
                return None
            try:
                return call(self, *args)
            except Exception as error:
                self.fail(error)
                return None

    return guarded
