#pragma once

#include "kernels/types.h"
#include "models/ops/tempo_ops.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

/// From torch tensors and schema arguments to raw kernel pointers and typed options, and back.
namespace models::ops {

// ---- tensors ---------------------------------------------------------------------------------

/// Calls `run` with a value of the kernels' storage type of `tensor`.
template <typename Run>
void with_kernel_type(const at::Tensor& tensor, const char* argument, Run&& run) {
    switch (tensor.scalar_type()) {
        case at::kFloat:
            return run(float{});
        case at::kDouble:
            return run(double{});
        case at::kHalf:
            return run(kernels::Half{});
        case at::kBFloat16:
            return run(kernels::BFloat16{});
        default:
            TORCH_CHECK(false, "tempo: ", argument, " has dtype ", tensor.scalar_type(),
                        "; expected float, double, half or bfloat16");
    }
}

template <typename T>
const T* const_pointer(const at::Tensor& tensor) {
    return static_cast<const T*>(tensor.const_data_ptr());
}
template <typename T>
T* pointer(const at::Tensor& tensor) {
    return static_cast<T*>(tensor.mutable_data_ptr());
}

/// Statistics are kept in float, for double in double.
inline at::ScalarType stat_type(const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// ---- masks -----------------------------------------------------------------------------------

/// An empty mask for the elements of `like`: bool of its shape, uint8 [ceil(n/8)], or uint8 [0]
/// where nothing is stored.
at::Tensor empty_mask(const at::Tensor& like, kernels::MaskKind kind);

/// Null for a mask that is not stored.
inline uint8_t* mask_pointer(const at::Tensor& mask) {
    return mask.numel() > 0 ? static_cast<uint8_t*>(mask.mutable_data_ptr()) : nullptr;
}

/// "byte", "bit" or "philox", as in recipes.
kernels::MaskKind parse_mask_kind(std::string_view name);
std::string_view name_of(kernels::MaskKind kind);

// ---- schema arguments ------------------------------------------------------------------------

DropoutSpec dropout_spec(double p, std::string_view masks, at::IntArrayRef key);
/// [seed, rank, step, layer, site].
std::array<int64_t, 5> key_array(const kernels::DropoutKey& key);

/// Autograd nodes carry a spec from forward to backward as plain values, not as tensors.
void keep_spec(torch::autograd::AutogradContext& ctx, const DropoutSpec& spec);
DropoutSpec kept_spec(const torch::autograd::AutogradContext& ctx);

// ---- work ------------------------------------------------------------------------------------

/// Elements per task below which a thread costs more than it saves.
inline constexpr int64_t kGrainElements = 1 << 14;

/// Calls `run(begin, end)` on several threads for ranges of [0, count) that start at multiples of
/// `granularity`; `grain` is the smallest range worth a thread.
template <typename Run>
void parallel_ranges(int64_t count, int64_t granularity, int64_t grain, Run&& run) {
    const int64_t units = (count + granularity - 1) / granularity;
    const int64_t grain_units = std::max<int64_t>(1, grain / granularity);
    at::parallel_for(0, units, grain_units, [&](int64_t begin, int64_t end) {
        run(begin * granularity, std::min(end * granularity, count));
    });
}

/// A handle on `tempo::name` that calls through the dispatcher, so that every call is an op of its
/// own for profilers and for CUDA and Meta.
template <typename Signature>
c10::TypedOperatorHandle<Signature> tempo_op(const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace models::ops
