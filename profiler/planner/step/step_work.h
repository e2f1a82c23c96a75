#pragma once

#include "models/config/result.h"
#include "profiler/allocator/request_stream.h"
#include "profiler/planner/step/kernel_model.h"
#include "profiler/planner/step/op_work.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

/// A training step as the planner needs it: its requests to the allocator in order, and the work of
/// its kernels. It is read from a trace once and can then be moved to another batch size cheaply.
namespace profiler {

struct StepAllocation {
    int64_t size_bytes = 0;
    int64_t stream = 0;
    int64_t pool = 0;
    Category category = Category::kUnknown;
    bool in_optimizer = false;  // allocated by the parameter update
    bool in_last_step = false;
};

struct StepRequest {
    AllocatorRequestKind kind = AllocatorRequestKind::kAlloc;
    uint32_t allocation = 0;
};

struct StepOp {
    PhaseKind phase = PhaseKind::kForward;
    OpClass op_class = OpClass::kOther;
    KernelWork work;
    int64_t count = 1;  // of equal ops that were merged
};

struct Parameters {
    int64_t num_elements = 0;
    int64_t num_tensors = 0;
    int64_t size_bytes = 0;
    int64_t largest_tensor_bytes = 0;
    int64_t largest_layer_bytes = 0;
};

struct StepWork {
    int64_t batch_size = 0;
    Source source = Source::kPredicted;  // of the trace
    std::vector<StepRequest> requests;
    std::size_t first_request = 0;  // of the last step; the requests before belong to the warm-up
    std::vector<StepAllocation> allocations;  // by the requests' numbers
    std::vector<StepOp> ops;                  // forward, loss and backward of the last step
    Parameters parameters;
    int64_t model_flop = 0;  // of one step: 3 x the contractions of forward
    bool has_shapes = true;  // false: the shape of some GEMM is not known
};

/// If `rows` is given, it gets the row of the trace for each allocation of the step.
/// Errors: a trace without a recorded step or without a workload, or a damaged trace.
models::Result<StepWork> step_work_of(const Trace& trace,
                                      std::vector<Id<Allocation>>* rows = nullptr);

/// A step at every batch size, from steps at two batch sizes. Each allocation is affine in the
/// batch: weights are constant, activations (the S² terms of attention too) are linear.
class AffineStep {
public:
    /// Errors: the two steps make different sequences of requests, or run different ops.
    static models::Result<AffineStep> fit(const StepWork& small, const StepWork& large);

    /// Exact at the two fitted batches; at others each size may be off by a byte (bit masks round
    /// up).
    StepWork at(int64_t batch_size) const;
    /// Only the ops, which is all that times need. Equal ops are merged.
    StepWork ops_at(int64_t batch_size) const;

private:
    int64_t interpolate(int64_t small, int64_t large, int64_t batch_size) const;
    KernelWork interpolate(const KernelWork& small, const KernelWork& large,
                           int64_t batch_size) const;

    StepWork small_;
    StepWork large_;
};

/// Turns the requests of a program that frees its gradients into the requests of a program that
/// zeroes them:
///
///     first step    gradients stay    (a trace without this step: they are allocated before it)
///     later steps   each new gradient is added to the old one and freed before the next request
///
/// Source: torch/csrc/autograd/functions/accumulate_grad.h.
void zero_gradients(StepWork& step);

/// Puts frees between two allocations in the order of their allocations. The allocator ends in the
/// same state, and steps compare equal: autocast frees its copies of the weights in the order of a
/// hash table of addresses.
void order_frees(StepWork& step);

/// Merges ops that do the same work in the same phase and adds up their counts.
void merge_equal_ops(StepWork& step);

}  // namespace profiler
