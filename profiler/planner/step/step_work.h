#pragma once

#include "models/config/result.h"
#include "profiler/allocator/request_stream.h"
#include "profiler/planner/step/kernel_model.h"
#include "profiler/planner/step/op_work.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

/// A training step as the planner needs it: what it asks of the allocator, in order, and what its
/// kernels have to do. Read from a trace once; cheap to move to another batch size.
namespace profiler {

struct StepAllocation {
    int64_t size_bytes = 0;
    int64_t stream = 0;
    int64_t pool = 0;
    Category category = Category::kUnknown;
    bool in_optimizer = false;  // made by the parameter update
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
    int64_t count = 1;  // of equal ones
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
    std::size_t first_request = 0;            // of the last step; before it the warm-up
    std::vector<StepAllocation> allocations;  // by the requests' numbers
    std::vector<StepOp> ops;                  // forward, loss and backward of the last step
    Parameters parameters;
    int64_t model_flop = 0;  // of one step: three times the forward's contractions
    bool has_shapes = true;  // false: products without their shapes, so no tile quantisation
};

/// `rows`, when given, gets the trace's row of each of the step's allocations.
/// Errors: a trace without a recorded step, without a workload, or damaged.
models::Result<StepWork> step_work_of(const Trace& trace,
                                      std::vector<Id<Allocation>>* rows = nullptr);

/// Two steps at different batch sizes stand for every batch size: each size is affine in it
/// (activations linear, weights constant; S² terms are linear in the batch too).
class AffineStep {
public:
    /// Errors: the two ask the allocator for different sequences, or run different ops.
    static models::Result<AffineStep> fit(const StepWork& small, const StepWork& large);

    /// Of the two that were fitted exactly, of others to a byte (bit masks round up).
    StepWork at(int64_t batch_size) const;
    /// Without requests and allocations: what times need. Equal ops are merged.
    StepWork ops_at(int64_t batch_size) const;

private:
    int64_t interpolate(int64_t small, int64_t large, int64_t batch_size) const;
    KernelWork interpolate(const KernelWork& small, const KernelWork& large,
                           int64_t batch_size) const;

    StepWork small_;
    StepWork large_;
};

/// Turns the requests of a program that frees its gradients into those of one that zeroes them:
///
///     first step    gradients stay                      (of a trace without one: made beforehand)
///     later steps   a gradient is added to the one that is there and freed before the next request
///
/// Source: torch/csrc/autograd/functions/accumulate_grad.h.
void zero_gradients(StepWork& step);

/// Merges ops that do the same work in the same phase; their counts add up.
void merge_equal_ops(StepWork& step);

}  // namespace profiler
