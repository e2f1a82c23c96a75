#include "models/autocast/meta_autocast.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace models::meta_autocast {
namespace {

using at::Tensor;

/// No backend of this process uses this key. A thread has it switched on while its autocast is on.
constexpr auto kKey = c10::DispatchKey::AutocastPrivateUse1;

thread_local std::optional<at::ScalarType> current_dtype;

struct CachedCast {
    Tensor weight;  // holds the weight, so that no other tensor gets its address
    Tensor cast;
};
thread_local std::unordered_map<const c10::TensorImpl*, CachedCast> cache;

// torch's conditions (autocast_mode.cpp, cached_cast): floating-point tensors other than double are
// cast; casts of fp32 leaves, that is weights, are cached.
bool is_eligible(const Tensor& tensor) {
    return tensor.defined() && tensor.is_meta() && tensor.is_floating_point() &&
           tensor.scalar_type() != at::kDouble;
}

Tensor cast(const Tensor& tensor, at::ScalarType type) {
    if (!is_eligible(tensor) || tensor.scalar_type() == type) return tensor;
    const bool is_weight = type == current_dtype && tensor.scalar_type() == at::kFloat &&
                           tensor.requires_grad() && tensor.is_leaf() && !tensor.is_view();
    if (!is_weight) return tensor.to(type);
    const auto found = cache.find(tensor.unsafeGetTensorImpl());
    if (found != cache.end()) return found->second.cast;
    const Tensor result = tensor.to(type);
    cache.emplace(tensor.unsafeGetTensorImpl(), CachedCast{tensor, result});
    return result;
}

c10::IValue cast(const c10::IValue& value, at::ScalarType type) {
    if (value.isTensor()) return cast(value.toTensor(), type);
    if (!value.isTensorList()) return value;
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) list.push_back(cast(tensor, type));
    return list;
}

// ---- policies: what happens to an op's arguments ------------------------------------------------

void to_lower_precision(const c10::OperatorHandle&, at::ArrayRef<c10::IValue> values,
                        std::vector<c10::IValue>& result) {
    for (const c10::IValue& value : values) result.push_back(cast(value, *current_dtype));
}

void to_fp32(const c10::OperatorHandle&, at::ArrayRef<c10::IValue> values,
             std::vector<c10::IValue>& result) {
    for (const c10::IValue& value : values) result.push_back(cast(value, at::kFloat));
}

/// Ops with an argument for the dtype to compute in: fp32 unless the caller gave one.
void compute_in_fp32(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> values,
                     std::vector<c10::IValue>& result) {
    const auto& arguments = op.schema().arguments();
    const bool eligible = values[0].isTensor() && is_eligible(values[0].toTensor());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool missing = eligible && arguments[i].name() == "dtype" && values[i].isNone();
        result.push_back(missing ? c10::IValue(static_cast<int64_t>(at::kFloat)) : values[i]);
    }
}

/// tempo::attention_core: softmax in fp32, the matrix multiplication with `value` in autocast's
/// dtype.
void scores_to_fp32(const c10::OperatorHandle&, at::ArrayRef<c10::IValue> values,
                    std::vector<c10::IValue>& result) {
    result.assign(values.begin(), values.end());
    result[0] = cast(values[0], at::kFloat);
    result[1] = cast(values[1], *current_dtype);
}

using Policy = void (*)(const c10::OperatorHandle&, at::ArrayRef<c10::IValue>,
                        std::vector<c10::IValue>&);

template <Policy policy>
void call_with_casts(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
    const std::size_t count = op.schema().arguments().size();
    std::vector<c10::IValue> arguments;
    arguments.reserve(count);
    policy(op, torch::jit::last(*stack, count), arguments);
    torch::jit::drop(*stack, count);
    stack->insert(stack->end(), arguments.begin(), arguments.end());
    op.callBoxed(stack);
}

// ---- registration -------------------------------------------------------------------------------

template <Policy policy>
void add(torch::Library& library, std::string name) {
    // From the tokens of torch's macros: "sum, dim_IntList" is sum.dim_IntList.
    if (const auto comma = name.find(','); comma != name.npos) {
        name = name.substr(0, comma) + "." + name.substr(name.find_first_not_of(' ', comma + 1));
    }
    library.impl(name.c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&call_with_casts<policy>>());
}

torch::Library& new_library(const char* name_space) {
    // Never destroyed: the dispatcher may be gone by then.
    return *new torch::Library(torch::Library::IMPL, name_space, kKey, __FILE__, __LINE__);
}

void register_kernels() {
    new_library("_").fallback(torch::CppFunction::makeFallthrough());
    torch::Library& aten = new_library("aten");
#define TEMPOSCOPE_LOWER_PRECISION(...) add<to_lower_precision>(aten, #__VA_ARGS__);
#define TEMPOSCOPE_FP32(...) add<to_fp32>(aten, #__VA_ARGS__);
#define TEMPOSCOPE_COMPUTE_IN_FP32(...) add<compute_in_fp32>(aten, #__VA_ARGS__);
    AT_FORALL_LOWER_PRECISION_FP(TEMPOSCOPE_LOWER_PRECISION)
    AT_FORALL_FP32(TEMPOSCOPE_FP32)
    AT_FORALL_FP32_SET_OPT_DTYPE(TEMPOSCOPE_COMPUTE_IN_FP32)
#undef TEMPOSCOPE_LOWER_PRECISION
#undef TEMPOSCOPE_FP32
#undef TEMPOSCOPE_COMPUTE_IN_FP32
    // The same casts as our ops register for CPU and CUDA (models/ops/autocast.cpp).
    torch::Library& tempo = new_library("tempo");
    for (const char* name : {"layer_norm", "residual_layer_norm", "residual_layer_norm_sum"}) {
        add<to_fp32>(tempo, name);
    }
    for (const char* name : {"gelu_linear", "bias_gelu"}) add<to_lower_precision>(tempo, name);
    add<scores_to_fp32>(tempo, "attention_core");
}

}  // namespace

std::optional<at::ScalarType> dtype() { return current_dtype; }

void set_dtype(std::optional<at::ScalarType> dtype) {
    [[maybe_unused]] static const bool registered = (register_kernels(), true);
    current_dtype = dtype;
    c10::impl::tls_set_dispatch_key_included(kKey, dtype.has_value());
    c10::impl::tls_set_dispatch_key_excluded(kKey, !dtype.has_value());
}

void clear_cache() { cache.clear(); }

}  // namespace models::meta_autocast
