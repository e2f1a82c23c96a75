"""Times calls on a device. On CUDA the calls are replayed from a graph, so that the host's share of
a launch does not count."""

import statistics
import time

import torch

REPEATS = 10  # calls in a graph: events resolve half a microsecond


def graph_of(call, repeats: int = REPEATS) -> torch.cuda.CUDAGraph:
    """A graph of several calls. They run once before, because the first call of a library does what
    a graph may not contain."""
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        call()
    main.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for _ in range(repeats):
            call()
    return graph


def seconds_on_gpu(work) -> float:
    """The time that the GPU takes for the work that `work` enqueues."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def timer(call, device: str):
    """A function that measures the seconds of one call."""
    if device == "cuda":
        graph = graph_of(call)
        return lambda: seconds_on_gpu(graph.replay) / REPEATS

    def seconds_on_host() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    call()
    return seconds_on_host


def medians_in_turns(calls: list, device: str, rounds: int) -> list:
    """Median seconds of each call. The calls run in turn, so drift affects all of them alike."""
    timers = [timer(call, device) for call in calls]
    times = [[] for _ in calls]
    for i in range(rounds):
        order = range(len(calls)) if i % 2 else reversed(range(len(calls)))
        for j in order:
            times[j].append(timers[j]())
    return [statistics.median(row) for row in times]
