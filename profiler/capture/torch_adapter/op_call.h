#pragma once

#include "profiler/trace/trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What torch tells of the call of an op: the tensors in its arguments, and the collective that it
/// runs.
namespace profiler {

DType dtype_of(at::ScalarType type);

/// False: a nested tensor, whose parts have shapes of their own, or a tensor with symbolic sizes.
bool has_shape(const at::Tensor& tensor);

/// Whether a checkpoint saves its inputs from Python, outside of ops. Before 2.12 an op did it.
bool checkpoint_saves_outside_of_ops();

/// Python's Tensor; null if there is none.
PyObject* python_object_of(const at::Tensor& tensor);

/// All defined tensors among the values, also those in lists.
std::vector<at::Tensor> tensors_of(std::span<const c10::IValue> values);

/// A call of one of torch.distributed's ops. Every backend is called through them, and their
/// arguments tell all: `c10d::_allgather_base_(output, input, process_group, ...)`.
struct CollectiveCall {
    CollectiveKind kind = CollectiveKind::kOther;
    DType dtype = DType::kOther;  // of the first tensor
    int64_t in_bytes = 0;
    int64_t out_bytes = 0;
    int64_t peer = -1;
    bool is_sum = false;  // of a reduction: the values of all ranks are added
    std::string group_name;
    std::string group_description;
    int64_t num_ranks = -1;
    std::vector<int64_t> ranks;  // of the whole run; empty: the backend does not tell them
};

/// None for other ops. Call it without a lock: a process group may be written in Python.
std::optional<CollectiveCall> collective_call_of(const at::RecordFunction& function);

using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;
/// At the end of such a call: what completes when the backend has done the work. NCCL's is complete
/// when its kernel is in the stream. Null: the backend does not tell. It holds the tensors: who
/// keeps it keeps their memory.
FuturePtr work_of(const at::RecordFunction& function);

}  // namespace profiler
