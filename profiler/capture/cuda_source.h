#pragma once

#include "models/config/cuda_support.h"
#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/capture/capture_callbacks.h"
#include "profiler/capture/capture_options.h"
#include "profiler/capture/out_of_memory.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// The CUDA source as the worker sees it: an interface, and how the module behind it is opened.
///
/// What needs libtorch_cuda is in a module of its own (profiler/capture/cuda), so that a machine
/// without a GPU loads nothing of it. docs/cuda_capture.md says how it records.
namespace profiler {

/// How to go on without CUDA: the end of a remedy.
inline constexpr std::string_view kOnTheCpu = "measure on the CPU, or predict the step for a GPU";

/// One part that a capture on CUDA needs, as `doctor` shows it.
struct CudaCheck {
    std::string name;  // "driver", "device", "libtorch_cuda", "tempo_ops_cuda", "cupti"
    bool ok = false;
    std::string detail;  // what is there, or what is wrong
    std::string remedy;  // one sentence; empty when ok
};

struct CudaDevice {
    std::string name;  // "NVIDIA H200"
    models::ComputeCapability capability;
    int64_t total_bytes = 0;
    int64_t sm_count = 0;  // multiprocessors
    int64_t l2_bytes = 0;
};

struct LiveMemory {
    int64_t allocated_bytes = 0;
    int64_t peak_bytes = 0;
};

class CudaSource {
public:
    virtual ~CudaSource() = default;

    /// The device that is used: the first that CUDA shows.
    /// Errors: one sentence on what is missing, and how to go on.
    virtual models::Result<CudaDevice> device() = 0;
    /// Driver, device and CUPTI.
    virtual std::vector<CudaCheck> checks() = 0;

    /// As capture_on_cpu and sweep_on_cpu, on device(). `options.memory_limit_bytes` stands for a
    /// GPU of that size. Throws c10::OutOfMemoryError, Cancelled, c10::Error.
    virtual void capture(const models::Workload& workload, const CaptureOptions& options,
                         const CaptureCallbacks& callbacks, Trace& trace) = 0;
    virtual void sweep(const models::Workload& workload, const CaptureOptions& options,
                       const SweepOptions& sweep, const CaptureCallbacks& callbacks,
                       Trace& trace) = 0;

    // Any thread, also while a capture runs.
    virtual LiveMemory live_memory() const = 0;
    virtual OutOfMemoryDetail last_out_of_memory() const = 0;
};

/// The module and what it stands on, opened step by step in `folder`, where the worker is:
/// libtorch_cuda, tempo_ops_cuda, temposcope_cuda.
struct CudaModule {
    CudaSource* source = nullptr;  // lives as long as the process; null: a check says why
    std::vector<CudaCheck> checks;
};

/// Opens the module once; further calls return the same. To be called before anything asks torch
/// about CUDA: torch remembers the first answer.
const CudaModule& open_cuda_module(const std::filesystem::path& folder);

/// One sentence on the first check that is not ok; empty when all are.
std::string describe_problem(const std::vector<CudaCheck>& checks);

}  // namespace profiler
