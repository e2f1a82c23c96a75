#include "profiler/capture/cuda/torch_state.h"

#include "profiler/capture/cuda/cuda_allocations.h"
#include "profiler/capture/recorded_training.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/autograd/autograd.h>

#include <cuda_runtime_api.h>

#include <future>
#include <mutex>
#include <shared_mutex>

namespace profiler {
namespace {

/// After a backward that failed, autograd's thread still frees what it held, while the caller goes
/// on. That thread runs the node with the highest number first, and the nodes of a new thread count
/// from 0: once it has run such a node, it has nothing else left. The node has no elements, so
/// nothing is allocated or launched.
void wait_for_autograd() {
    const c10::DeviceIndex device = c10::cuda::current_device();
    std::async(std::launch::async, [device] {
        const at::Tensor nothing = at::empty({0}, at::device(at::Device(at::kCUDA, device)));
        const at::Tensor leaf = nothing.detach().requires_grad_();
        torch::autograd::backward({leaf.view_as(leaf)}, {nothing});
    }).get();
}

}  // namespace

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
    wait_for_autograd();
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
