#include "profiler/capture/cuda/torch_state.h"

#include "profiler/capture/cuda/cuda_allocations.h"
#include "profiler/capture/recorded_training.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/from_blob.h>

#include <cuda_runtime_api.h>

#include <mutex>
#include <shared_mutex>

namespace profiler {

/// Each thread has its own handle: this thread runs forward, autograd's thread runs backward.
void describe_workspaces(Recorder& recorder, c10::DeviceIndex device) {
    // Asking for a handle would create one, with its workspace.
    if (at::cuda::cublas_handle_stream_to_workspace().map.empty()) return;
    void* const forward_handle = at::cuda::getCurrentCUDABlasHandle();
    const auto describe = [&](at::cuda::WorkspaceMapWithMutex& workspaces, std::string_view name,
                              int64_t size_bytes) {
        const std::shared_lock lock(workspaces.mutex);
        for (const auto& [handle_and_stream, memory] : workspaces.map) {
            const bool forward = std::get<0>(handle_and_stream) == forward_handle;
            const at::Tensor bytes =
                at::from_blob(memory.get(), {size_bytes},
                              at::device(at::Device(at::kCUDA, device)).dtype(at::kByte));
            recorder.describe(bytes, fmt::format("{} ({})", name, forward ? "forward" : "backward"),
                              Category::kWorkspace);
        }
    };
    describe(at::cuda::cublas_handle_stream_to_workspace(), "cublas_workspace",
             static_cast<int64_t>(at::cuda::getChosenWorkspaceSize()));
    describe(at::cuda::cublaslt_handle_stream_to_workspace(), "cublaslt_workspace",
             static_cast<int64_t>(at::cuda::getCUDABlasLtWorkspaceSize()));
}

void set_up_torch(const models::Workload& workload, c10::DeviceIndex device) {
    at::globalContext().setAllowTF32CuBLAS(workload.precision == models::Precision::kTf32);
    at::Generator generator = at::globalContext().defaultGenerator(at::Device(at::kCUDA, device));
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(static_cast<uint64_t>(workload.seed));
}

void forget_earlier_training() {
    (void)cudaGetLastError();  // clears a library's error before the next launch
    at::cuda::clearCublasWorkspaces();
    CudaAllocations::release_cache();
}

void describe_memory(Recorder& recorder, const models::Training& training,
                     c10::DeviceIndex device) {
    describe_storages(recorder, training);
    describe_workspaces(recorder, device);
}

}  // namespace profiler
