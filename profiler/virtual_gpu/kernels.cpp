#include "profiler/virtual_gpu/kernels.h"

#include "profiler/virtual_gpu/device_memory.h"
#include "profiler/virtual_gpu/streams.h"
#include "profiler/virtual_gpu/torch_install.h"
#include "profiler/virtual_gpu/value_copies.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace profiler::virtual_gpu {
namespace {

/// The size of an element that torch's FillFunctor<T> writes, by T's mangled name.
struct FillType {
    std::string_view mangled;
    std::size_t bytes;
};
constexpr FillType kFillTypes[] = {
    {"f", 4}, {"d", 8}, {"i", 4}, {"l", 8},           {"b", 1},
    {"h", 1}, {"a", 1}, {"s", 2}, {"N3c104HalfE", 2}, {"N3c108BFloat16E", 2}};

/// Fills of dense tensors, whose arguments begin with (int numel, FillFunctor<T>, char* data).
std::size_t fill_bytes_of(std::string_view name) {
    const bool is_dense = name.find("vectorized_elementwise_kernel") != name.npos ||
                          name.find("unrolled_elementwise_kernel") != name.npos;
    constexpr std::string_view kFunctor = "11FillFunctorI";
    const std::size_t at = is_dense ? name.find(kFunctor) : name.npos;
    if (at == name.npos) return 0;
    const std::string_view type = name.substr(at + kFunctor.size());
    const auto* const found =
        std::find_if(std::begin(kFillTypes), std::end(kFillTypes), [&](const FillType& fill) {
            return type.starts_with(fill.mangled) && type.substr(fill.mangled.size(), 1) == "E";
        });
    return found == std::end(kFillTypes) ? 0 : found->bytes;
}

/// torch's all(), whose one argument is a ReduceOp (ATen/native/cuda/Reduce.cuh).
bool is_all(std::string_view name) {
    return name.find("reduce_kernel") != name.npos && name.find("15and_kernel_cuda") != name.npos;
}

/// All that the libraries registered. They do so while the process starts, before any constructor
/// of this library need have run.
struct Registry {
    std::mutex mutex;
    std::unordered_map<const void*, Kernel> kernels;  // by host function
    struct Variable {
        std::size_t size_bytes = 0;
        std::map<int, void*> addresses = {};  // by device, once it is asked for
    };
    std::unordered_map<const void*, Variable> variables;  // by the host's copy
    std::deque<Kernel> of_modules;

    static Registry& instance() {
        static auto* const registry = new Registry;
        return *registry;
    }
};

struct Configuration {
    dim3 grid, block;
    std::size_t shared_bytes = 0;
    cudaStream_t stream = nullptr;
};
thread_local std::vector<Configuration> configurations;  // of <<< >>>

bool is_possible(const Launch& launch) {
    const dim3 grid = launch.grid;
    const dim3 block = launch.block;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return false;
    if (block.x == 0 || block.y == 0 || block.z == 0) return false;
    if (grid.x > kMaxGridX || grid.y > kMaxGridYZ || grid.z > kMaxGridYZ) return false;
    return block.z <= kMaxBlockZ && uint64_t{block.x} * block.y * block.z <= kThreadsPerBlock;
}

int device_of(uint64_t address) {
    return Memories::instance().device_of(reinterpret_cast<const void*>(address));
}

/// Writes the value of a fill where the tensor lies. A graph may run later: its fills are left out,
/// and the memory is unknown.
void run_fill(const Kernel& kernel, const Launch& launch) {
    const auto count = static_cast<std::size_t>(*static_cast<const int*>(launch.arguments[0]));
    const auto* const value = static_cast<const std::byte*>(launch.arguments[1]);
    const void* const address = *static_cast<const void* const*>(launch.arguments[2]);
    fill_on_device(address, {value, kernel.fill_bytes}, count * kernel.fill_bytes);
}

/// No kernel computed the elements, and "true" is what a program without anything unusual finds: a
/// mask that masks nothing, gradients that are finite. As zeros they would send Hugging Face's
/// models to the attention for masks.
void run_all(const Launch& launch) {
    constexpr std::size_t kMostWords = 256;  // of a ReduceOp, less than 2 KiB
    const auto* const words = static_cast<const uint64_t*>(launch.arguments[0]);
    for (std::size_t i = 0; i + 7 < kMostWords; ++i) {
        // The end of a ReduceOp: src, dst[2], acc_buf, cta_buf, semaphores, base_idx, two flags and
        // noutputs. What lies before holds old addresses in places that are not used.
        const uint64_t source = words[i], target = words[i + 1];
        const uint64_t base_index = words[i + 6], num_outputs = words[i + 7] >> 32;
        if (base_index != 0 || num_outputs != 1) continue;
        const int device = device_of(source);
        if (device < 0 || device_of(target) != device) continue;
        fill_on_device(reinterpret_cast<const void*>(target), std::array{std::byte{1}}, 1);
        return;
    }
}

}  // namespace

