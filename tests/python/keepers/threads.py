"""Other threads: a variable of one, and what waits in a queue that it fills."""
import queue
import threading

import torch
from asking import find_keepers, note, noted, say

from temposcope._keepers import lines_of_threads


class Loader:
    def __init__(self):
        self.queue = queue.Queue(2)
        threading.Thread(target=self.fill, name="prefetch", daemon=True).start()

    def fill(self):
        batch = {"x": note(torch.zeros(1024))}
        self.queue.put({"x": note(torch.zeros(1024))})
        done.set()
        forever.wait()
        return batch


done, forever = threading.Event(), threading.Event()
loader = Loader()
done.wait()
say(find_keepers(noted))
for line in lines_of_threads():
    print(f"{line.thread}: {line.function}() at {line.line}")
