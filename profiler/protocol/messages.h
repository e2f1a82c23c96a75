#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// What `temposcope` and `temposcope-worker` say to each other (docs/architecture.md, the worker).
///
/// A frame is a length, a JSON header {protocol, id, kind, ...} and an optional binary payload.
/// The worker answers one request at a time: progress and samples while it works, then exactly one
/// result or error.
namespace profiler {

inline constexpr int kProtocolVersion = 1;
/// Descriptor of the worker's end of the socket pair; standard output and error stay the log.
inline constexpr int kWorkerDescriptor = 3;

// ---- requests --------------------------------------------------------------------------------

/// Who are you, and what can this machine do? The first request of every client.
struct HelloRequest {};

/// Train and record into `output_path`.
struct CaptureRequest {
    models::Workload workload;
    std::string output_path;          // the final name, ending in .tscope
    std::string device = "cpu";       // "cpu", "cuda"
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    int64_t memory_limit_bytes = -1;  // -1: none
    int num_threads = 0;              // 0: torch's default
};

/// The capture's step at the workload's batch size, then every batch of the sweep, in one file.
struct SweepRequest {
    CaptureRequest capture;
    std::vector<int64_t> batch_sizes;  // empty: double until it fails, then bisect
    int64_t max_batch_size = 4096;
};

using Request = std::variant<HelloRequest, CaptureRequest, SweepRequest>;

// ---- answers ---------------------------------------------------------------------------------

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
};

/// One fact about the worker's machine: {"torch", "2.11.0", ok}, {"driver", "not found", ...}.
struct DoctorFact {
    std::string name;    // "torch", "cpu", "cuda", "driver", "cupti"
    std::string state;   // "ok", "missing", "warning"
    std::string detail;  // "2.11.0+cu130", "no NVIDIA driver on this machine"
    std::string remedy;  // one sentence, empty when ok
};

struct HelloResult {
    int protocol = kProtocolVersion;
    std::string build;  // version of the program that the worker was built with
    std::vector<DoctorFact> facts;
};

struct CaptureResult {
    std::string path;  // of the finished file
    int64_t peak_allocated_bytes = 0;
    int64_t step_time_ns = 0;  // median of the recorded steps
    double loss = 0;
    std::optional<int64_t> max_batch_size;  // of a sweep
};

struct WorkerError {
    std::string message;  // one sentence
    int exit_code = 1;    // 1 failed, 3 out of memory
};

using Answer = std::variant<Progress, Sample, HelloResult, CaptureResult, WorkerError>;

}  // namespace profiler
