#pragma once

#include "models/config/result.h"
#include "profiler/formats/parts/byte_stream.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// The events of a trace of the PyTorch profiler, sorted by what they are and not yet connected.
/// kineto_trace.cpp turns them into a Trace.
///
/// Times are nanoseconds on the clock of the file. Texts are rows of the string table of the trace
/// to be.
namespace profiler::kineto {

enum class SpanKind : uint8_t { kOp, kAnnotation, kPython, kApi };

/// The call stack of an event, as the file has it.
struct StackOfEvent {
    StringId text;    // 2021, and Temposcope: "a.py(12): f;b.py(3): g", the innermost first
    int64_t id = -1;  // Temposcope, where the texts would be long: that of its innermost frame
};

/// A frame of call stacks: Temposcope writes it before the first event that refers to it.
struct StackFrameEvent {
    int64_t id = -1;
    int64_t parent = -1;  // of the caller's frame
    StringId name;        // "a.py(12): f"
};

/// Something that a thread of the host did: an op, a range of the user, a Python function, a call
/// of the CUDA API.
struct HostSpan {
    StringId name;
    int32_t thread = 0;  // index into KinetoEvents::threads
    SpanKind kind = SpanKind::kOp;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t external_id = -1;
    int64_t correlation = -1;  // of a call of the API
    int64_t sequence = -1;     // autograd's number: a backward op has that of its forward op
    bool is_backward = false;  // "Fwd thread id" is not 0
    StringId call_stack;       // 2021: the text of a StackOfEvent
};

/// What an op says to other ranks: `collective` is without op, kernel, communicator and times.
struct CollectiveEvent {
    std::size_t span = 0;  // index into KinetoEvents::spans
    Collective collective;
    Communicator communicator;
};

enum class WorkKind : uint8_t { kKernel, kMemcpy, kMemset };

/// Something that a device did.
struct DeviceWork {
    StringId name;
    WorkKind kind = WorkKind::kKernel;
    int64_t device = 0;
    int64_t stream = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t correlation = -1;
    int64_t external_id = -1;
    std::array<int64_t, 3> grid{};
    std::array<int64_t, 3> block{};
    int64_t registers_per_thread = 0;
    int64_t shared_memory_bytes = 0;
    int64_t size_bytes = 0;  // of a copy
};

/// "[memory]" and "[OutOfMemory]".
struct MemoryChangeEvent {
    int64_t time_ns = 0;
    int32_t thread = 0;
    bool is_out_of_memory = false;
    bool is_host = false;
    int64_t device = 0;
    int64_t address = -1;          // -1: 2021 did not write it
    int64_t size_bytes = 0;        // negative: a free
    int64_t allocated_bytes = -1;  // after it; -1: 2021 did not write it
    int64_t reserved_bytes = -1;
    StackOfEvent call_stack;  // of an allocation that Temposcope wrote
};

/// One end of an arrow from a launch to its kernel, or from a forward op to its backward op.
struct FlowEnd {
    int64_t id = 0;
    int32_t thread = 0;
    int64_t time_ns = 0;
    bool is_start = false;
};

struct ThreadName {
    std::string process;  // as the file writes them: "783658"
    std::string thread;   // "785244", "stream 7"
    std::string name;     // of the metadata, may be empty
};

/// The values beside the events that say something of the run.
inline constexpr std::array<std::string_view, 8> kValueKeys{
    "baseTimeNanoseconds", "distributedInfo",     "deviceProperties",   "cuda_runtime_version",
    "cuda_driver_version", "hip_runtime_version", "hip_driver_version", "cupti_version"};

struct KinetoEvents {
    std::vector<HostSpan> spans;
    std::vector<CollectiveEvent> collectives;
    std::vector<DeviceWork> work;
    std::vector<MemoryChangeEvent> memory;
    std::vector<StackFrameEvent> stack_frames;
    std::vector<FlowEnd> backward_flows;
    std::vector<FlowEnd> launch_flows;  // kernels of files without correlation ids
    std::vector<ThreadName> threads;
    std::map<std::string, std::string, std::less<>> values;  // JSON, by a key of kValueKeys
    int64_t unknown_events = 0;  // complete events of a category that is not read
    bool ended_early = false;

    bool empty() const { return spans.empty() && work.empty() && memory.empty(); }
};

/// What the events of a file may take in memory: 5 GiB, or half of what is free.
std::size_t most_event_bytes();

/// Reads the events of a file.
/// Errors: as ByteStream; not JSON, or JSON of something else; events that take more than
/// `most_bytes`: one sentence with the path and the offset.
models::Result<KinetoEvents> read_events(const std::filesystem::path& path,
                                         const ReadOptions& options, StringTable& strings,
                                         std::size_t most_bytes = most_event_bytes());

}  // namespace profiler::kineto