const Card& current_card() { return machine().cards[static_cast<std::size_t>(current_device())]; }

const Kernel& kernel_of(const void* host_function) {
    static const Kernel unknown{.name = "a kernel that no library registered"};
    Registry& registry = Registry::instance();
    const std::lock_guard lock(registry.mutex);
    const auto found = registry.kernels.find(host_function);
    return found == registry.kernels.end() ? unknown : found->second;
}

Kernel* add_kernel(const CubinKernel& code) {
    Registry& registry = Registry::instance();
    const std::lock_guard lock(registry.mutex);
    return &registry.of_modules.emplace_back(Kernel{
        .name = intern(code.name), .resources = code.resources, .parameters = code.parameters});
}

cudaError_t launch(const Kernel& kernel, const Launch& launch) {
    if (!is_possible(launch)) return report(cudaErrorInvalidConfiguration);
    if (static_cast<int64_t>(launch.shared_bytes) + kernel.resources.shared_bytes >
        current_card().shared_bytes_per_block) {
        return report(cudaErrorInvalidValue);
    }
    const dim3 block = launch.block;
    if (block.x * block.y * block.z > static_cast<unsigned>(max_threads_of(kernel.resources))) {
        return report(cudaErrorLaunchOutOfResources);
    }
    submit(launch.stream, {.kind = WorkKind::kKernel,
                           .name = kernel.name,
                           .grid = {launch.grid.x, launch.grid.y, launch.grid.z},
                           .block = {launch.block.x, launch.block.y, launch.block.z},
                           .shared_bytes = static_cast<int64_t>(launch.shared_bytes),
                           .static_shared_bytes = kernel.resources.shared_bytes,
                           .registers = kernel.resources.registers,
                           .local_bytes = kernel.resources.local_bytes});
    const bool runs_now = !stream_of(launch.stream).capture;
    if (launch.arguments == nullptr || !runs_now) return cudaSuccess;
    if (kernel.fill_bytes > 0) run_fill(kernel, launch);
    if (kernel.is_all) run_all(launch);
    return cudaSuccess;
}

int code_version() {
    const Card& card = current_card();
    const int capability = card.major * 10 + card.minor;
    const std::vector<int>& codes = torch_install().capabilities;
    int version = codes.front();
    for (const int code : codes) {
        if (code <= capability) version = std::max(version, code);
    }
    return version;
}

// ---- what nvcc's code calls ---------------------------------------------------------------------

VIRTUAL_GPU_API void** __cudaRegisterFatBinary(void*) {
    static void* module = nullptr;
    return &module;  // a handle that nobody looks into
}
VIRTUAL_GPU_API void __cudaRegisterFatBinaryEnd(void**) {}
VIRTUAL_GPU_API void __cudaUnregisterFatBinary(void**) {}
VIRTUAL_GPU_API char __cudaInitModule(void**) { return 1; }

