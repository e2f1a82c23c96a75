"""A client of temposcope-worker in Python, for machines that do not have the window's program. It
speaks the protocol of profiler/protocol."""

import json
import os
import socket
import struct
import subprocess
import tempfile
import time

PROTOCOL = 5
WORKER_DESCRIPTOR = 3


class WorkerError(Exception):
    """The worker's error sentence and the exit code that it asks for."""

    def __init__(self, sentence: str, exit_code: int = 1):
        super().__init__(sentence)
        self.exit_code = exit_code


class WorkerTimeout(WorkerError):
    """The worker did not answer in time. It was ended."""


def encode_frame(header: dict) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<II", len(text), 0) + text


def read_exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(min(count - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return data


def read_frame(connection: socket.socket) -> dict:
    header_bytes, payload_bytes = struct.unpack("<II", read_exactly(connection, 8))
    header = json.loads(read_exactly(connection, header_bytes))
    read_exactly(connection, payload_bytes)
    return header


def last_line(text: str, otherwise: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else otherwise


def request(worker: str, fields: dict, environment: dict, timeout_s: float) -> dict:
    """Starts a worker, sends one request and returns the result frame. Raises WorkerError."""
    ours, theirs = socket.socketpair()
    ours.settimeout(timeout_s)

    def keep_socket():  # runs in the child after fork: moves its end to descriptor 3
        os.dup2(theirs.fileno(), WORKER_DESCRIPTOR)

    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [worker],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            pass_fds=(
                (theirs.fileno(), WORKER_DESCRIPTOR)
                if theirs.fileno() != WORKER_DESCRIPTOR
                else (WORKER_DESCRIPTOR,)
            ),
            preexec_fn=keep_socket,
        )
        theirs.close()
        try:
            hello = read_frame(ours)
            if hello.get("protocol") != PROTOCOL:
                raise WorkerError(
                    f"the worker speaks protocol {hello.get('protocol')}, not {PROTOCOL}; "
                    "take both from the same build"
                )
            ours.sendall(encode_frame(complete(fields)))
            # The timeout covers the whole request, because a stuck worker still sends live samples.
            end = time.monotonic() + timeout_s
            while True:
                ours.settimeout(max(0.01, end - time.monotonic()))
                frame = read_frame(ours)
                if frame["kind"] == "result":
                    return frame
                if frame["kind"] == "error":
                    raise WorkerError(frame["message"], frame["exit_code"])
        except TimeoutError:
            raise WorkerTimeout(f"the worker did not answer within {timeout_s:.0f} s") from None
        except (EOFError, ConnectionError):
            process.wait()
            log.seek(0)
            said = last_line(log.read().decode(errors="replace"), "it wrote no log")
            raise WorkerError(f"the worker ended ({process.returncode}): {said}") from None
        finally:
            ours.close()
            process.kill()
            process.wait()


def complete(fields: dict) -> dict:
    """Makes a request frame with every field that the worker reads."""
    return {
        "protocol": PROTOCOL,
        "id": 1,
        "kind": "request",
        "workload": {},
        "device": "cpu",
        "output_path": "",
        "memory_limit_bytes": -1,
        "warmup_steps": 1,
        "steps": 3,
        "num_threads": 0,
        "batch_sizes": [],
        "compute_capability": "",
        "gpu_index": 0,
        "records_kernels": True,
        "layout_runs": [],
        "benchmark": {},
        "seconds": 0.0,
        "takes_turns": False,
    } | fields


def gpt(layers: int, hidden: int = 768, **changes) -> dict:
    """The JSON workload of a GPT-2 of this size, as models/config writes it."""
    described = bert(layers, hidden, **changes)
    described["model"] |= {
        "name": "gpt2",
        "family": "gpt2",
        "vocab_size": 50257,
        "max_position_embeddings": 1024,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-5,
    }
    return described


def bert(layers: int, hidden: int = 1024, **changes) -> dict:
    """The JSON workload of a BERT of this size, as models/config writes it."""
    model = {
        "name": "bert-large",
        "family": "bert",
        "hidden_size": hidden,
        "num_layers": layers,
        "num_heads": hidden // 64,
        "intermediate_size": 4 * hidden,
        "vocab_size": 30522,
        "max_position_embeddings": 512,
        "first_position": 0,
        "type_vocab_size": 2,
        "hidden_dropout_p": 0.1,
        "attention_dropout_p": 0.1,
        "layer_norm_eps": 1e-12,
    }
    recipe = changes.pop("recipe", "original")
    return {
        "model": model,
        "head": "layers",
        "recipe_name": recipe,
        "recipe": recipe,
        "precision": "fp32",
        "batch_size": 8,
        "seq_len": 512,
        "gradient_accumulation_steps": 1,
        "input_requires_grad": True,
        "padding": "none",
        "seed": 0,
        "learning_rate": 1e-4,
    } | changes
