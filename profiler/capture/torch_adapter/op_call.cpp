#include "profiler/capture/torch_adapter/op_call.h"

#include "profiler/capture/torch_adapter/torch_version.h"
#include "profiler/trace/collective_rows.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace profiler {
namespace {

constexpr std::string_view kNamespace = "c10d::";

/// Of a tensor, a list of tensors, or a list of such lists.
int64_t bytes_of(const c10::IValue& value) {
    if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        const bool has_bytes = tensor.defined() && tensor.layout() == at::kStrided;
        return has_bytes ? static_cast<int64_t>(tensor.nbytes()) : 0;
    }
    int64_t bytes = 0;
    if (value.isList()) {
        for (const c10::IValue& part : value.toListRef()) bytes += bytes_of(part);
    }
    return bytes;
}

DType first_dtype(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) {
        return dtype_of(value.toTensor().scalar_type());
    }
    if (value.isList() && !value.toListRef().empty()) return first_dtype(value.toListRef().front());
    return DType::kOther;
}

/// The ranks that a process group lists: none for the group of all ranks, and nullopt where the
/// backend has no options. Before torch 2.9 no backend has any.
std::optional<std::vector<uint64_t>> listed_ranks([[maybe_unused]] c10d::ProcessGroup& group) {
#if TEMPOSCOPE_TORCH >= 209
    try {
        return group.getDefaultBackend()->getBackendOptions()->global_ranks_in_group;
    } catch (const c10::Error&) {
    }
#endif
    return std::nullopt;
}

std::vector<int64_t> ranks_of(c10d::ProcessGroup& group) {
    const auto listed = listed_ranks(group);
    if (!listed) return {};
    if (!listed->empty()) return {listed->begin(), listed->end()};
    std::vector<int64_t> all(static_cast<std::size_t>(group.getSize()));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

/// What the tensors before the process group say: one argument in place, or output and input.
void add_tensors(std::span<const c10::IValue> tensors, CollectiveCall& call) {
    if (call.kind == CollectiveKind::kBarrier || tensors.empty()) return;  // its tensor is no data
    const c10::IValue& out = tensors.front();
    const c10::IValue& in = tensors.back();
    call.dtype = first_dtype(in);
    if (call.dtype == DType::kOther) call.dtype = first_dtype(out);  // scatter on another rank
    if (call.kind != CollectiveKind::kRecv) call.in_bytes = bytes_of(in);
    if (call.kind != CollectiveKind::kSend) call.out_bytes = bytes_of(out);
}

}  // namespace

DType dtype_of(at::ScalarType type) {
    switch (type) {
        case at::kFloat:
            return DType::kFloat32;
        case at::kHalf:
            return DType::kFloat16;
        case at::kBFloat16:
            return DType::kBFloat16;
        case at::kDouble:
            return DType::kFloat64;
        case at::kBool:
            return DType::kBool;
        case at::kByte:
            return DType::kUInt8;
        case at::kChar:
            return DType::kInt8;
        case at::kShort:
            return DType::kInt16;
        case at::kInt:
            return DType::kInt32;
        case at::kLong:
            return DType::kInt64;
        case at::kUInt16:
            return DType::kUInt16;
        case at::kUInt32:
            return DType::kUInt32;
        case at::kUInt64:
            return DType::kUInt64;
        case at::kFloat8_e4m3fn:
            return DType::kFloat8E4M3;
        case at::kFloat8_e5m2:
            return DType::kFloat8E5M2;
        case at::kComplexFloat:
            return DType::kComplex64;
        case at::kComplexDouble:
            return DType::kComplex128;
        default:
            return DType::kOther;
    }
}

bool has_shape(const at::Tensor& tensor) {
    return !tensor.is_nested() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

bool checkpoint_saves_outside_of_ops() { return TEMPOSCOPE_TORCH >= 212; }

PyObject* python_object_of(const at::Tensor& tensor) {
    c10::impl::PyObjectSlot* const slot = tensor.unsafeGetTensorImpl()->pyobj_slot();
#if TEMPOSCOPE_TORCH >= 210
    return slot->load_pyobj();
#elif TEMPOSCOPE_TORCH == 209
    return slot->check_pyobj().value_or(nullptr);
#else
    return slot->check_pyobj(slot->pyobj_interpreter()).value_or(nullptr);
#endif
}

std::vector<at::Tensor> tensors_of(std::span<const c10::IValue> values) {
    std::vector<at::Tensor> tensors;
    tensors.reserve(values.size());
    for (const c10::IValue& value : values) {
        if (value.isTensor()) {
            if (value.toTensor().defined()) tensors.push_back(value.toTensor());
        } else if (value.isTensorList()) {
            for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
        }
    }
    return tensors;
}

// ---- collectives -----------------------------------------------------------------------------

std::optional<CollectiveCall> collective_call_of(const at::RecordFunction& function) {
    std::string_view name = function.name();
    if (!name.starts_with(kNamespace)) return std::nullopt;
    name.remove_prefix(kNamespace.size());
    const auto kind = collective_kind_of(name);
    if (!kind) return std::nullopt;
    const std::span arguments(function.inputs().data(), function.inputs().size());
    const auto group_at =
        std::ranges::find_if(arguments, [](const c10::IValue& value) { return value.isObject(); });
    if (group_at == arguments.end()) return std::nullopt;
    const auto group = group_at->toCustomClass<c10d::ProcessGroup>();
    CollectiveCall call{.kind = *kind,
                        .group_name = group->getGroupName(),
                        .group_description = group->getGroupDesc(),
                        .num_ranks = group->getSize(),
                        .ranks = ranks_of(*group)};
    add_tensors({arguments.begin(), group_at}, call);
    const auto after_group = std::next(group_at);
    if (name == "send" || name == "recv_") call.peer = after_group->toInt();
    if (call.kind == CollectiveKind::kAllReduce && after_group->isObject()) {
        call.is_sum = after_group->toCustomClass<c10d::ReduceOp>()->op_ == c10d::ReduceOp::SUM;
    }
    return call;
}

FuturePtr work_of(const at::RecordFunction& function) {
    const auto outputs = function.outputs();
    if (outputs.empty() || !outputs.back().isObject()) return {};
    const auto work = outputs.back().toCustomClass<c10d::Work>();
    try {
        return work ? work->getFuture() : FuturePtr();
    } catch (const c10::Error&) {
        return {};
    }
}

}  // namespace profiler
