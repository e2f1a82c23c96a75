#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/cubin.h"
#include "profiler/virtual_gpu/device_memory.h"
#include "profiler/virtual_gpu/kernels.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Code that a program loads while it runs, as Triton and NVRTC make it: modules and libraries,
/// their kernels and variables.
namespace profiler::virtual_gpu {
namespace {

using Image = std::vector<std::byte>;

constexpr std::size_t kMostImageBytes = std::size_t{1} << 30;

/// A cubin has the figures of its kernels. PTX, which the driver would compile, has their names
/// alone. Of a fat binary, which is compressed, nothing is known.
enum class CodeKind : uint8_t { kCubin, kPtx, kFatBinary };

struct Module {
    CodeKind kind = CodeKind::kCubin;
    Cubin code;
    std::map<std::string, Kernel*, std::less<>> kernels;        // that were asked for
    std::map<std::pair<std::string, int>, uint64_t> variables;  // by name and device: their address
};

struct Modules {
    std::mutex mutex;
    std::unordered_map<const void*, std::unique_ptr<Module>> loaded;  // by handle

    static Modules& instance() {
        static auto* const modules = new Modules;
        return *modules;
    }
    /// Null for a handle of no module. Hold the mutex.
    Module* find(const void* handle) {
        const auto found = loaded.find(handle);
        return found == loaded.end() ? nullptr : found->second.get();
    }
};

// ---- images in memory ---------------------------------------------------------------------------

/// Up to `size` bytes of this process from `address` on, as far as pages are there. The calls that
/// load code pass no length: a damaged header must not make us read what is not there.
Image readable_bytes(const void* address, std::size_t size) {
    const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    Image bytes(size);
    std::size_t count = 0;
    while (count < size) {
        const auto at = static_cast<off_t>(number_of(address) + count);
        const ssize_t read = pread(memory, bytes.data() + count, size - count, at);
        if (read <= 0) break;
        count += static_cast<std::size_t>(read);
    }
    if (memory >= 0) close(memory);
    bytes.resize(count);
    return bytes;
}

std::optional<Image> cubin_in_memory(const void* address) {
    Image bytes = readable_bytes(address, 64);  // the header
    // The header tells where its tables end, and these where the file ends.
    for (int i = 0; i < 2; ++i) {
        const auto size = cubin_bytes(bytes);
        if (!size || *size > kMostImageBytes) return std::nullopt;
        bytes = readable_bytes(address, *size);
        if (bytes.size() < *size) return std::nullopt;
    }
    return bytes;
}

/// A text that ends with a null character.
std::optional<std::string> text_in_memory(const void* address) {
    std::string text;
    constexpr std::size_t kPart = 4096;
    while (text.size() < kMostImageBytes) {
        const Image part = readable_bytes(static_cast<const char*>(address) + text.size(), kPart);
        const auto* const start = reinterpret_cast<const char*>(part.data());
        const std::size_t length = strnlen(start, part.size());
        text.append(start, length);
        if (length < part.size()) return text;
        if (part.size() < kPart) return std::nullopt;
    }
    return std::nullopt;
}

/// ".entry NAME(": the kernels that PTX declares.
std::vector<CubinKernel> kernels_of_ptx(std::string_view text) {
    constexpr std::string_view kEntry = ".entry", kSpace = " \t\r\n";
    std::vector<CubinKernel> kernels;
    for (std::size_t at = text.find(kEntry); at != text.npos; at = text.find(kEntry, at)) {
        const std::size_t start = text.find_first_not_of(kSpace, at + kEntry.size());
        if (start == text.npos) break;
        const std::size_t end = std::min(text.find_first_of(" \t\r\n(", start), text.size());
        kernels.push_back({.name = std::string(text.substr(start, end - start))});
        at = end;
    }
    return kernels;
}

bool is_fat_binary(const void* image) {
    constexpr std::array<uint32_t, 2> kMagic{0xBA55ED50, 0x466243B1};  // itself, its wrapper
    const Image start = readable_bytes(image, sizeof(uint32_t));
    uint32_t magic = 0;
    if (start.size() == sizeof magic) std::memcpy(&magic, start.data(), sizeof magic);
    return std::ranges::find(kMagic, magic) != kMagic.end();
}

// ---- modules ------------------------------------------------------------------------------------

/// A cubin runs on the capabilities of its own generation from its own on.
bool runs_on(int capability, const Card& card) {
    return capability / 10 == card.major && capability % 10 <= card.minor;
}

CUresult load_cubin(const Image& bytes, Module& module) {
    auto code = read_cubin(bytes);
    if (!code) return CUDA_ERROR_INVALID_IMAGE;
    if (!runs_on(code->capability, current_card())) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    module.code = std::move(*code);
    return CUDA_SUCCESS;
}

CUresult load_image(const void* image, Module& module) {
    if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const auto cubin = cubin_in_memory(image)) return load_cubin(*cubin, module);
    if (is_fat_binary(image)) {
        module.kind = CodeKind::kFatBinary;
        return CUDA_SUCCESS;
    }
    const auto text = text_in_memory(image);
    if (!text || text->find(".version") == text->npos) return CUDA_ERROR_INVALID_IMAGE;
    module.kind = CodeKind::kPtx;
    module.code.kernels = kernels_of_ptx(*text);
    return CUDA_SUCCESS;
}

/// `Handle` is CUmodule or CUlibrary: a library is a module that is loaded for all devices.
template <typename Handle>
CUresult load(Handle* handle, const void* image) {
    auto module = std::make_unique<Module>();
    const CUresult result = load_image(image, *module);
    if (result != CUDA_SUCCESS) return result;
    *handle = reinterpret_cast<Handle>(module.get());
    Modules& modules = Modules::instance();
    const std::lock_guard lock(modules.mutex);
    modules.loaded[*handle] = std::move(module);
    return CUDA_SUCCESS;
}

template <typename Handle>
CUresult load_file(Handle* handle, const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    return load(handle, bytes.c_str());  // PTX ends with its null character
}

CUresult unload(const void* handle) {
    Modules& modules = Modules::instance();
    const std::lock_guard lock(modules.mutex);
    return modules.loaded.erase(handle) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// The kernel of that name: one for all calls.
CUresult find_kernel(Kernel** kernel, const void* handle, const char* name) {
    Modules& modules = Modules::instance();
    const std::lock_guard lock(modules.mutex);
    Module* const module = modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const auto known = module->kernels.find(name);
    if (known == module->kernels.end()) {
        const auto& all = module->code.kernels;
        const auto found = std::ranges::find(all, name, &CubinKernel::name);
        if (found == all.end() && module->kind != CodeKind::kFatBinary) return CUDA_ERROR_NOT_FOUND;
        *kernel = add_kernel(found != all.end() ? *found : CubinKernel{.name = name});
        module->kernels.emplace(name, *kernel);
    } else {
        *kernel = known->second;
    }
    return CUDA_SUCCESS;
}

/// A variable lies outside of what the allocator counts, as on a GPU.
CUresult find_variable(CUdeviceptr* address, std::size_t* size, const void* handle,
                       const char* name) {
    Modules& modules = Modules::instance();
    const std::lock_guard lock(modules.mutex);
    Module* const module = modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const auto& all = module->code.variables;
    const auto found = std::ranges::find(all, name, &CubinVariable::name);
    if (found == all.end()) return CUDA_ERROR_NOT_FOUND;
    if (found->size_bytes > kMostImageBytes) return CUDA_ERROR_INVALID_IMAGE;
    uint64_t& place = module->variables[{name, current_device()}];
    if (place == 0) {
        const uint64_t bytes = round_up(std::max<uint64_t>(1, found->size_bytes), kGranuleBytes);
        const auto taken = Memories::instance()[current_device()].reserve(bytes, kGranuleBytes);
        if (!taken) return CUDA_ERROR_OUT_OF_MEMORY;
        place = *taken;
    }
    if (address != nullptr) *address = place;
    if (size != nullptr) *size = found->size_bytes;
    return CUDA_SUCCESS;
}

CUresult function_attribute(int* value, CUfunction_attribute attribute, const Kernel& kernel) {
    const KernelResources& resources = kernel.resources;
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = max_threads_of(resources);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            *value = registers_of(resources);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            *value = code_version();
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            *value = static_cast<int>(resources.shared_bytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            *value = static_cast<int>(resources.local_bytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
            *value = 0;  // of constants that the program declares; compilers make none
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = kSharedBytesPerBlock - static_cast<int>(resources.shared_bytes);
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/// More shared memory than the card has is refused here already. Launches check it again.
CUresult set_function_attribute(const Kernel& kernel, CUfunction_attribute attribute, int value) {
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    const int64_t shared_bytes = kernel.resources.shared_bytes + value;
    const bool fits = value >= 0 && shared_bytes <= current_card().shared_bytes_per_block;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

Kernel& kernel_of_library(CUkernel kernel) { return *reinterpret_cast<Kernel*>(kernel); }

}  // namespace

// ---- modules of the driver ----------------------------------------------------------------------

VIRTUAL_GPU_API CUresult cuModuleLoad(CUmodule* module, const char* path) {
    return load_file(module, path);
}
VIRTUAL_GPU_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    return load(module, image);
}
VIRTUAL_GPU_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned,
                                            CUjit_option*, void**) {
    return load(module, image);
}
VIRTUAL_GPU_API CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
    return load(module, image);
}
VIRTUAL_GPU_API CUresult cuModuleUnload(CUmodule module) { return unload(module); }
VIRTUAL_GPU_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module,
                                             const char* name) {
    return find_kernel(reinterpret_cast<Kernel**>(function), module, name);
}
VIRTUAL_GPU_API CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* size,
                                              CUmodule module, const char* name) {
    return find_variable(address, size, module, name);
}

