#pragma once

#include "models/config/compute_capability.h"
#include "models/config/result.h"
#include "profiler/capture/training_device.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// The GPU as the worker sees it: an interface, and the function that opens the module behind it.
///
/// Only that module (profiler/capture/cuda) needs libtorch_cuda, so a machine without a GPU does
/// not load it. docs/dev/cuda_capture.md says how it records.
namespace profiler {

class ProgramDevice;

/// How to go on without CUDA: the end of a remedy.
inline constexpr std::string_view kOnTheCpu = "measure on the CPU, or predict the step for a GPU";

/// One part that a capture on CUDA needs, as `doctor` shows it.
struct CudaCheck {
    std::string name;  // "driver", "device", "libtorch_cuda", "tempo_ops_cuda", "cupti"
    bool ok = false;
    std::string detail;  // what was found, or what is wrong
    std::string remedy;  // one sentence; empty when ok
};

struct CudaDevice {
    std::string name;  // "NVIDIA H200"
    models::ComputeCapability capability;
    int64_t total_bytes = 0;
    int64_t sm_count = 0;  // multiprocessors
    int64_t l2_bytes = 0;
};

struct PredictedStepOptions {
    int64_t gpu_index = 0;
    int64_t warmup_steps = 1;  // 0: the step is the first one of its process
    bool records_kernels = true;
};

class CudaSource : public TrainingDevice {
public:
    /// The device that captures use: the first that CUDA shows.
    /// Errors: one sentence on what is missing, and how to go on.
    virtual models::Result<CudaDevice> device() = 0;
    /// What a step of `workload` asks of the memory of a GPU, in a process on a virtual GPU;
    /// profiler/capture/cuda/cuda_capture.cpp says more. Throws std::invalid_argument without that
    /// GPU, Cancelled, c10::Error.
    virtual void predict_step(const models::Workload& workload, const PredictedStepOptions& options,
                              const CaptureCallbacks& callbacks, Trace& trace) = 0;
    /// CUDA's device `device` for the recording of a program that is not ours, whose rows go into
    /// `trace`. The program may have used CUDA before. Throws c10::Error with one sentence if it
    /// cannot be recorded.
    virtual std::unique_ptr<ProgramDevice> record_program(int device, Trace& trace) = 0;
    /// Driver, device and CUPTI.
    virtual std::vector<CudaCheck> checks() = 0;
};

/// What was opened, in this order: libtorch_cuda, tempo_ops_cuda, temposcope_cuda.
struct CudaModule {
    CudaSource* source = nullptr;  // lives as long as the process; null: a check says why
    std::vector<CudaCheck> checks;
};

/// Opens the module in `folder`, where the worker is; later calls return the same module. Call it
/// before anything asks torch about CUDA, because torch remembers the first answer.
const CudaModule& open_cuda_module(const std::filesystem::path& folder);

/// One sentence on the first check that is not ok; empty when all are.
std::string describe_problem(const std::vector<CudaCheck>& checks);

}  // namespace profiler
