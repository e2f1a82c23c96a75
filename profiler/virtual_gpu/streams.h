#pragma once

#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/work.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

/// Streams, events and graphs. Work is complete as soon as it is given to a stream.
///
/// Events measure virtual time, so that what a program chooses by measured times, such as the
/// configuration of a kernel, is the same in each run. Each stream has a clock, which its work
/// moves on. The host has one, too: where it waits for a stream, its clock moves up to the
/// stream's, and work that it then gives to any stream begins no earlier.
namespace profiler::virtual_gpu {

/// The work of a graph while it is captured, and afterwards.
struct Graph {
    uint64_t capture_id = 0;
    bool has_ended = false;
    std::vector<Work> work;
    std::vector<std::pair<const void*, std::size_t>> writes;  // address and bytes
};

struct Stream {
    int device = 0;
    uint32_t number = 0;  // as CUPTI numbers it, unique in the process
    int priority = 0;
    unsigned flags = 0;
    std::shared_ptr<Graph> capture;      // null: work runs
    std::atomic<uint64_t> clock_ns = 0;  // virtual: the end of its work
};

struct Event {
    std::atomic<uint64_t> recorded_ns = 0;  // virtual
    std::atomic<uint64_t> recording = 0;    // unique in the process; 0: not recorded yet
    std::shared_ptr<Graph> capture;         // of the stream that recorded it
};

/// CUDA's default streams are streams of the current device.
Stream& stream_of(cudaStream_t handle);

/// Whether some stream captures a graph.
bool captures();
/// The graph that is captured will write there each time it runs. Without a capture, nothing.
void add_captured_write(const void* address, std::size_t size);

/// Gives work to a stream: it is in the graph that the stream captures, or it has run.
void submit(cudaStream_t stream, Work work);

/// The host waits for all streams of a device.
void synchronize_device(int device);

/// Real time.
uint64_t steady_now_ns();

}  // namespace profiler::virtual_gpu