// ---- libraries of the driver --------------------------------------------------------------------

VIRTUAL_GPU_API CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*,
                                           void**, unsigned, CUlibraryOption*, void**, unsigned) {
    return load(library, image);
}
VIRTUAL_GPU_API CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*,
                                               void**, unsigned, CUlibraryOption*, void**,
                                               unsigned) {
    return load_file(library, path);
}
VIRTUAL_GPU_API CUresult cuLibraryUnload(CUlibrary library) { return unload(library); }
VIRTUAL_GPU_API CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
    *module = reinterpret_cast<CUmodule>(library);
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    return find_kernel(reinterpret_cast<Kernel**>(kernel), library, name);
}
VIRTUAL_GPU_API CUresult cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* size,
                                            CUlibrary library, const char* name) {
    return find_variable(address, size, library, name);
}

// ---- kernels of the driver ----------------------------------------------------------------------

VIRTUAL_GPU_API CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute,
                                              CUkernel kernel, CUdevice) {
    return function_attribute(value, attribute, kernel_of_library(kernel));
}
VIRTUAL_GPU_API CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value,
                                              CUkernel kernel, CUdevice) {
    return set_function_attribute(kernel_of_library(kernel), attribute, value);
}
VIRTUAL_GPU_API CUresult cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) {
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                            CUfunction function) {
    return function_attribute(value, attribute, kernel_of_function(function));
}
VIRTUAL_GPU_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                            int value) {
    return set_function_attribute(kernel_of_function(function), attribute, value);
}
VIRTUAL_GPU_API CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
VIRTUAL_GPU_API CUresult cuFuncGetName(const char** name, CUfunction function) {
    *name = kernel_of_function(function).name;
    return CUDA_SUCCESS;
}
VIRTUAL_GPU_API CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index,
                                            std::size_t* offset, std::size_t* size) {
    const auto& parameters = kernel_of_function(function).parameters;
    if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    if (offset != nullptr) *offset = parameters[index].offset;
    if (size != nullptr) *size = parameters[index].size;
    return CUDA_SUCCESS;
}

}  // namespace profiler::virtual_gpu
