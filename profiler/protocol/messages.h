#pragma once

#include "models/config/result.h"
#include "profiler/protocol/exit_code.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

/// What `temposcope` and `temposcope-worker` say to each other (docs/dev/architecture.md, the
/// worker).
///
/// The worker answers one request at a time: it sends progress and samples while it works, then
/// exactly one result or error.
///
/// Workers that take turns (Request::takes_turns) stop before each step that is measured:
///
///     temposcope                      worker
///        request ──────────────────►  sets up, warms up
///        ◄────────── waits_for_turn   sleeps; meanwhile another worker runs its step
///        take_turn ────────────────►  runs one step
///        ◄────────── waits_for_turn   sleeps again; after the last step it sends its result
namespace profiler {

inline constexpr int kProtocolVersion = 5;
/// Descriptor of the worker's end of the socket pair. Standard output and error are the log.
inline constexpr int kWorkerDescriptor = 3;

/// Version of the program that this code was built into. Both sides must have the same.
std::string_view build_version();

struct Hello {
    int protocol = kProtocolVersion;
    std::string version;
};

enum class RequestKind : uint8_t {
    kDoctor,
    kCapture,
    kSweep,
    kPredictStep,
    kCalibrate,
    kTryBatches,  // as a sweep, but writes no file: the answer has the times
    kMeasureLayouts,
    kTimeLayoutRuns,  // whole layers, which layout_runs describes
    kBenchmark
};
/// What a request does, for "The ... was cancelled.": "capture", "measurement".
std::string_view work_of(RequestKind kind);

struct Request {
    RequestKind kind = RequestKind::kDoctor;
    nlohmann::json workload;          // of models::Workload
    std::string device = "cpu";       // "cpu" or "cuda": where to train
    std::string output_path;          // the final name, ending in .tscope
    int64_t memory_limit_bytes = -1;  // -1: none
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    int64_t num_threads = 0;           // 0: torch's default
    std::vector<int64_t> batch_sizes;  // of a sweep; empty: double until it fails, then bisect
    std::string compute_capability;    // of a predict_step: "8.0"
    int64_t gpu_index = 0;             // of a predict_step: the CUDA device to run on
    bool records_kernels = true;       // of a predict_step: plans do not look at them
    nlohmann::json layout_runs = nlohmann::json::array();  // each a LayoutRun
    nlohmann::json benchmark = {};                         // of a benchmark: models::Benchmark
    double seconds = 0;        // of a benchmark: how long its calls are repeated
    bool takes_turns = false;  // wait for a TakeTurn before each measured step (on the CPU)
};

/// What a worker is told with each permission to run a step.
struct TakeTurn {
    std::string run;      // identifies the captures that are measured in turn with each other
    int64_t recipes = 1;  // how many those are; 1: this one runs alone
};

struct Cancel {};

/// The worker is ready for its next step and sleeps until it gets a TakeTurn.
struct WaitsForTurn {
    int64_t held_bytes = 0;        // the worker's resident memory
    int64_t available_bytes = -1;  // memory that the machine could still give; -1: not known
};

struct Progress {
    std::string stage;  // "building the model", "warm-up", "step", "batch 12"
    int64_t done = 0;
    int64_t total = 0;  // 0: not known
};

/// Live counters, at most 30 a second.
struct Sample {
    int64_t time_ns = 0;
    int64_t allocated_bytes = 0;
    int64_t peak_bytes = 0;
    int64_t step = -1;
    std::string phase;
};

struct ResultFrame {
    std::string path;  // of the finished file
    nlohmann::json
        summary;          // of a doctor request: its checks; of a calibrate request: DeviceSpeed;
                          // of a try_batches request: MeasuredBatches;
                          // of a measure_layouts request: LayoutGraph;
                          // of a benchmark request: the device and models::BenchmarkTime
    std::string payload;  // of a predict_step request: the trace (trace_bytes.h).
                          // It is the frame's binary part, not in the header
};

struct ErrorFrame {
    std::string message;  // one sentence
    int exit_code = 1;    // 1 failed, 3 out of memory
    bool cancelled = false;
    std::vector<std::string> fields = {};  // whose values the remedy changes (models::Error)
    std::string path = {};  // the trace of a step that ran out of memory; empty: there is none

    bool out_of_memory() const { return exit_code == static_cast<int>(ExitCode::kOutOfMemory); }
};

/// The message of a worker that this machine's memory does not suffice for.
inline constexpr std::string_view kWorkerOutOfMemory =
    "The worker ran out of memory: choose a smaller model or batch, close other programs, or raise "
    "the limit on memory (ulimit -v).";

/// The message of a program that gets no further thread.
inline constexpr std::string_view kNoMoreThreads =
    "No further thread can be started: close other programs, or raise the limits on memory and "
    "processes (ulimit -v, ulimit -u).";

/// Whether `error` is that of a std::thread that could not start.
bool lacks_threads(const std::exception& error);

/// The fields of the error point into the frame.
models::Error to_error(const ErrorFrame& frame);

/// How a request ended.
using WorkerOutcome = tl::expected<ResultFrame, ErrorFrame>;

using Message = std::variant<Hello, Request, Cancel, Progress, Sample, ResultFrame, ErrorFrame,
                             WaitsForTurn, TakeTurn>;

struct AddressedMessage {
    int64_t id = 0;  // of the request to which the message belongs
    Message message;
};

nlohmann::json to_header(const Message& message, int64_t id);
models::Result<AddressedMessage> from_header(const nlohmann::json& header);

}  // namespace profiler
