#pragma once

#include "models/config/result.h"
#include "profiler/capture/cuda_source.h"
#include "profiler/capture/training_device.h"

#include <string_view>
#include <vector>

namespace app {

/// The device of a request: "cpu", "cuda", or "auto" (the GPU if it can be used, else the
/// processor). It lives as long as the process.
/// Errors: one sentence on what is missing, and how to go on.
models::Result<profiler::TrainingDevice*> find_training_device(std::string_view name);

/// CUDA as this process has it: of the machine, or a virtual one.
/// Errors: one sentence on what is missing.
models::Result<profiler::CudaSource*> find_cuda();

/// Checks everything that CUDA needs, for doctor. Opens libtorch_cuda and our modules.
std::vector<profiler::CudaCheck> check_cuda();

}  // namespace app
