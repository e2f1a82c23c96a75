#include "profiler/capture/values/tensor_values.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/Functions.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace profiler {
namespace {

/// The memory from the first element to the last.
struct Range {
    char* start = nullptr;
    std::size_t size = 0;  // bytes
};

std::size_t range_bytes(const at::Tensor& tensor) {
    if (tensor.numel() == 0) return 0;
    int64_t last = 0;
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
        last += (tensor.size(dim) - 1) * tensor.stride(dim);
    }
    return static_cast<std::size_t>(last + 1) * tensor.element_size();
}

Range range_of(const at::Tensor& tensor) {
    // Not the mutable pointer, which would give a lazy copy memory of its own.
    auto* const start = static_cast<char*>(const_cast<void*>(tensor.const_data_ptr()));
    return {start, range_bytes(tensor)};
}

/// Parts of a range that elements fill, one after the other. More of them are not looked at.
constexpr int64_t kMostRuns = 4096;

/// Calls visit(offset, size) in bytes for each part of the tensor's range without a gap. False: it
/// has too many.
template <typename Visit>
bool for_each_run(const at::Tensor& tensor, const Visit& visit) {
    // The innermost dimensions that lie without a gap, from those of the smallest stride on.
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
        if (tensor.size(dim) != 1 && tensor.stride(dim) != 0) {
            dims.emplace_back(tensor.stride(dim), tensor.size(dim));
        }
    }
    std::ranges::sort(dims);
    int64_t run = 1;
    auto outer = dims.begin();
    for (; outer != dims.end() && outer->first == run; ++outer) run *= outer->second;
    int64_t num_runs = 1;
    for (auto dim = outer; dim != dims.end(); ++dim) num_runs *= dim->second;
    if (num_runs > kMostRuns) return false;
    const auto element = static_cast<int64_t>(tensor.element_size());
    for (int64_t index = 0; index < num_runs; ++index) {
        int64_t offset = 0;
        int64_t rest = index;
        for (auto dim = outer; dim != dims.end(); ++dim) {
            offset += rest % dim->second * dim->first;
            rest /= dim->second;
        }
        visit(offset * element, static_cast<std::size_t>(run * element));
    }
    return true;
}

/// Whether elements fill the range without gaps, in any order.
bool is_dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

/// The values of a contiguous part, as one pattern where they are all the same.
void write(char* address, const std::byte* bytes, std::size_t size, std::size_t element_size) {
    const bool is_uniform = std::memcmp(bytes, bytes + element_size, size - element_size) == 0;
    if (is_uniform) {
        device_values()->fill(address, bytes, element_size, size);
    } else {
        device_values()->write(address, bytes, size);
    }
}

}  // namespace

const virtual_gpu::Values* device_values() {
    using Find = const virtual_gpu::Values* (*)();
    static const virtual_gpu::Values* const values = [] {
        const auto find = reinterpret_cast<Find>(dlsym(RTLD_DEFAULT, virtual_gpu::kValuesSymbol));
        return find == nullptr ? nullptr : find();
    }();
    return values;
}

bool has_memory_on_gpu(const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_cuda() && tensor.layout() == at::kStrided &&
           tensor.has_storage() && !tensor.is_nested() &&
           !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() &&
           !tensor.key_set().has(c10::DispatchKey::Python);
}

bool is_plain_on_gpu(const at::Tensor& tensor) {
    constexpr c10::DispatchKeySet kWrapped(
        {c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::FuncTorchBatched,
         c10::DispatchKey::Functionalize, c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
         c10::DispatchKey::ZeroTensor});
    return has_memory_on_gpu(tensor) && !tensor.is_quantized() &&
           !tensor.key_set().has_any(kWrapped);
}

int64_t memory_bytes(const at::Tensor& tensor) {
    const bool is_plain = tensor.layout() == at::kStrided && !tensor.is_nested();
    return is_plain ? static_cast<int64_t>(range_bytes(tensor)) : 0;
}

at::Tensor same_on_cpu(const at::Tensor& tensor) {
    const Range range = range_of(tensor);
    const auto count = static_cast<int64_t>(range.size / tensor.element_size());
    const at::Tensor memory =
        at::empty({count}, at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU));
    return memory.as_strided(tensor.sizes(), tensor.strides(), 0);
}

bool has_known_values(const at::Tensor& tensor) {
    const Range range = range_of(tensor);
    if (range.size == 0 || device_values()->knows(range.start, range.size)) return true;
    if (is_dense(tensor)) return false;
    bool are_known = true;
    const bool are_few = for_each_run(tensor, [&](int64_t offset, std::size_t size) {
        are_known = are_known && device_values()->knows(range.start + offset, size);
    });
    return are_few && are_known;
}

at::Tensor values_on_cpu(const at::Tensor& tensor) {
    const at::Tensor copy = same_on_cpu(tensor);
    const Range range = range_of(tensor);
    if (range.size > 0) {
        device_values()->read(range.start, copy.mutable_data_ptr(), range.size);
    }
    return copy;
}

void set_values(const at::Tensor& tensor, const at::Tensor& given) {
    const Range range = range_of(tensor);
    if (range.size == 0) return;
    const at::Tensor copy = same_on_cpu(tensor);
    copy.copy_(given);
    const auto* const bytes = static_cast<const std::byte*>(copy.const_data_ptr());
    const auto element = static_cast<std::size_t>(tensor.element_size());
    const bool are_few = for_each_run(tensor, [&](int64_t offset, std::size_t size) {
        write(range.start + offset, bytes + offset, size, element);
    });
    if (!are_few) forget_values(tensor);
}

void set_all(const at::Tensor& tensor, const at::Scalar& value) {
    if (!is_dense(tensor)) return forget_values(tensor);
    const Range range = range_of(tensor);
    if (range.size == 0) return;
    std::array<std::byte, 16> element{};  // of the largest type, complex<double>
    AT_DISPATCH_V2(tensor.scalar_type(), "set_all", AT_WRAP([&] {
                       const auto typed = value.to<scalar_t>();
                       std::memcpy(element.data(), &typed, sizeof typed);
                   }),
                   AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                   AT_EXPAND(AT_FLOAT8_TYPES), at::kBool, at::kHalf, at::kBFloat16,
                   at::kComplexHalf);
    device_values()->fill(range.start, element.data(), tensor.element_size(), range.size);
}

void forget_values(const at::Tensor& tensor) {
    const Range range = range_of(tensor);
    if (range.size != 0) device_values()->forget(range.start, range.size);
}

}  // namespace profiler
