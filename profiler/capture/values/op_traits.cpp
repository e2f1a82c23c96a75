#include "profiler/capture/values/op_traits.h"

#include <ATen/core/enum_tag.h>
#include <c10/core/DispatchKey.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace profiler {
namespace {

using Names = std::unordered_set<std::string_view>;

constexpr std::string_view kNamespace = "aten::";

/// In-place ops that fill their first argument, whatever it held.
bool fills_first(std::string_view op) {
    static const Names kNames{"copy_",    "zero_",      "fill_",       "normal_",
                              "uniform_", "random_",    "bernoulli_",  "exponential_",
                              "cauchy_",  "geometric_", "log_normal_", "_foreach_zero_"};
    return kNames.contains(op);
}

/// Products and norms of layers: their results are what training computes.
bool is_heavy(std::string_view op) {
    static const Names kNames{"mm",
                              "bmm",
                              "addmm",
                              "addmm_",
                              "baddbmm",
                              "baddbmm_",
                              "addbmm",
                              "addbmm_",
                              "addmv",
                              "addmv_",
                              "mv",
                              "dot",
                              "vdot",
                              "_int_mm",
                              "_scaled_mm",
                              "_grouped_mm",
                              "_cudnn_rnn",
                              "lstm_cell",
                              "addr",
                              "_addmm_activation",
                              "convolution",
                              "_convolution",
                              "cudnn_convolution",
                              "_thnn_fused_lstm_cell",
                              "_cdist_forward",
                              "_pdist_forward",
                              "native_layer_norm",
                              "native_group_norm",
                              "_fused_rms_norm"};
    const bool is_algebra =
        op.starts_with("linalg_") && op != "linalg_vector_norm" && op != "linalg_cross";
    return kNames.contains(op) || is_algebra || op.starts_with("conv") ||
           op.find("attention") != op.npos;
}

/// Memory and scalars: no value is made.
bool makes_no_values(std::string_view op) {
    static const Names kNames{"resize_",        "resize_as_",          "set_",
                              "record_stream",  "_local_scalar_dense", "_efficientzerotensor",
                              "_resize_output_"};
    return kNames.contains(op) || op.starts_with("empty") || op.starts_with("new_empty");
}

/// Arguments that an op changes although its schema does not say so: running statistics.
std::vector<std::size_t> written_in_secret(std::string_view op) {
    static const std::unordered_map<std::string_view, std::vector<std::size_t>> kByName{
        {"native_batch_norm", {3, 4}},       {"cudnn_batch_norm", {3, 4}},
        {"batch_norm_gather_stats", {3, 4}}, {"batch_norm_gather_stats_with_counts", {3, 4}},
        {"batch_norm_update_stats", {1, 2}},
    };
    const auto found = kByName.find(op);
    return found == kByName.end() ? std::vector<std::size_t>() : found->second;
}

/// A healthy program finds no infinite value: the flag of one, the second argument, stays as it is.
bool is_overflow_check(std::string_view op) {
    return op == "_amp_foreach_non_finite_check_and_unscale_";
}

bool reads_its_result(std::string_view op) {
    return op == "equal" || op == "nonzero" || op.find("unique") != op.npos;
}

Assumption assumption_of(std::string_view op) {
    static const std::unordered_map<std::string_view, Assumption> kByName{
        {"topk", Assumption::kTop},
        {"sort", Assumption::kOrder},
        {"argsort", Assumption::kOrder},
        {"argmax", Assumption::kSample},
        {"argmin", Assumption::kSample},
        {"max", Assumption::kSample},
        {"min", Assumption::kSample},
        {"multinomial", Assumption::kSample},
        {"linalg_vector_norm", Assumption::kNorm},
        {"norm", Assumption::kNorm},
        {"_foreach_norm", Assumption::kNorm},
        {"amax", Assumption::kNorm},
        {"amin", Assumption::kNorm},
        {"aminmax", Assumption::kNorm},
        {"isnan", Assumption::kIsBad},
        {"isinf", Assumption::kIsBad},
        {"all", Assumption::kTrue},
        {"equal", Assumption::kTrue},
        {"eq", Assumption::kEqual},
        {"ne", Assumption::kUnequal},
    };
    const auto found = kByName.find(op);
    return found == kByName.end() ? Assumption::kNone : found->second;
}

/// Whether torch runs code of its own for the op on a GPU, rather than other ops.
bool has_cuda_code(const c10::OperatorHandle& handle) {
    return handle.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

bool has_cpu_code(const c10::OperatorHandle& handle) {
    return handle.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

bool writes_results(const c10::FunctionSchema& schema) {
    const auto is_written = [](const c10::Argument& value) {
        return value.alias_info() == nullptr || value.alias_info()->isWrite();
    };
    return std::ranges::any_of(schema.returns(), [&](const c10::Argument& result) {
        const bool may_be_tensor = result.type()->kind() == c10::TypeKind::TensorType ||
                                   result.type()->kind() == c10::TypeKind::ListType;
        return may_be_tensor && is_written(result);
    });
}

ValueWork work_of(const OpTraits& traits, std::string_view op, const c10::OperatorHandle& handle,
                  bool takes_generator) {
    const bool writes = !traits.written.empty() || writes_results(handle.schema());
    if (op.empty()) return writes ? ValueWork::kUnknown : ValueWork::kNone;  // of another library
    if (op == "copy_") return ValueWork::kCopied;
    const bool is_number = handle.schema().overload_name() == "Scalar";
    if (op == "zero_" || (op == "fill_" && is_number)) return ValueWork::kFilled;
    if (makes_no_values(op) || !has_cuda_code(handle)) return ValueWork::kNone;
    if (!writes && !traits.reads_its_result) return ValueWork::kNone;
    const bool draws_unseeded = traits.draws && !takes_generator;  // it would draw the program's
    const bool is_unknown = is_heavy(op) || is_overflow_check(op) || draws_unseeded ||
                            !written_in_secret(op).empty() || !has_cpu_code(handle);
    return is_unknown ? ValueWork::kUnknown : ValueWork::kComputed;
}

OpTraits find_traits(const at::RecordFunction& function) {
    OpTraits traits{.name = function.name()};
    const auto name = function.operator_name();
    if (!name) return traits;
    const auto handle = c10::Dispatcher::singleton().findSchema(*name);
    if (!handle || !handle->hasSchema()) return traits;
    const std::string_view full = name->name;
    traits.is_collective = full.starts_with("c10d::");
    if (traits.is_collective || full.starts_with("_c10d_functional::")) return traits;
    const std::string_view op =
        full.starts_with(kNamespace) ? full.substr(kNamespace.size()) : std::string_view();
    traits.handle = *handle;
    bool takes_generator = false;
    const auto& arguments = handle->schema().arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const c10::AliasInfo* const alias = arguments[i].alias_info();
        const bool is_written = alias != nullptr && alias->isWrite();
        if (is_written) traits.written.push_back(i);
        traits.is_overwritten.push_back(is_written && (arguments[i].is_out() || fills_first(op)));
        takes_generator |= arguments[i].name() == "generator";
    }
    if (is_overflow_check(op)) traits.written = {0};
    for (const std::size_t i : written_in_secret(op)) traits.written.push_back(i);
    traits.sizes_its_result = handle->hasTag(at::Tag::dynamic_output_shape);
    traits.reads_its_result = reads_its_result(op);
    traits.draws = takes_generator || handle->hasTag(at::Tag::nondeterministic_seeded);
    traits.work = work_of(traits, op, *handle, takes_generator);
    traits.assumption = assumption_of(op);
    return traits;
}

struct Known {
    std::mutex mutex;
    std::deque<OpTraits> traits;
};

/// The last ops of a thread, by the address of their name, which lives in the op's schema.
constexpr std::size_t kNumRecent = 1024;

}  // namespace

std::optional<int64_t> dim_argument(const OpTraits& op, std::span<const c10::IValue> arguments) {
    const auto& formal = op.handle->schema().arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (formal[i].name() == "dim" && arguments[i].isInt()) return arguments[i].toInt();
    }
    return std::nullopt;
}

const OpTraits& traits_of(const at::RecordFunction& function) {
    static auto* const known = new Known;
    static const auto* const no_op = new OpTraits;
    thread_local std::array<const OpTraits*, kNumRecent> recent{};
    const char* const name = function.name();
    // Names lie at multiples of 8.
    const OpTraits*& traits = recent[reinterpret_cast<std::uintptr_t>(name) / 8 % kNumRecent];
    if (traits != nullptr && traits->address == name && traits->name == name) return *traits;
    if (std::strstr(name, "::") == nullptr) return *no_op;
    OpTraits found = find_traits(function);
    found.address = name;
    const std::lock_guard lock(known->mutex);
    const auto same = std::ranges::find_if(known->traits, [&](const OpTraits& one) {
        return one.address == name && one.name == found.name;
    });
    return *(traits = same != known->traits.end() ? &*same
                                                  : &known->traits.emplace_back(std::move(found)));
}

}  // namespace profiler
