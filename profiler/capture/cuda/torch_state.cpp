#include "profiler/capture/cuda/torch_state.h"

#include "profiler/capture/cuda/cuda_device.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/torch_adapter/cuda_allocations.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <future>
#include <mutex>

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

void require_native_allocator() {
    const bool uncached = std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr;
    const auto ok = check_allocator(CudaAllocations::backend(), uncached);
    TORCH_CHECK(ok.has_value(), ok.error().message);
}

void describe_workspaces(Recorder& recorder, c10::DeviceIndex device) {
    for (const auto& [name, bytes] : CudaAllocations::workspaces(device)) {
        recorder.describe(bytes, name, Category::kWorkspace);
    }
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
    CudaAllocations::release_cache();
}

void describe_memory(Recorder& recorder, const models::Training& training,
                     c10::DeviceIndex device) {
    describe_storages(recorder, training);
    describe_workspaces(recorder, device);
}

}  // namespace profiler
