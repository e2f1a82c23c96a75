"""Writes the snapshot of a process with two GPUs: cuda:0 has most events, and cuda:1 ran out.

other_gpu_ran_out.py FILE
"""

import pickle
import sys

SIZE = 8 << 20


def at(line):
    return [{"filename": "/home/me/train.py", "line": line, "name": "forward"}]


def event(action, address, line, device, **more):
    plain = {"size": SIZE, "stream": 0, "time_us": 1}
    return plain | {"action": action, "addr": address, "frames": at(line), "device": device} | more


def segment(device, address, blocks):
    size = len(blocks) * SIZE
    used = SIZE * sum(block["state"] == "active_allocated" for block in blocks)
    sizes = dict.fromkeys(("allocated_size", "active_size", "requested_size"), used)
    plain = {"stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "frames": []}
    where = {"device": device, "address": address, "total_size": size, "is_expandable": False}
    return plain | where | sizes | {"blocks": blocks}


def block(address, state):
    sizes = {"size": SIZE, "requested_size": SIZE}
    return {"address": address, "state": state, "frames": at(11)} | sizes


FIRST, SECOND = 0x7F0000000000, 0x7F8000000000
busy = [event("segment_alloc", FIRST, 1, 0)]
for _ in range(400):
    busy.append(event("alloc", FIRST, 10, 0))
    busy += [event(action, FIRST, 10, 0) for action in ("free_requested", "free_completed")]
addresses = [SECOND + i * SIZE for i in range(8)]
full = [event("segment_alloc", SECOND, 1, 1, size=8 * SIZE)]
full += [event("alloc", address, 11, 1) for address in addresses]
full.append(event("oom", 0, 99, 1, device_free=123456))
snapshot = {
    "segments": [
        segment(0, FIRST, [block(FIRST, "inactive")]),
        segment(1, SECOND, [block(address, "active_allocated") for address in addresses]),
    ],
    "device_traces": [busy, full],
    "allocator_settings": {},
}
with open(sys.argv[1], "wb") as file:
    pickle.dump(snapshot, file)
