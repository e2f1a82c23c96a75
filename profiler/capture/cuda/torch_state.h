#pragma once

#include "models/config/workload.h"
#include "models/training/training.h"
#include "profiler/capture/recorder.h"

#include <c10/core/Device.h>

/// torch's process-wide state on CUDA: switches, generators, and the workspaces of cuBLAS.
namespace profiler {

/// Throws c10::Error if the allocator's actions cannot be recorded. Call it before anything else of
/// CudaAllocations. Needs no driver.
void require_native_allocator();

/// Sets the switches for a workload and seeds the generator of `device`.
void set_up_torch(const models::Workload& workload, c10::DeviceIndex device);

/// Gives back what earlier training left: workspaces and cached segments. The next step finds the
/// allocator as a fresh process does. Call it while no training lives.
void forget_earlier_training();

/// Names the workspaces of cuBLAS and cuBLASLt.
void describe_workspaces(Recorder& recorder, c10::DeviceIndex device);

/// Tells the recorder which storages the training holds, and names torch's workspaces.
void describe_memory(Recorder& recorder, const models::Training& training, c10::DeviceIndex device);

}  // namespace profiler