VIRTUAL_GPU_API void __cudaRegisterFunction(void**, const char* host_function, char*,
                                            const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                            int*) {
    Registry& registry = Registry::instance();
    const std::lock_guard lock(registry.mutex);
    registry.kernels.insert_or_assign(
        host_function,
        Kernel{.name = name, .fill_bytes = fill_bytes_of(name), .is_all = is_all(name)});
}

VIRTUAL_GPU_API void __cudaRegisterVar(void**, char* host_copy, char*, const char*, int,
                                       std::size_t size, int, int) {
    Registry& registry = Registry::instance();
    const std::lock_guard lock(registry.mutex);
    registry.variables[host_copy].size_bytes = size;
}

VIRTUAL_GPU_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                                     CUstream_st* stream) {
    configurations.push_back({grid, block, shared, stream});
    return 0;
}

VIRTUAL_GPU_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared,
                                                       void* stream) {
    if (configurations.empty()) return report(cudaErrorMissingConfiguration);
    const Configuration top = configurations.back();
    configurations.pop_back();
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared_bytes;
    *static_cast<cudaStream_t*>(stream) = top.stream;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
    *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host_function));
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                               void** arguments, std::size_t shared,
                                               cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
    return launch(kernel_of(kernel), {grid, block, shared, stream, arguments});
}

VIRTUAL_GPU_API cudaError_t cudaLaunchKernel(const void* host_function, dim3 grid, dim3 block,
                                             void** arguments, std::size_t shared,
                                             cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
    return launch(kernel_of(host_function), {grid, block, shared, stream, arguments});
}

VIRTUAL_GPU_API cudaError_t cudaLaunchCooperativeKernel(const void* host_function, dim3 grid,
                                                        dim3 block, void** arguments,
                                                        std::size_t shared, cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000);
    return launch(kernel_of(host_function), {grid, block, shared, stream, arguments});
}

VIRTUAL_GPU_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config,
                                                const void* host_function, void** arguments) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060);
    return launch(kernel_of(host_function), {config->gridDim, config->blockDim,
                                             config->dynamicSmemBytes, config->stream, arguments});
}

VIRTUAL_GPU_API cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
    return cudaSuccess;  // limits are checked at the launch
}

VIRTUAL_GPU_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
    *attributes = {};
    attributes->binaryVersion = code_version();
    attributes->ptxVersion = code_version();
    attributes->numRegs = kAssumedRegisters;
    attributes->maxThreadsPerBlock = kThreadsPerBlock;
    attributes->maxDynamicSharedSizeBytes = kSharedBytesPerBlock;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*,
                                                                          int block_size,
                                                                          std::size_t shared) {
    *blocks = blocks_per_sm(current_card(), {}, {block_size, static_cast<int64_t>(shared)});
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void*, int block_size, std::size_t shared, unsigned) {
    *blocks = blocks_per_sm(current_card(), {}, {block_size, static_cast<int64_t>(shared)});
    return cudaSuccess;
}

/// A variable of a module lies outside what the allocator counts, as on a GPU.
VIRTUAL_GPU_API cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
    Registry& registry = Registry::instance();
    const std::lock_guard lock(registry.mutex);
    const auto found = registry.variables.find(symbol);
    if (found == registry.variables.end()) return report(cudaErrorInvalidSymbol);
    Registry::Variable& variable = found->second;
    void*& on_device = variable.addresses[current_device()];
    if (on_device == nullptr) {
        const auto place = Memories::instance()[current_device()].reserve(
            (variable.size_bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes,
            kGranuleBytes);
        if (!place) return report(cudaErrorMemoryAllocation);
        on_device = reinterpret_cast<void*>(*place);
    }
    *address = on_device;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source,
                                               std::size_t count, std::size_t offset,
                                               cudaMemcpyKind kind) {
    void* address = nullptr;
    const cudaError_t error = cudaGetSymbolAddress(&address, symbol);
    if (error != cudaSuccess) return error;
    return cudaMemcpy(static_cast<char*>(address) + offset, source, count, kind);
}

}  // namespace profiler::virtual_gpu
